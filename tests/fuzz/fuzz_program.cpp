// Readers of the program, each by the function that its commands call.
#include "tests/fuzz/fuzz_program.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "apps/vit/classes/labels.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/inputs/video_orientation.h"
#include "apps/vit/outputs/jsonl_writer.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/rings/dense/boxes_file.h"
#include "apps/vit/rings/dense/panoptic_truth.h"
#include "apps/vit/rings/dense/prompts_file.h"
#include "apps/vit/rings/dense/truth_maps.h"
#include "apps/vit/rings/index/index_folder.h"
#include "apps/vit/rings/index/scan.h"
#include "tests/fuzz/in_memory_file.h"
#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "tests/support/movie_writer.h"
#include "tests/support/tar_writer.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/io/json_writer.h"
#include "vit/io/safetensors.h"

namespace vit::fuzz {
namespace {

constexpr auto kMemory = test::TemporaryFolder::Place::memory;

std::string pixels(std::initializer_list<std::size_t> shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) count *= size;
  return app::npy_header("<f4", std::vector(shape)) + std::string(count * sizeof(float), '\x3F');
}

constexpr std::size_t kDim = 4;

app::IndexModel index_model() {
  app::IndexModel model;
  model.model = "m";
  model.dim = kDim;
  return model;
}

/// An index of three vectors of four numbers, of which one file at a time is replaced.
class Index {
 public:
  explicit Index(const std::string& type) {
    const std::vector<app::IndexedFile> files{
        {"a.jpg", 10, 1.5, 4, 3}, {"b/\u00E9.png", 20, 2.5, 8, 6}, {"c", 3, 4, 5, 6}};
    Tensor<float> vectors(Shape{3, kDim});
    for (std::size_t i = 0; i < 3; ++i) vectors.view().row(i)[i] = 1.0f;
    const auto read = [&](std::size_t first, std::span<float> rows) {
      std::copy_n(vectors.view().row(first), rows.size(), rows.data());
    };
    app::IndexWriter(folder_.path())
        .commit({.model = index_model(), .type = type}, files, read, app::IndexSeal());
    for (const std::string& name : folder_.names())
      originals_.emplace_back(name, test::read_text(folder_ / name));
  }

  const std::string& original(std::string_view name) const {
    return std::ranges::find(originals_, name, &std::pair<std::string, std::string>::first)->second;
  }
  /// Reads the folder with `contents` in that file, and searches.
  void read(std::string_view name, std::string_view contents) {
    for (const auto& [other, bytes] : originals_) folder_.write(other, other == name ? contents : bytes);
    const app::IndexContents index = app::read_index_folder(folder_.path());
    const std::vector<float> query(index.vectors.dim(), 0.5f);
    const std::array<std::span<const float>, 1> queries{query};
    const std::vector<std::vector<app::Hit>> found = app::scan(index.vectors, queries, 2, 1);
    for (const app::Hit& hit : found.front()) {
      if (hit.index >= index.files.size()) throw std::logic_error("a vector was found that is of no file");
    }
  }

 private:
  test::TemporaryFolder folder_{kMemory};
  std::vector<std::pair<std::string, std::string>> originals_;
};

app::IndexModel page_index_model() {
  app::IndexModel model = index_model();
  model.features = app::kPageFeature;
  return model;
}

/// The lines of two pages of two vectors and of one.
std::string page_lines() {
  return app::index_line({"a.png", 10, 1.5, 4, 3, 2}) + "\n" +
         app::index_line({"b/\u00E9.png", 20, 2.5, 8, 6, 1}) + "\n";
}

/// Flat as by default.
Index& flat_index() {
  static Index index("Flat");
  return index;
}

app::RunFacts run_facts() {
  return {.model = {.model = "m",
                    .fingerprint = "f",
                    .features = "pooled,cls",
                    .size = "224",
                    .dtype = "float32",
                    .pad = "1,2,3"},
          .others = {{"format", "npy"}, {"part_size", "100"}}};
}

}  // namespace

