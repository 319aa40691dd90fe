// The common representation of checkpoint formats: named tensors in files, and their conversion to float.
// Formats are read by safetensors.h and pickle.h; the families interpret the names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/dtype.h"
#include "vit/base/tensor.h"
#include "vit/io/source_file.h"

namespace vit::internal {

struct LowRankUpdate;

/// For messages: (768, 3).
std::string shape_text(std::span<const std::size_t> shape);

/// One tensor of a checkpoint, not yet converted. Little-endian, possibly unaligned. Keeps its file open.
struct TensorEntry {
  static constexpr std::size_t kMaxRank = 8;

  std::string name;
  Dtype dtype = Dtype::f32;
  std::string dtype_name;            // as in the file: "F32", "FloatStorage", "F8_E4M3"
  std::vector<std::size_t> shape;    // outermost first; empty for a scalar
  std::vector<std::size_t> strides;  // in elements; empty if row-major without gaps
  StoredBytes bytes;                 // from the first to the last element
  std::shared_ptr<const SourceFile> file;
  /// Updates added to the numbers when they are converted; `first_row` is that of these rows in the matrix
  /// which the updates are for.
  std::vector<std::shared_ptr<const LowRankUpdate>> updates{};
  std::size_t first_row = 0;

  /// Product of the shape; the readers have checked that it does not overflow.
  std::size_t num_elements() const;
  /// For messages: tensor "norm.weight" (768) of model.safetensors.
  std::string describe() const;
};

/// scale * B A, B (rows, r) and A (r, columns), for a matrix whose further dimensions are its columns; if
/// transposed, its transpose, for a matrix (columns, rows).
struct LowRankUpdate {
  TensorEntry a, b;
  double scale = 1.0;
  bool transposed = false;
  std::size_t first_row = 0;  // row of the matrix for B's first
};

/// Converts f32, f16, bf16 and f64 to `out`, row-major, on all cores; out.size() must be num_elements().
/// Throws Error naming the tensor if its type is another, and as SourceFile::read does.
void convert(const TensorEntry& entry, std::span<float> out);
void convert(const TensorEntry& entry, std::span<double> out);

/// Row `row` of a matrix; out.size() must be its number of columns. Allocates nothing. Throws Error as
/// convert does, and if there is no such row.
void convert_row(const TensorEntry& matrix, std::size_t row, std::span<float> out);

/// The rows [first, first + count) of the first dimension, as a tensor of the same name; the rows must exist.
TensorEntry rows_of(const TensorEntry& entry, std::size_t first, std::size_t count);
/// The tensor as float32, of at most rank 4.
Tensor<float> to_float(const TensorEntry& entry);
/// All elements as doubles, of any rank.
std::vector<double> to_double(const TensorEntry& entry);
/// The tensors of a checkpoint in any format. Threads may share it.
class TensorFile {
 public:
  struct Contents {
    std::filesystem::path path{};
    std::vector<TensorEntry> entries{};
    std::map<std::string, std::string> metadata{};
    std::vector<std::string> members{};
    std::map<std::string, std::string> facts{};
    std::vector<std::string> unread{};  // names in shards that were not opened
  };
  /// For the readers. Throws Error if a name occurs twice.
  explicit TensorFile(Contents contents);

  const std::filesystem::path& path() const noexcept { return contents_.path; }
  /// In the order of their data.
  std::span<const TensorEntry> entries() const noexcept { return contents_.entries; }
  /// nullptr if the checkpoint has no such tensor.
  const TensorEntry* find(std::string_view name) const noexcept;
  /// Throws Error if the checkpoint has no such tensor.
  const TensorEntry& at(std::string_view name) const;
  const Contents& contents() const noexcept { return contents_; }
  /// Free text of the writer: __metadata__ of safetensors.
  const std::map<std::string, std::string>& metadata() const noexcept { return contents_.metadata; }
  /// For a pickle, the dotted names of its members that are not tensors: dictionaries, numbers, objects, ...
  const std::vector<std::string>& members() const noexcept { return contents_.members; }
  /// For a pickle, texts, integers and booleans near its top, by dotted names: values that a training script
  /// stored with the tensors ("arch", "args.model").
  const std::map<std::string, std::string>& facts() const noexcept { return contents_.facts; }

 private:
  Contents contents_;
  std::vector<std::size_t> by_name_;
};

}  // namespace vit::internal
