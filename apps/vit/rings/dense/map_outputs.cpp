#include "apps/vit/rings/dense/map_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/parts_folder.h"
#include "apps/vit/outputs/result_names.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace fs = std::filesystem;
namespace {

constexpr Where kWhere{"write", ErrorKind::io};
constexpr const char* kFactsFile = "run.json";  // of a folder

}  // namespace

MapFolder::MapFolder(fs::path folder, std::vector<std::string> endings, const RunFacts& facts, bool resume)
    : folder_(std::move(folder)), endings_(std::move(endings)) {
  make_folder(folder_);
  const fs::path path = folder_ / kFactsFile;
  run_ = open_locked(path, O_CREAT);
  std::ifstream file(path, std::ios::binary);
  const std::string found = read_rest(file, path);
  if (!found.empty()) {
    if (!resume)
      fail_usage("--output: ", folder_.string(),
                 " holds results of an earlier run; --resume goes on with it, or name another folder");
    parse_run_facts(found, path.string()).check_same(facts, folder_.string());
    return;
  }
  is_new_ = true;
  const std::string json = facts.json();
  const int descriptor = ::fileno(run_.get());
  VIT_CHECK(::pwrite(descriptor, json.data(), json.size(), 0) == std::ssize(json) && ::fsync(descriptor) == 0,
            kWhere, path.string(), ": writing failed: ", std::strerror(errno));
}

bool MapFolder::has(const fs::path& name) const {
  return std::ranges::all_of(endings_, [&](const std::string& ending) {
    std::error_code ignored;
    return fs::is_regular_file(folder_ / (name.string() + ending), ignored);
  });
}

void MapFolder::check_free(const fs::path& name) const {
  if (!is_new_) return;
  for (const std::string& ending : endings_) {
    std::error_code ignored;
    const fs::path path = folder_ / (name.string() + ending);
    VIT_CHECK(!fs::exists(path, ignored), kWhere, path.string(), " is there, and no ", kFactsFile,
              " says that an earlier run made it: --resume would take it for a result; move it, or name "
              "another folder");
  }
}

fs::path MapFolder::path_of(const fs::path& name, const std::string& ending) const {
  return result_path(folder_, name, ending);
}

namespace {

constexpr std::size_t kLargestPicture = 1200;  // edge, of a page

}  // namespace

bool DenseRunOptions::has_word(std::string_view word) const {
  return std::ranges::find(words, word) != words.end();
}

bool DenseRunOptions::writes_folder() const {
  return !output.empty() && means_folder(output);
}

bool DenseRunOptions::writes_arrays() const {
  return !output.empty() && !means_folder(output) && !writes_file();
}

bool DenseRunOptions::writes_file() const {
  const fs::path ending = output.extension();
  return !output.empty() && !means_folder(output) &&
         (ending == ".png" || ending == ".pfm" || ending == ".ply");
}

void add_dense_run_options(std::vector<Option>& list, DenseRunOptions& options,
                           std::span<const MapFormat> formats, const char* format_help) {
  std::vector<std::string> words{"json", "text"};
  for (const MapFormat& format : formats) words.emplace_back(format.word);
  const auto parse = [words](const std::string& word) {
    if (std::ranges::find(words, word) != words.end()) return word;
    std::string names;
    for (const std::string& known : words) names += (names.empty() ? "" : ", ") + known;
    fail_value("one of " + names, word);
  };
  list.push_back(inputs_option(options.inputs));
  list.push_back(
      {.name = "-o,--output",
       .type_name = "OUT",
       .help = "A file of arrays, .safetensors or .npz, FOLDER/ for files of each image, or FILE.png of one",
       .target = text_target(options.output)});
  list.push_back({.name = "--format",
                  .type_name = "LIST",
                  .help = format_help,
                  // with commas, or given again; what follows a value is an input
                  .target = offering({[&to = options.words, parse](const std::vector<std::string>& values) {
                                       to.clear();
                                       for (const std::string& value : values) {
                                         for (const std::string& word : split_at_commas(value))
                                           to.push_back(parse(word));
                                       }
                                     }},
                                     words),
                  .occurs = Occurs::repeated});
  list.push_back({.name = "--raw",
                  .type_name = "",
                  .help = "Write what the head gives, before it is brought to the size of the image",
                  .flag = &options.raw});
  list.push_back(shard_option(options.shard));
  list.push_back(
      {.name = "--resume",
       .type_name = "",
       .help = "Continue an interrupted run (FOLDER/): images whose files are there are passed over",
       .flag = &options.resume});
  list.push_back(html_option(options.html));
  add_dense_options(list, options.common.model_options.dense);
  add_image_run_options(list, options.common);
}

