// One run of depth, segment, detect or pose by the run of all commands (run_images.h): what their options
// share, the frames of videos, and where their results go: arrays of all images in one file, or files of each
// image in a folder, and a page of pictures.
#pragma once

#include <filesystem>
#include <functional>
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
#include "vit/dense_config.h"

namespace vit::app {

/// A folder with files for each image, named after it, and run.json, which says what made them.
class MapFolder {
 public:
  /// Makes the folder and locks it. `endings` of the files of each image: ".png", "_color.png". Throws
  /// UsageError if it holds results of an earlier run and `resume` is not set, Error if they were made
  /// otherwise.
  MapFolder(std::filesystem::path folder, std::vector<std::string> endings, const RunFacts& facts,
            bool resume);

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
};

/// INPUT, --output, --format, --raw, --shard, --resume, --html, and the options of models and heads.
/// `format_help` says what the formats are and which are the default.
void add_dense_run_options(std::vector<Option>& list, DenseRunOptions& options,
                           std::span<const MapFormat> formats, const char* format_help);

/// A command of maps: what it needs and what it can write.
struct DenseJob {
  const char* name;
  const DenseRunOptions& options;
  std::span<const MapFormat> formats;
  std::vector<std::string_view> fallback;      // the words where --format names no files
  MapMeaning needed;                           // classes: masks will do, too
  std::vector<std::filesystem::path> reads{};  // besides inputs and model
};

class DenseRun : private ImageWork {
 public:
  /// Throws UsageError for options that contradict each other.
  explicit DenseRun(DenseJob job);

  /// Prepares a command once the model is loaded, before anything is written; false ends the run as after an
  /// interrupt.
  using Prepare = std::function<bool()>;
  /// What became of an image that was computed: its line, or why it is of no use.
  struct Line {
    std::string text;
    std::string failure;
  };
  using Consume = std::function<Line(const StreamedImage& image, const Input& input)>;
  /// Runs all images and prints their lines; an Error of `consume` is the failure of its image. Returns the
  /// exit code. Throws Error for a model whose head does not give what is needed.
  int run(const Prepare& prepare, const Consume& consume);
  /// Lets `work` run the inputs in its own way and report to ImageRun::progress(). Returns the exit code.
  int run_by(const Prepare& prepare, const std::function<void(ImageRun& run)>& work);

  // what follows is there from `prepare` on
  const Model& model() const noexcept { return run_->model(); }
  const DenseConfig& config() const noexcept { return *model().dense_config(); }
  int threads() const noexcept { return job_.options.common.session.threads; }
  /// A value that results depend on, which a run that goes on must have, too. To be called by `prepare`.
  void note(std::string name, std::string value);
  /// Whether files of this kind are written.
  bool writes(std::string_view word) const;
  bool writes_arrays() const { return job_.options.writes_arrays(); }
  bool has_page() const noexcept { return !job_.options.html.empty(); }

  // what follows is there while the images run
  const std::vector<Input>& inputs() const { return run_->inputs(); }
  const Preprocessor& preprocessor() const { return run_->preprocessor(); }
  /// The file of this kind for an input.
  std::filesystem::path path_of(std::size_t index, std::string_view word) const;
  void add_arrays(std::size_t index, std::span<const NamedArray> arrays);
  /// The image of an input as the model saw it, of that size; black for preprocessed pixels.
  Image picture_of(const Input& input, ImageSize size) const;
  /// Adds an image, whose name is that of the input, with its picture to the page of --html. Its labels are
  /// sorted, and the largest score is that of the image.
  void add_to_page(const Input& input, PageItem item, const Image& picture);

 private:
  std::optional<Request> load(ImageRun& run) override;
  void run_inputs(ImageRun& run, const Request& request) override;
  std::string add(ImageRun& run, const StreamedImage& image) override;
  int finish(ImageRun& run) override;
  int run_job();
  void choose_formats();
  void take_inputs(InputList& list);
  void open_output();
  /// Throws UsageError if a result would replace the file of an input, another result or run.json.
  void check_files(std::span<const Input> inputs) const;
  void skip_done(InputList& list);

  const DenseJob job_;
  Prepare prepare_;
  Consume consume_;  // or, of run_by():
  std::function<void(ImageRun&)> work_;
  ImageRun* run_ = nullptr;         // while run() runs
  std::size_t first_index_ = 0;     // place of the first input in the whole run
  std::vector<MapFormat> formats_;  // that are written
  std::vector<std::pair<std::string, std::string>> facts_;
  std::optional<MapArrays> arrays_;
  std::optional<MapFolder> folder_;
  std::vector<std::filesystem::path> names_;
  std::vector<PageItem> page_;
};

}  // namespace vit::app