void run_npy(std::string_view input) {
  try {
    if (app::npy_floats(input).num_elements() > input.size())
      throw std::logic_error("more numbers than bytes");
  } catch (const Error&) {  // not numbers of this kind, perhaps pixels
  }
  const InMemoryFile file(input);
  const app::PixelFile images(file.path());
  if (images.num_images() > input.size()) throw std::logic_error("more images than bytes");
  images.load(0);
  images.load(images.num_images() - 1);
}

std::vector<std::string> npy_seeds() {
  return {pixels({3, 1, 2}), pixels({2, 3, 1, 1})};
}

void run_truth_map(std::string_view input) {
  static const test::TemporaryFolder folder(kMemory);
  const char first = input.empty() ? '\0' : input.front();
  const std::filesystem::path path = folder.write(first == 'P'      ? "map.pfm"
                                                  : first == '\x93' ? "map.npy"
                                                  : first == '{'    ? "panoptic.json"
                                                                    : "map.png",
                                                  input);
  if (first == '{') {
    const std::vector<std::string> labels{"cat", "sky"};
    app::PanopticTruth(path, labels).segments("image");
    return;
  }
  constexpr double kScale = 1000.0;
  if (first != 'P' && first != '\x93') app::read_label_map(path);
  try {
    if (first != 'P' && first != '\x93') app::read_class_map(path);
  } catch (const Error&) {
    // a map of ids or depths is no defect of the file
  }
  app::read_depth_map(path, kScale);
}

std::vector<std::string> truth_map_seeds() {
  const std::vector<std::size_t> shape{2, 3};
  const std::string head = app::npy_header("<f4", shape), numbers(24, '\x3f');
  static const test::TemporaryFolder folder(kMemory);
  Tensor<std::uint16_t> depths(Shape{5, 4});
  app::write_gray_png(folder / "depths.png", depths, 16);
  const std::string panoptic = R"({"images": [{"id": 1, "file_name": "image.jpg"}],
    "categories": [{"id": 7, "name": "sky"}, {"id": 9, "name": "cat"}],
    "annotations": [{"image_id": 1, "file_name": "image.png", "segments_info":
      [{"id": 5, "category_id": 7, "iscrowd": 0}, {"id": 6, "category_id": 9, "iscrowd": 1}]}]})";
  return {panoptic, head + numbers, "Pf\n3 2\n-1.0\n" + numbers, test::read_text(folder / "depths.png")};
}

void run_labels(std::string_view input) {
  constexpr std::size_t kNumClasses = 3;
  static const test::TemporaryFolder folder(kMemory);
  ModelConfig config;
  config.head.num_classes = kNumClasses;
  const auto read = [&](const char* name) {
    const app::Labels labels(config, folder.write(name, input));
    if (labels.size() != kNumClasses || labels.name(0).size() > input.size())
      throw std::logic_error("labels that are none of the file");
    for (const char* wanted : {"cat", "Cat_a", "dog, hound", "2", ""}) {
      for (const std::size_t found : labels.find(wanted))
        if (found >= kNumClasses) throw std::logic_error("a class that is none");
    }
  };
  const char first = input.empty() ? '\0' : input.front();
  if (first == '[' || first == '{') return read("labels.json");
  try {
    read("labels.csv");
  } catch (const Error&) {
    read("labels.txt");
  }
}

std::vector<std::string> labels_seeds() {
  return {"cat\ndog, hound\ncow\n", "n01\tcat\r\nn02\tCat a\r\nn03\tcow\r\n", R"(["cat","dog","cow"])",
          R"({"id2label":{"0":"cat","2":"cow","1":"dog, hound"}})",
          "name,category\n\"a \"\"b\"\"\",0\ncat,1\n\"dog\nb\",9\n"};
}

