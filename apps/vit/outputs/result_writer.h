// Files of results: one row per image, in .npy, .npz, .safetensors (arrays) or .jsonl (a line per image).
// Rows go to disk as they come; memory does not grow with the number of images.
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

/// The format that the extension of `path` names. Throws UsageError naming `allowed` for any other.
ResultFormat result_format(const std::filesystem::path& path, std::span<const ResultFormat> allowed);

/// The numbers of one image under one name: contiguous, row-major.
struct ResultArray {
  internal::Dtype dtype = internal::Dtype::f32;  // f32 or u8
  Shape shape;                                   // without the dimension of images
  const void* data = nullptr;

  static ResultArray of(TensorView<const float> view);
  std::span<const std::byte> bytes() const;
};

/// Vectors of texts, and what each is called.
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
  bool resume = false;             // jsonl: continue what an interrupted run left
  /// jsonl: of the run, kept beside the file and compared when it is resumed.
  std::optional<RunFacts> facts{};
  /// Of rows, without data, one for each name: set where the file is to be written even if it has no rows.
  std::optional<std::vector<ResultArray>> row_shapes{};
};

class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  /// Whether a resumed run has a row for `file` that was not asked for yet: true as often as the file has
  /// rows.
  virtual bool take_done(const std::string& file) = 0;
  /// Takes the results of one input, one array for each name. Returns why the format cannot hold them beside
  /// those before, "" where they were taken. Throws Error if they do not fit the names or the disk.
  [[nodiscard]] virtual std::string add(const std::string& file, std::span<const ResultArray> arrays) = 0;
  /// Takes the vectors of texts, which are written as `text` (n, E), with what each is called: `names` of
  /// arrays, a member of each JSON line.
  virtual void add_texts(NamedVectors texts) = 0;
  /// Puts the file in its place. Where no row was added nothing is written, unless the shapes of rows are
  /// known.
  virtual void finish() = 0;
  /// Shapes for people: "pooled (60, 192), patches 60 arrays".
  virtual std::string summary() const = 0;
};

/// Opens a writer, and with it finds out whether the place can be written. Throws Error.
std::unique_ptr<ResultWriter> make_result_writer(const ResultWriterOptions& options);

}  // namespace vit::app
