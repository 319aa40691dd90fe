// Results of depth, segment, detect and pose: arrays of all images in one file, or files of each image in a
// folder, and a page of images. The four commands are ImageWorks (run_images.h) with a MapOutputs each.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/html/html_page.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/rings/dense/dense_options.h"
#include "apps/vit/run/run_images.h"
#include "vit/outputs.h"

namespace vit::app {

/// A folder with files for each image, named after it, and run.json, which says what made them.
class MapFolder {
 public:
  /// Makes the folder and locks it. `endings` of the files of each image: ".png", "_color.png"; `names` of the
  /// images. Throws UsageError if it holds results of an earlier run and `resume` is not set, Error if they
  /// were made otherwise, or to resume files of these names of which nothing says what made them.
  MapFolder(std::filesystem::path folder, std::vector<std::string> endings,
            std::span<const std::filesystem::path> names, const RunFacts& facts, bool resume);

  /// Whether all files of the image are there.
  bool has(const std::filesystem::path& name) const;
  /// The file of that name and ending; its folder is made.
  std::filesystem::path path_of(const std::filesystem::path& name, const std::string& ending) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::string> endings_;
  FileHandle run_;  // run.json, which is locked
};

/// A kind of files in a folder of results: the word of --format, and what follows the name of the image.
struct MapFormat {
  std::string_view word;
  std::string_view ending;
  std::string_view more{};  // of a second file that some tasks write
};

struct DenseRunOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::vector<std::string> words;  // of --format
  std::optional<Shard> shard;
  bool raw = false;
  bool resume = false;
  std::filesystem::path html;

  bool has_word(std::string_view word) const;
  bool writes_arrays() const;
  bool writes_folder() const;
  /// The file of one image, by its ending: .png, .pfm, .ply.
  bool writes_file() const;
};

/// INPUT, --output, --format, --raw, --shard, --resume, --html, and the options of models and heads.
/// `format_help` says what the formats are and which are the default.
void add_dense_run_options(std::vector<Option>& list, DenseRunOptions& options,
                           std::span<const MapFormat> formats, const char* format_help);

class MapOutputs {
 public:
  /// `formats` of `command`, of which those named by `fallback` are written if --format names none. Throws
  /// UsageError for options that contradict each other.
  MapOutputs(const char* command, const DenseRunOptions& options, std::span<const MapFormat> formats,
             std::vector<std::string_view> fallback);

  /// Runs the command. Returns the exit code. `reads`: files besides inputs and model.
  int run(ImageWork& work, std::vector<std::filesystem::path> reads = {}) const;

  // for ImageWork::load()
  /// The model, whose head must have `needed`; for classes masks will do, too. Throws Error.
  const std::shared_ptr<const Model>& load(ImageRun& run, Output needed) const;
  /// A value that results depend on, which a run that is continued must have, too.
  void note(std::string name, std::string value);
  void note(std::string name, std::span<const std::string> values);  // a line each
  /// The contents of a file that results depend on; "" = none. Throws Error if it cannot be read.
  void note_file(std::string name, const std::filesystem::path& path);
  /// Replaces videos by their frames and opens the outputs; images whose files are there are passed over.
  void open(ImageRun& run);

  /// Whether files of this kind are written.
  bool writes(std::string_view word) const;
  bool writes_arrays() const { return options_.writes_arrays(); }
  bool writes_folder() const { return options_.writes_folder(); }
  bool has_page() const noexcept { return !options_.html.empty(); }
  int threads() const noexcept { return options_.common.session.threads; }

  // for ImageWork::add()
  /// The file of this kind for an input.
  std::filesystem::path path_of(std::size_t index, std::string_view word) const;
  void add_arrays(const ImageRun& run, std::size_t index, std::span<const NamedArray> arrays);
  /// Adds an image, whose name is that of the input, with its picture to the page of --html. Its labels are
  /// sorted, and the largest score is that of the image.
  void add_to_page(const ImageRun& run, const Input& input, PageItem item, const Image& picture);
  /// Prints the line of an image.
  static void print(ImageRun& run, const std::string& line);

  /// For ImageWork::finish(): writes what is left. Returns an additional exit code.
  int finish(ImageRun& run);

 private:
  void take_file_format(std::span<const MapFormat> formats);
  void take_inputs(InputList& list);
  /// Throws UsageError if a result would replace the file of an input, another result or run.json.
  void check_files(std::span<const Input> inputs) const;
  void open_output(const Model& model);
  void skip_done(InputList& list);

  const char* command_;
  const DenseRunOptions& options_;
  std::vector<MapFormat> formats_;  // that are written
  std::size_t first_index_ = 0;     // place of the first input in the whole run
  std::vector<std::pair<std::string, std::string>> facts_;
  std::optional<MapArrays> arrays_;
  std::optional<MapFolder> folder_;
  std::vector<std::filesystem::path> names_;
  std::vector<PageItem> page_;
};

/// The image of an input as the model saw it, of that size; black for preprocessed pixels.
Image picture_of(const ImageRun& run, const Input& input, ImageSize size);

}  // namespace vit::app