void run_index_facts(std::string_view input) {
  flat_index().read("index.json", input);
}
std::vector<std::string> index_facts_seeds() {
  return {flat_index().original("index.json")};
}

void run_index_files(std::string_view input) {
  flat_index().read("files.jsonl", input);
}
std::vector<std::string> index_files_seeds() {
  return {flat_index().original("files.jsonl")};
}

void run_index_vectors(std::string_view input) {
  flat_index().read("vectors.safetensors", input);
}
std::vector<std::string> index_vectors_seeds() {
  return {flat_index().original("vectors.safetensors"), Index("SQfp16").original("vectors.safetensors")};
}

void run_index_partial(std::string_view input) {
  constexpr std::size_t kVectors = 3;
  static const test::TemporaryFolder folder(kMemory);
  folder.write("files.partial", input);
  folder.write("vectors.partial", std::string(kVectors * kDim * sizeof(float), '\x3F'));
  std::size_t num_rows = 0;
  {
    app::IndexWriter writer(folder.path());
    num_rows = writer.take_partial(index_model()).size();
    writer.add_partial({"more.jpg", 1, 2.5, 3, 4}, std::vector<float>(kDim));
  }
  if (num_rows > kVectors) throw std::logic_error("more rows than vectors");
  try {
    if (app::IndexWriter(folder.path()).take_partial(index_model()).size() == num_rows + 1) return;
  } catch (const Error& error) {
    throw std::logic_error(std::string("what is added after a cut is refused: ") + error.what());
  }
  throw std::logic_error("what is added after a cut is not read");
}

std::vector<std::string> index_partial_seeds() {
  const test::TemporaryFolder folder(kMemory);
  app::IndexWriter writer(folder.path());
  writer.take_partial(index_model());
  for (const char* name : {"a.jpg", "b/\u00E9.png"})
    writer.add_partial({name, 10, 1.5, 4, 3}, std::vector<float>(kDim));
  return {test::read_text(folder / "files.partial")};
}

void run_page_index(std::string_view input) {
  constexpr std::size_t kVectors = 3;
  static const test::TemporaryFolder folder(kMemory);
  const Tensor<float> vectors(Shape{kVectors, kDim});
  folder.write("files.jsonl", input);
  internal::write_safetensors(
      folder / "vectors.safetensors",
      std::array{internal::TensorToWrite{
          "vectors", internal::Dtype::f32, {kVectors, kDim}, std::as_bytes(vectors.flat())}});
  std::string facts;
  internal::JsonWriter json(facts);
  json.begin_object();
  page_index_model().write_members(json);
  json.member("dim", kDim)
      .member("type", "Flat")
      .key("largest_error")
      .json("0")
      .member("vectors", "vectors.safetensors");
  // as an attacker would write it
  json.member("files", static_cast<std::size_t>(std::ranges::count(input, '\n')) +
                           (!input.empty() && !input.ends_with('\n') ? 1 : 0));
  json.member("checksum", app::lines_checksum(input)).end_object();
  folder.write("index.json", facts);
  const app::IndexContents index = app::read_index_folder(folder.path());
  const std::vector<std::size_t> starts = app::vector_starts(index.files);
  if (starts.back() != kVectors) throw std::logic_error("another number of vectors than stored");
  for (std::size_t i = 0; i < index.files.size(); ++i) {
    std::vector<float> rows((starts[i + 1] - starts[i]) * kDim);
    index.vectors.read(starts[i], rows);
  }
}
std::vector<std::string> page_index_seeds() {
  return {page_lines()};
}

