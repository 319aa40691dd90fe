// One run of depth, segment, detect or pose: what their options share, from the inputs to the exit code; and
// where their results go: arrays of all images in one file, or files of each image in a folder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/command_line.h"
#include "apps/vit/commands/dense/dense_options.h"
#include "apps/vit/commands/dense/map_folder.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/image_run.h"
#include "vit/dense_config.h"

namespace vit::app {

/// A kind of files in a folder of results: the word of --format, and what follows the name of the image.
struct MapFormat {
  std::string_view word;
  std::string_view ending;
};

struct DenseRunOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::vector<std::string> words;  // of --format
  std::optional<Shard> shard;
  bool raw = false;
  bool resume = false;

  bool has_word(std::string_view word) const;
  bool writes_arrays() const;
  bool writes_folder() const;
};

/// INPUT, --output, --format, --raw, --shard, --resume, and the options of models and heads. `format_help`
/// says what the formats are and which are the default.
void add_dense_run_options(std::vector<Option>& list, DenseRunOptions& options,
                           std::span<const MapFormat> formats, const char* format_help);

class DenseRun {
 public:
  /// Lists the inputs, loads the model and opens the output. `fallback`: the words where --format names no
  /// files. `others`: files that are read besides; `page`: one that is written besides, "" = none. Throws
  /// UsageError for options that contradict each other, Error for a model whose head does not give `needed`.
  DenseRun(const char* command, const DenseRunOptions& options, std::span<const MapFormat> formats,
           std::vector<std::string_view> fallback, MapMeaning needed,
           std::vector<std::filesystem::path> others = {}, const std::filesystem::path& page = {});

  const Model& model() const noexcept { return run_.model(); }
  const DenseConfig& config() const noexcept { return *model().dense_config(); }
  int threads() const noexcept { return options_.common.session.threads; }
  /// Whether files of this kind are written.
  bool writes(std::string_view word) const;
  bool writes_arrays() const noexcept { return arrays_.has_value(); }
  /// The file of this kind for an input.
  std::filesystem::path path_of(std::size_t index, std::string_view word) const;
  void add_arrays(std::size_t index, std::span<const NamedArray> arrays);
  const Input& input(std::size_t index) const { return run_.inputs()[index]; }
  const Preprocessor& preprocessor() const { return run_.preprocessor(); }
  const std::vector<Input>& inputs() const { return run_.inputs(); }

  /// What became of an image that was computed: its line, or why it is of no use.
  struct Line {
    std::string text;
    std::string failure;
  };
  using Consume = std::function<Line(const StreamedImage& image, const Input& input)>;
  /// Runs all images and prints their lines. Returns the exit code.
  int run(const Consume& consume);
  /// Lets `work` run the inputs in its own way and report to ImageRun::progress(). Returns the exit code.
  int run_by(const std::function<void(ImageRun& run)>& work);

 private:
  void open_output(std::span<const MapFormat> formats, std::span<const std::string_view> fallback,
                   const char* command);
  void skip_done();

  const DenseRunOptions& options_;
  std::size_t first_index_ = 0;  // set while the list is made
  InputList list_;
  ImageRun run_;
  std::vector<MapFormat> formats_;  // that are written
  std::optional<MapArrays> arrays_;
  std::optional<MapFolder> folder_;
  std::vector<std::filesystem::path> names_;
};

/// The image of an input, of that size; black for preprocessed pixels.
Image picture_of(const Input& input, ImageSize size, const DecodeOptions& options);

}  // namespace vit::app