MapOutputs::MapOutputs(const char* command, const DenseRunOptions& options,
                       std::span<const MapFormat> formats, std::vector<std::string_view> fallback)
    : command_(command), options_(options) {
  if (options.resume && !options.writes_folder()) fail_usage("--resume continues --output FOLDER/");
  if (options.raw && !options.writes_arrays())
    fail_usage("--raw requires an output of arrays, .safetensors or .npz");
  if (options.writes_file()) take_file_format(formats);
  const auto is_named = [&](const MapFormat& format) { return options.has_word(format.word); };
  if (!options.writes_folder()) {
    for (const MapFormat& format : formats) {
      const bool is_printed = format.word == "csv";
      const bool is_written = !formats_.empty() && formats_.front().word == format.word;
      if (is_named(format) && !is_printed && !is_written)
        fail_usage("--format ", format.word, " requires --output FOLDER/",
                   options.output.empty() ? "" : ", found " + options.output.string());
    }
    return;
  }
  const bool has_named = std::ranges::any_of(formats, is_named);
  for (const MapFormat& format : formats) {
    const bool is_default = std::ranges::find(fallback, format.word) != fallback.end();
    if (has_named ? is_named(format) : is_default) formats_.push_back(format);
  }
}

/// The kind of a single file: of those with its ending the one that --format names, else the plain one.
void MapOutputs::take_file_format(std::span<const MapFormat> formats) {
  const std::string ending = options_.output.extension().string();
  if (options_.shard) fail_usage("--shard requires an output of arrays or FOLDER/");
  for (const MapFormat& format : formats) {
    const bool is_named = options_.has_word(format.word);
    if (format.ending.ends_with(ending) && (is_named || (formats_.empty() && format.ending == ending)))
      formats_.assign(1, format);
  }
  if (formats_.empty())
    fail_usage("--output ", options_.output.string(), ": vit ", command_, " writes no ", ending, " files");
}

int MapOutputs::run(ImageWork& work, std::vector<fs::path> reads) {
  if (options_.writes_folder()) {
    // Results depend on what is in these files, wherever they are.
    std::vector<std::string> digests;
    std::error_code ignored;
    for (const fs::path& file : reads)
      if (fs::is_regular_file(file, ignored)) digests.push_back(sha256(internal::SourceFile(file, command_)));
    note("contents", digests);
  }
  reads.push_back(options_.common.model_options.dense.head);
  return run_images({.name = command_,
                     .common = options_.common,
                     .inputs = options_.inputs,
                     .reads = std::move(reads),
                     .files = {options_.html},
                     .writes = {options_.output}},
                    work);
}

namespace {

/// What is missing, and a model that has it.
std::string missing_head(Output needed) {
  struct Example {
    Output output;
    std::string_view what, repository, command;
  };
  constexpr Example kExamples[] = {
      {Output::depth, "depth", "depth-anything/Depth-Anything-V2-Small-hf", "depth"},
      {Output::classes, "segments", "tue-mps/coco_panoptic_eomt_small_640_2x", "segment"},
      {Output::box_classes, "boxes", "hustvl/yolos-tiny", "detect"},
      {Output::boxes, "boxes", "hustvl/yolos-tiny", "detect"},
      {Output::heatmaps, "keypoints", "usyd-community/vitpose-base-simple", "pose"}};
  for (const Example& example : kExamples) {
    if (example.output != needed) continue;
    const std::string folder(example.repository.substr(example.repository.find('/') + 1));
    return text(
        "this model has no head for ", example.what, "; take one that has, such as: hf download ",
        example.repository, " --local-dir ", folder, "; vit ", example.command, " --model ", folder,
        " ... (a publisher's head file is joined with --head, and so is a file that has backbone and head)");
  }
  return "this model has no head that gives maps; a publisher's separate head file is joined with --head";
}

}  // namespace

const std::shared_ptr<const Model>& MapOutputs::load(ImageRun& run, Output needed) const {
  const Where where{command_, ErrorKind::mismatch};
  const std::shared_ptr<const Model>& model = run.load();
  const DenseConfig* const config = model->dense_config();
  VIT_CHECK(config != nullptr, where, model->report().path.string(), ": ", missing_head(needed));
  const bool has_masks = needed == Output::classes && config->find(Output::masks) != nullptr;
  VIT_CHECK(has_masks || config->find(needed) != nullptr, where, model->report().path.string(),
            " has a head that does not give ", to_string(needed), ": ", missing_head(needed));
  return model;
}

void MapOutputs::open(ImageRun& run) {
  hold_interrupts();  // from here on there are incomplete files
  take_inputs(run.list());
  open_output(run.model());
  skip_done(run.list());
}