void run_page_index_partial(std::string_view input) {
  constexpr std::size_t kVectors = 3;
  static const test::TemporaryFolder folder(kMemory);
  folder.write("files.partial", input);
  folder.write("vectors.partial", std::string(kVectors * kDim * sizeof(float), '\x3F'));
  std::size_t num_taken = 0, num_rows = 0;
  {
    app::IndexWriter writer(folder.path());
    const std::vector<app::IndexedFile> files = writer.take_partial(page_index_model());
    num_rows = files.size();
    num_taken = app::vector_starts(files).back();
    if (num_taken > kVectors) throw std::logic_error("more rows than vectors");
    if (writer.add_partial({"more.png", 1, 2.5, 3, 4, 2}, std::vector<float>(2 * kDim)) != num_taken)
      throw std::logic_error("vectors are added elsewhere than after those taken");
  }
  try {
    if (app::IndexWriter(folder.path()).take_partial(page_index_model()).size() == num_rows + 1) return;
  } catch (const Error& error) {
    throw std::logic_error(std::string("what is added after a cut is refused: ") + error.what());
  }
  throw std::logic_error("what is added after a cut is not read");
}
std::vector<std::string> page_index_partial_seeds() {
  const test::TemporaryFolder folder(kMemory);
  {
    app::IndexWriter writer(folder.path());
    writer.take_partial(page_index_model());
    writer.add_partial({"a.png", 10, 1.5, 4, 3, 2}, std::vector<float>(2 * kDim));
  }
  return {test::read_text(folder / "files.partial")};
}

void run_jsonl_partial(std::string_view input) {
  static const test::TemporaryFolder folder(kMemory);
  folder.write("x.jsonl.partial", input);
  const app::ResultWriterOptions options{
      .path = folder / "x.jsonl", .format = app::ResultFormat::jsonl, .names = {"pooled"}, .resume = true};
  const Tensor<float> row(Shape{2});
  const app::ResultArray array{.shape = row.shape(), .data = row.data()};
  if (const std::string why = app::JsonlWriter(options).add("more.jpg", std::span(&array, 1)); !why.empty())
    throw std::logic_error(why);
  try {
    if (app::JsonlWriter(options).take_done("more.jpg")) return;
  } catch (const Error& error) {
    throw std::logic_error(std::string("what is added after a cut is refused: ") + error.what());
  }
  throw std::logic_error("what is added after a cut is not read");
}

std::vector<std::string> jsonl_partial_seeds() {
  return {R"({"file": "a.jpg", "pooled": [0.5, 1]})"
          "\n"
          R"({"file": "b/\u00e9.png", "pooled": [2, 3e-5]})"
          "\n"
          R"({"file": "c)"};
}

void run_paths(std::string_view input) {
  static const test::TemporaryFolder folder(kMemory);
  static const bool is_filled = [] {
    folder.write("a.jpg", "not read");
    folder.write("b.npy", pixels({2, 3, 1, 1}));
    folder.write("c.tar", test::tar({{"d.jpg", "first"}, {"e", "second"}}));
    folder.write("f/g.png", "not read");
    folder.write("f/h.txt", "not read");
    folder.write("j.tar.gz", "not read");
    return true;
  }();
  std::string text;
  for (const char c : input.substr(0, is_filled ? input.npos : 0)) {
    // A byte order mark in front is skipped, and "/" after it is the root of the machine.
    const bool is_start = text.empty() || text == "\xEF\xBB\xBF" || text.ends_with('\n');
    if (c == '/' && is_start) text += folder.path().string();
    text += c;
  }
  if (text.find("..") != text.npos) internal::fail("paths", "leads out of the folder");
  std::istringstream standard_input(text);
  const std::vector<std::string> arguments{"-"};
  const app::InputList list = app::list_inputs(arguments, standard_input);
  if (list.inputs.empty() && list.failures.empty())
    throw std::logic_error("neither images nor why there are none");
  if (!list.failures.empty()) internal::fail("paths", "not all of them lead to images");
}

std::vector<std::string> paths_seeds() {
  return {"/a.jpg\r\n/b.npy\n\n/c.tar\n/f\n", "/f/g.png\n/f/"};
}

