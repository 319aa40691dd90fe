#include "apps/vit/commands/dense/dense_run.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/parts_folder.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

/// Lists what is to be done, and keeps the part of a shard; `first_index` is its place among all.
InputList take_inputs(const DenseRunOptions& options, std::size_t& first_index) {
  if (options.resume && !options.writes_folder()) fail_usage("--resume continues --output FOLDER/");
  if (options.raw && options.writes_folder())
    fail_usage("--raw goes with an output of arrays, .safetensors or .npz");
  InputList list = list_inputs(options.inputs, std::cin);
  if (!options.output.empty()) {
    check_no_input(options.output, list.inputs);
    check_no_weights(options.output, options.common);
  }
  if (options.shard) {
    first_index = options.shard->begin(list.inputs.size());
    take_shard(list, *options.shard);
  }
  return list;
}

/// The sandbox closes before the model is read.
ImageRun load(const char* command, const DenseRunOptions& options, const InputList& list,
              std::vector<std::filesystem::path> others, const std::filesystem::path& page) {
  check_html(page, list.inputs, options.common);
  others.push_back(options.common.model_options.dense.head);
  confine(options.common, list.inputs, std::move(others), {options.output, page});
  return ImageRun(command, options.common);
}

void check_gives(const char* command, const Model& model, MapMeaning needed) {
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(config != nullptr, (Where{command, ErrorKind::mismatch}), model.report().path.string(),
            " has no head that gives maps; a publisher's head file joins it as ModelOptions::dense.head");
  const bool has_masks = needed == MapMeaning::classes && config->find(MapMeaning::masks) != nullptr;
  VIT_CHECK(has_masks || config->find(needed) != nullptr, (Where{command, ErrorKind::mismatch}),
            model.report().path.string(), " has a head that does not give ", to_string(needed));
}

template <typename Parse>
void add_words(const std::string& list, const Parse& parse, std::vector<std::string>& words) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(parse(list.substr(begin, end - begin)));
    begin = end + 1;
  }
}

}  // namespace

bool DenseRunOptions::has_word(std::string_view word) const {
  return std::ranges::find(words, word) != words.end();
}

bool DenseRunOptions::writes_folder() const {
  return !output.empty() && means_folder(output);
}

bool DenseRunOptions::writes_arrays() const {
  return !output.empty() && !means_folder(output);
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
  list.push_back({.name = "-o,--output",
                  .type_name = "OUT",
                  .help = "A file of arrays, .safetensors or .npz, or FOLDER/ for files of each image",
                  .target = text_target(options.output)});
  list.push_back({.name = "--format",
                  .type_name = "LIST",
                  .help = format_help,
                  // with commas, or given again; what follows a value is an input
                  .target = offering({[&to = options.words, parse](const std::vector<std::string>& values) {
                                       to.clear();
                                       for (const std::string& value : values) add_words(value, parse, to);
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
  add_dense_options(list, options.common.model_options.dense);
  add_image_run_options(list, options.common);
}

DenseRun::DenseRun(const char* command, const DenseRunOptions& options, std::span<const MapFormat> formats,
                   std::vector<std::string_view> fallback, MapMeaning needed,
                   std::vector<std::filesystem::path> others, const std::filesystem::path& page)
    : options_(options),
      list_(take_inputs(options, first_index_)),
      run_(load(command, options, list_, std::move(others), page)) {
  check_gives(command, model(), needed);
  hold_interrupts();
  open_output(formats, fallback, command);
  skip_done();
}

void DenseRun::open_output(std::span<const MapFormat> formats, std::span<const std::string_view> fallback,
                           const char* command) {
  if (options_.writes_arrays()) arrays_.emplace(options_.output);
  if (!options_.writes_folder()) return;
  for (const MapFormat& format : formats) {
    if (options_.has_word(format.word)) formats_.push_back(format);
  }
  const bool has_files = !formats_.empty();
  for (const MapFormat& format : formats) {
    const bool is_default = std::ranges::find(fallback, format.word) != fallback.end();
    if (is_default && !has_files) formats_.push_back(format);
  }
  std::vector<std::string> endings;
  std::string words;
  for (const MapFormat& format : formats_) {
    endings.emplace_back(format.ending);
    words += (words.empty() ? "" : ",") + std::string(format.word);
  }
  const std::vector<std::string> features{command};
  folder_.emplace(
      options_.output, std::move(endings),
      RunFacts{.model = run_model(options_.common, model(), features), .others = {{"formats", words}}},
      options_.resume);
  names_ = result_names(list_.inputs);
}

void DenseRun::skip_done() {
  if (!folder_ || !options_.resume) return;
  InputList left{.inputs = {}, .failures = std::move(list_.failures), .notes = std::move(list_.notes)};
  std::vector<std::filesystem::path> names;
  for (std::size_t i = 0; i < list_.inputs.size(); ++i) {
    if (folder_->has(names_[i])) continue;
    left.inputs.push_back(std::move(list_.inputs[i]));
    names.push_back(std::move(names_[i]));
  }
  list_ = std::move(left);
  names_ = std::move(names);
}

bool DenseRun::writes(std::string_view word) const {
  return std::ranges::any_of(formats_, [&](const MapFormat& format) { return format.word == word; });
}

std::filesystem::path DenseRun::path_of(std::size_t index, std::string_view word) const {
  const auto found = std::ranges::find(formats_, word, &MapFormat::word);
  return folder_->path_of(names_[index], std::string(found->ending));
}

void DenseRun::add_arrays(std::size_t index, std::span<const NamedArray> arrays) {
  arrays_->add(first_index_ + index, input(index).name, arrays);
}

int DenseRun::run(const Consume& consume) {
  Request request;
  request.set_maps();
  return run_by([&](ImageRun& images) {
    images.for_each_sized(request, [&](const StreamedImage& image) -> std::string {
      const Line line = consume(image, input(image.index));
      if (!line.failure.empty()) return line.failure;
      images.progress().clear();
      print_result(line.text);
      return "";
    });
  });
}

int DenseRun::run_by(const std::function<void(ImageRun& run)>& work) {
  run_.start(std::move(list_));
  work(run_);
  if (!arrays_) return run_.finish();
  arrays_->finish();
  return run_.finish(options_.output.string() + ": " + arrays_->summary());
}

Image picture_of(const Input& input, ImageSize size, const DecodeOptions& options) {
  if (input.pixels != nullptr) return Image(size.height, size.width);
  return decode_input(input, options);
}

}  // namespace vit::app