/// Videos become frames; files are checked and named as those of the whole run, of which a part is kept.
void MapOutputs::take_inputs(InputList& list) {
  expand_videos(list, options_.common.model_options.max_pixels);
  names_ = result_names(list.inputs);
  if (options_.writes_folder()) check_files(list.inputs);
  if (options_.writes_file()) {
    if (list.inputs.size() != 1)
      fail_usage("--output ", options_.output.string(), " is the file of one image, and there are ",
                 list.inputs.size(), "; --output FOLDER/ writes one for each");
    std::error_code ignored;
    if (fs::equivalent(list.inputs.front().path, options_.output, ignored))
      fail_usage("--output: ", options_.output.string(), " is the input");
  }
  if (!options_.shard) return;
  first_index_ = options_.shard->begin(list.inputs.size());
  take_shard(names_, *options_.shard);
  take_shard(list, *options_.shard);
}

void MapOutputs::check_files(std::span<const Input> inputs) const {
  std::vector<std::string_view> endings;
  for (const MapFormat& format : formats_) {
    endings.push_back(format.ending);
    if (!format.more.empty()) endings.push_back(format.more);
  }
  check_result_files("--output", options_.output, names_, endings, inputs);
  const auto is_facts = [&](const fs::path& name) {
    return std::ranges::any_of(
        endings, [&](std::string_view ending) { return name.native() + std::string(ending) == kFactsFile; });
  };
  if (std::ranges::any_of(names_, is_facts))
    fail_usage("--output: the files of an input would replace ", kFactsFile,
               ", which says what made the folder; name fewer formats, or rename the input");
}

void MapOutputs::open_output(const Model& model) {
  if (options_.writes_arrays()) arrays_.emplace(options_.output);
  if (!options_.writes_folder()) return;
  std::vector<std::string> endings;
  std::string words;
  for (const MapFormat& format : formats_) {
    endings.emplace_back(format.ending);
    words += (words.empty() ? "" : ",") + std::string(format.word);
  }
  facts_.emplace_back("formats", words);
  const std::vector<std::string> features{command_};
  folder_.emplace(options_.output, std::move(endings),
                  RunFacts{.model = run_model(options_.common, model, features), .others = facts_},
                  options_.resume);
}

void MapOutputs::skip_done(InputList& list) {
  if (!folder_ || !options_.resume) return;
  for (const fs::path& name : names_) folder_->check_free(name);
  std::size_t left = 0;
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    if (folder_->has(names_[i])) continue;
    if (left != i) {
      list.inputs[left] = std::move(list.inputs[i]);
      names_[left] = std::move(names_[i]);
    }
    ++left;
  }
  list.inputs.resize(left);
  names_.resize(left);
}

void MapOutputs::note(std::string name, std::span<const std::string> values) {
  std::string lines;
  for (const std::string& value : values) lines += value + "\n";
  note(std::move(name), std::move(lines));
}

void MapOutputs::note(std::string name, std::string value) {
  facts_.emplace_back(std::move(name), std::move(value));
}

bool MapOutputs::writes(std::string_view word) const {
  return std::ranges::any_of(formats_, [&](const MapFormat& format) { return format.word == word; });
}

fs::path MapOutputs::path_of(std::size_t index, std::string_view word) const {
  if (options_.writes_file()) return options_.output;
  const auto found = std::ranges::find(formats_, word, &MapFormat::word);
  return folder_->path_of(names_[index], std::string(found->ending));
}

void MapOutputs::add_arrays(const ImageRun& run, std::size_t index, std::span<const NamedArray> arrays) {
  arrays_->add(first_index_ + index, run.inputs()[index].name, arrays);
}

void MapOutputs::add_to_page(const ImageRun& run, const Input& input, PageItem item, const Image& picture) {
  item.name = input.name;
  item.link = file_link(input);
  std::ranges::stable_sort(item.labels, std::ranges::greater{}, &PageLabel::score);
  if (!item.labels.empty()) item.score = item.labels.front().score;
  const std::size_t edge = thumbnail_edge(run.inputs().size(), kMaxPageBytes, kLargestPicture);
  item.thumbnail = {.webp = encode_thumbnail(picture, edge), .failure = {}, .size = picture.size()};
  page_.push_back(std::move(item));
}

void MapOutputs::print(ImageRun& run, const std::string& line) {
  run.progress().clear();
  print_result(line);
}

int MapOutputs::finish(ImageRun& run) {
  if (arrays_) arrays_->finish();
  run.progress().finish(arrays_ ? options_.output.string() + ": " + arrays_->summary() : "");
  if (!has_page()) return 0;
  HtmlPage page{.title = std::string("vit ") + command_,
                .facts = {count_of(page_.size(), "image")},
                .scores = PageScores::probability,
                .images = PageImages::large};
  set_failures(page, run.progress());
  page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(page_)});
  write_run_page(options_.html, std::move(page), run.inputs(), options_.common);
  return 0;
}

Image picture_of(const ImageRun& run, const Input& input, ImageSize size) {
  if (input.pixels != nullptr) return Image(size.height, size.width);
  return decode_input(input, run.preprocessor().decode_options());
}

}  // namespace vit::app