void run_texts(std::string_view input) {
  static const test::TemporaryFolder folder(kMemory);
  const std::vector<std::string> lines =
      app::read_texts({.texts = {}, .file = folder.write("texts.txt", input)});
  for (const std::string& line : lines)
    if (line.find('\n') != line.npos) throw std::logic_error("a line of several");
  const app::TextInputs inputs{.texts = {"one"}, .file = folder.write("texts.jsonl", input)};
  if (app::read_texts(inputs).front() != "one")
    throw std::logic_error("the texts of the command line come first");
}

std::vector<std::string> texts_seeds() {
  return {"{\"text\": \"a cat\", \"id\": 1}\r\n\n  {\"text\": \"\\u00e9\"}\n"};
}

void run_boxes(std::string_view input) {
  const std::string person[] = {"person"};
  const app::BoxesFile boxes(input, "input");
  const std::vector<Box>* const found = boxes.find("a.jpg");
  for (const Box& box : found != nullptr ? *found : std::vector<Box>()) {
    if (!(box.x0 < box.x1 && box.y0 < box.y1)) throw std::logic_error("an empty box");
  }
  try {
    app::BoxesFile(input, "input", person);
  } catch (const Error&) {
    // boxes without labels are no defect of the file
  }
}

std::vector<std::string> boxes_seeds() {
  return {
      "{\"file\": \"a.jpg\", \"boxes\": [[1, 2.5, 3e1, 4]]}\r\n\n{\"file\": \"b\", \"box\": [0, 0, 1, "
      "1]}\n",
      "{\"file\": \"a.jpg\", \"boxes\": [{\"index\": 0, \"label\": \"person\", \"score\": 0.5, \"box\": "
      "[1, "
      "2, 3, 4]}, "
      "{\"label\": \"car\", \"bbox\": [-1, 2, 3, 4]}]}\n{\"file\": \"a.jpg\", \"poses\": []}\n"};
}

void run_prompts(std::string_view input) {
  std::size_t num_refused = 0;
  try {
    for (const auto& [file, lines] : app::parse_example_boxes(input, "input")) {
      for (const app::ExampleLine& line : lines) {
        if (!(line.box.x0 < line.box.x1 && line.box.y0 < line.box.y1)) throw std::logic_error("an empty box");
      }
    }
  } catch (const Error&) {
    ++num_refused;
  }
  try {
    for (const auto& [file, objects] : app::parse_objects(input, "input")) {
      for (const app::ObjectLine& object : objects) {
        if (object.points.empty() && object.box.empty() && object.mask.empty())
          throw std::logic_error("an object of nothing");
      }
    }
  } catch (const Error&) {
    if (num_refused != 0) throw;
  }
}

std::vector<std::string> prompts_seeds() {
  return {
      "{\"file\": \"a.jpg\", \"boxes\": [{\"box\": [1, 2.5, 3e1, 4], \"positive\": false, \"label\": "
      "\"bus\"}, [0, 0, 1, 1]]}\n",
      "{\"file\": \"a.jpg\", \"objects\": [{\"points\": [[1, 2, 1], [3, 4, 0]], \"box\": [1, 2, 3, 4], "
      "\"mask\": \"m.npy\", \"multimask\": false}]}\r\n\n{\"file\": \"b\", \"objects\": []}\n"};
}

void run_video_header(std::string_view input) {
  const InMemoryFile file(input);
  const int orientation = app::video_orientation(file.path()).value_or(1);
  if (orientation < 1 || orientation > 8) throw std::logic_error("no EXIF value");
}

std::vector<std::string> video_header_seeds() {
  return {test::small_movie({0, 1, -1, 0}), test::small_movie({-1, 0, 0, 1}, {0, -1, 1, 0}),
          test::movie_box("ftyp", "isom")};
}

void run_run_facts(std::string_view input) {
  app::parse_run_facts(std::string(input), "input").check_same(run_facts(), "input");
}

std::vector<std::string> run_facts_seeds() {
  return {run_facts().json()};
}

}  // namespace vit::fuzz
