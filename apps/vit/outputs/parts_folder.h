// Results of very many inputs as a folder of parts: part-00000.npy or .safetensors with the arrays, and
// part-00000.jsonl with one object per row; run.json records the run. Parts are written atomically,
// and a later run continues after the last complete one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/outputs/run_facts.h"
#include "vit/image/image.h"
#include "vit/io/atomic_file.h"

namespace vit::app {

struct PartsOptions {
  std::filesystem::path folder;
  ResultFormat format = ResultFormat::npy;  // or safetensors
  std::size_t part_size = 10000;            // rows of each part except the last
  bool resume = false;
  std::vector<std::string> names;       // of the arrays
  std::vector<ResultArray> row_shapes;  // of their rows, without data
  RunFacts facts;                       // of the run; format and part size are added
};

/// Whether `path` is a folder: an existing one, or a name that ends in a slash.
bool means_folder(const std::filesystem::path& path);

class PartsFolder {
 public:
  /// Creates the folder and locks it. With options.resume the complete parts of an earlier run over the same
  /// inputs are kept, and other files of an interrupted one are removed. Throws UsageError if the
  /// folder contains parts and is not continued; Error if its parts are of another model, other options or
  /// other inputs, another run is writing it, or nothing can be written.
  PartsFolder(PartsOptions options, std::span<const Input> inputs);
  ~PartsFolder();
  PartsFolder(const PartsFolder&) = delete;
  PartsFolder& operator=(const PartsFolder&) = delete;

  /// Number of existing rows, for the first inputs.
  std::size_t num_kept() const noexcept { return num_kept_; }
  /// The failures among them, with their causes.
  const std::vector<InputFailure>& kept_failures() const noexcept { return kept_failures_; }

  /// Adds the results of the next input. Returns why the format cannot hold them, as recorded in the
  /// row, or "".
  std::string add(const std::string& file, ImageSize size, const std::string& digest,
                  std::span<const ResultArray> arrays);
  /// Adds the next input as a row of NaN.
  void add_failed(const std::string& file, const std::string& cause);
  /// Writes the last part, which may be short.
  void finish();
  std::string summary() const;

 private:
  struct Part;
  std::filesystem::path path_of(std::size_t part, const char* extension) const;
  const char* extension() const;
  std::size_t rows_of(std::size_t part) const;
  void open();
  /// Counts the complete parts, and refuses those of other inputs.
  void take_over(std::span<const Input> inputs);
  bool take_over_part(std::size_t part, std::span<const Input> inputs);
  void remove_rest();
  void add_line(const std::string& line);
  void write_part();

  PartsOptions options_;
  FileHandle run_;  // run.json, which is locked
  std::size_t num_inputs_ = 0;
  std::size_t num_kept_ = 0;
  std::size_t num_rows_ = 0;  // kept and added
  std::vector<InputFailure> kept_failures_;
  std::vector<std::vector<float>> not_numbers_;  // a row of NaN for each array
  std::unique_ptr<Part> part_;
};

}  // namespace vit::app
