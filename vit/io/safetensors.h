// The safetensors format: named tensors after a JSON header. Reads one file, writes one file. Sharded
// files are handled by shards.h.
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
/// 100,000,000 bytes, known types, offsets that cover the data without gap, overlap or rest; and stricter:
/// no duplicate names, at most TensorEntry::kMaxRank dimensions. Throws Error with the file, the tensor and
/// the likely cause.
TensorFile open_safetensors(const std::filesystem::path& path);
/// The same of a file in memory, which must outlive the result; `name` is used for it in messages.
TensorFile open_safetensors(std::span<const std::byte> file, const std::filesystem::path& name);

/// A tensor to be written: row-major, as many bytes as type and shape require.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that any reader of the format accepts: data ordered by alignment, then name. Written
/// atomically: on failure no file is left and an existing file is
/// unchanged.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The same file in memory.
std::string safetensors_bytes(std::span<const TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// The part before the numbers in a file of one tensor, for vectors that are written one by one: the
/// numbers follow, row-major, and end the file.
std::string safetensors_start(const std::string& name, Dtype dtype, const std::vector<std::size_t>& shape,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace vit::internal
