// Files of results: one row per image, in .npy, .npz, .safetensors (arrays) or .jsonl (a line per image).
// Rows are written to disk immediately; memory does not grow with the number of images.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/outputs/run_facts.h"
#include "vit/base/dtype.h"
#include "vit/base/tensor.h"

namespace vit::app {

enum class ResultFormat { npy, npz, safetensors, jsonl, png };

/// The format of the extension of `path`. Throws UsageError listing `allowed` for any other.
ResultFormat result_format(const std::filesystem::path& path, std::span<const ResultFormat> allowed);

/// The values of one image under one name: contiguous, row-major.
struct ResultArray {
  internal::Dtype dtype = internal::Dtype::f32;  // f32 or u8
  Shape shape;                                   // without the dimension of images
  const void* data = nullptr;

  static ResultArray of(TensorView<const float> view);
  std::span<const std::byte> bytes() const;
};

/// Vectors of texts, with their names.
struct NamedVectors {
  std::vector<std::string> names;
  std::vector<float> numbers;  // (n, E)
  std::size_t width = 0;       // E

  TensorView<const float> view() const { return {numbers.data(), Shape{names.size(), width}}; }
};

struct ResultWriterOptions {
  std::filesystem::path path;
  ResultFormat format = ResultFormat::npz;
  std::vector<std::string> names;  // of the arrays, in the order of add()
  bool resume = false;             // jsonl: continue an interrupted run
  /// Of the run: jsonl stores it next to the file and compares it when the run is resumed, safetensors among
  /// the metadata.
  std::optional<RunFacts> facts{};
  /// Shapes of rows, without data, one per name: set if the file is to be written even without rows.
  std::optional<std::vector<ResultArray>> row_shapes{};
};

class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  /// Whether a resumed run has a row for `file` that was not yet taken: true as often as the file has
  /// rows.
  virtual bool take_done(const std::string& file) = 0;
  /// Adds the results of one input, one array per name. Returns why the format cannot hold them together with
  /// earlier ones, or "". Throws Error if they do not match the names or the disk is full.
  [[nodiscard]] virtual std::string add(const std::string& file, std::span<const ResultArray> arrays) = 0;
  /// Adds the vectors of texts, which are written as `text` (n, E), with their names: `names` of
  /// arrays, a member of each JSON line.
  virtual void add_texts(NamedVectors texts) = 0;
  /// Renames the file to its final name. Without rows nothing is written, unless the shapes of rows are
  /// known.
  virtual void finish() = 0;
  /// Human-readable shapes: "pooled (60, 192), patches 60 arrays".
  virtual std::string summary() const = 0;
};

/// Opens a writer. Throws Error if the file cannot be written.
std::unique_ptr<ResultWriter> make_result_writer(const ResultWriterOptions& options);

}  // namespace vit::app
