// The safetensors format: named tensors behind a JSON header. Reads one file, writes one file. Several that
// belong together are for shards.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vit/base/dtype.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a .safetensors file without touching its data. As strict as the reference reader: header of at most
/// 100,000,000 bytes, known types, offsets that cover the data without hole, overlap or rest; and stricter:
/// no name twice, at most TensorEntry::kMaxRank dimensions. Throws Error with the file, the tensor and the
/// likely cause.
TensorFile open_safetensors(const std::filesystem::path& path);

/// A tensor to be written: row-major, as many bytes as type and shape demand.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that any reader of the format accepts: data ordered by alignment, then name. The file
/// appears under its name only when complete; on failure nothing is left behind and an existing file stays as
/// it was.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// What comes before the numbers in a file of one tensor, for vectors that are written as they come: its
/// bytes follow, row-major, and end the file.
std::string safetensors_start(const std::string& name, Dtype dtype, const std::vector<std::size_t>& shape,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace vit::internal
