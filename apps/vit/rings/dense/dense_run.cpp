#include "apps/vit/rings/dense/dense_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/parts_folder.h"
#include "apps/vit/outputs/result_names.h"
#include "vit/base/check.h"

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

fs::path MapFolder::path_of(const fs::path& name, const std::string& ending) const {
  return result_path(folder_, name, ending);
}

namespace {

constexpr std::size_t kLargestPicture = 1200;  // edge, of a page

/// Throws Error for a model whose head does not give it.
void check_gives(const char* command, const Model& model, MapMeaning needed) {
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(config != nullptr, (Where{command, ErrorKind::mismatch}), model.report().path.string(),
            " has no head that gives maps; a publisher's head file is given as ModelOptions::dense.head");
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
  list.push_back(html_option(options.html));
  add_dense_options(list, options.common.model_options.dense);
  add_image_run_options(list, options.common);
}

DenseRun::DenseRun(DenseJob job) : job_(std::move(job)) {
  const DenseRunOptions& options = job_.options;
  if (options.resume && !options.writes_folder()) fail_usage("--resume continues --output FOLDER/");
  if (options.raw && options.writes_folder())
    fail_usage("--raw requires an output of arrays, .safetensors or .npz");
}

int DenseRun::run(const Prepare& prepare, const Consume& consume) {
  prepare_ = prepare;
  consume_ = consume;
  return run_job();
}

int DenseRun::run_by(const Prepare& prepare, const std::function<void(ImageRun&)>& work) {
  prepare_ = prepare;
  work_ = work;
  return run_job();
}

int DenseRun::run_job() {
  const DenseRunOptions& options = job_.options;
  std::vector<std::filesystem::path> reads = job_.reads;
  reads.push_back(options.common.model_options.dense.head);
  return run_images({.name = job_.name,
                     .common = options.common,
                     .inputs = options.inputs,
                     .reads = std::move(reads),
                     .files = {options.html},
                     .writes = {options.output}},
                    *this);
}

std::optional<Request> DenseRun::load(ImageRun& run) {
  run_ = &run;
  run.load();
  check_gives(job_.name, model(), job_.needed);
  choose_formats();
  if (!prepare_()) return std::nullopt;
  hold_interrupts();  // from here on there are incomplete files
  take_inputs(run.list());
  open_output();
  skip_done(run.list());
  Request request;
  request.set_maps();
  return request;
}

void DenseRun::run_inputs(ImageRun& run, const Request& request) {
  if (work_) return work_(run);
  ImageWork::run_inputs(run, request);
}

std::string DenseRun::add(ImageRun& run, const StreamedImage& image) {
  Line line;
  const std::string failure = failure_of([&] { line = consume_(image, run.inputs()[image.index]); });
  if (!failure.empty() || !line.failure.empty()) return failure + line.failure;
  run.progress().clear();
  print_result(line.text);
  return "";
}

void DenseRun::choose_formats() {
  if (!job_.options.writes_folder()) return;
  for (const MapFormat& format : job_.formats) {
    if (job_.options.has_word(format.word)) formats_.push_back(format);
  }
  if (!formats_.empty()) return;
  for (const MapFormat& format : job_.formats) {
    if (std::ranges::find(job_.fallback, format.word) != job_.fallback.end()) formats_.push_back(format);
  }
}

/// Videos become frames; files are checked and named as those of the whole run, of which a part is kept.
void DenseRun::take_inputs(InputList& list) {
  expand_videos(list, job_.options.common.model_options.max_pixels);
  names_ = result_names(list.inputs);
  if (job_.options.writes_folder()) check_files(list.inputs);
  if (!job_.options.shard) return;
  first_index_ = job_.options.shard->begin(list.inputs.size());
  take_shard(names_, *job_.options.shard);
  take_shard(list, *job_.options.shard);
}

void DenseRun::check_files(std::span<const Input> inputs) const {
  std::vector<std::string_view> endings;
  for (const MapFormat& format : formats_) {
    endings.push_back(format.ending);
    if (!format.more.empty()) endings.push_back(format.more);
  }
  check_result_files("--output", job_.options.output, names_, endings, inputs);
  const auto is_facts = [&](const fs::path& name) {
    return std::ranges::any_of(
        endings, [&](std::string_view ending) { return name.native() + std::string(ending) == kFactsFile; });
  };
  if (std::ranges::any_of(names_, is_facts))
    fail_usage("--output: the files of an input would replace ", kFactsFile,
               ", which says what made the folder; name fewer formats, or rename the input");
}

void DenseRun::open_output() {
  const DenseRunOptions& options = job_.options;
  if (options.writes_arrays()) arrays_.emplace(options.output);
  if (!options.writes_folder()) return;
  std::vector<std::string> endings;
  std::string words;
  for (const MapFormat& format : formats_) {
    endings.emplace_back(format.ending);
    words += (words.empty() ? "" : ",") + std::string(format.word);
  }
  facts_.emplace_back("formats", words);
  const std::vector<std::string> features{job_.name};
  folder_.emplace(options.output, std::move(endings),
                  RunFacts{.model = run_model(options.common, model(), features), .others = facts_},
                  options.resume);
}

void DenseRun::skip_done(InputList& list) {
  if (!folder_ || !job_.options.resume) return;
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

void DenseRun::note(std::string name, std::string value) {
  facts_.emplace_back(std::move(name), std::move(value));
}

bool DenseRun::writes(std::string_view word) const {
  return std::ranges::any_of(formats_, [&](const MapFormat& format) { return format.word == word; });
}

std::filesystem::path DenseRun::path_of(std::size_t index, std::string_view word) const {
  const auto found = std::ranges::find(formats_, word, &MapFormat::word);
  return folder_->path_of(names_[index], std::string(found->ending));
}

void DenseRun::add_arrays(std::size_t index, std::span<const NamedArray> arrays) {
  arrays_->add(first_index_ + index, inputs()[index].name, arrays);
}

Image DenseRun::picture_of(const Input& input, ImageSize size) const {
  if (input.pixels != nullptr) return Image(size.height, size.width);
  return decode_input(input, preprocessor().decode_options());
}

void DenseRun::add_to_page(const Input& input, PageItem item, const Image& picture) {
  item.name = input.name;
  item.link = file_link(input);
  std::ranges::stable_sort(item.labels, std::ranges::greater{}, &PageLabel::score);
  if (!item.labels.empty()) item.score = item.labels.front().score;
  const std::size_t edge = thumbnail_edge(inputs().size(), kMaxPageBytes, kLargestPicture);
  item.thumbnail = {.webp = encode_thumbnail(picture, edge), .failure = {}, .size = picture.size()};
  page_.push_back(std::move(item));
}

int DenseRun::finish(ImageRun& run) {
  const DenseRunOptions& options = job_.options;
  if (arrays_) arrays_->finish();
  run.progress().finish(arrays_ ? options.output.string() + ": " + arrays_->summary() : "");
  if (!has_page()) return 0;
  HtmlPage page{.title = std::string("vit ") + job_.name,
                .facts = {count_of(page_.size(), "image")},
                .scores = PageScores::probability,
                .images = PageImages::large};
  page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(page_)});
  write_run_page(options.html, std::move(page), run.inputs(), options.common);
  return 0;
}

}  // namespace vit::app
