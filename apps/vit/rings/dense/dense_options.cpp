#include "apps/vit/rings/dense/dense_options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/outputs/zip_writer.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"
#include "vit/io/safetensors.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
namespace {

constexpr const char* kGroup = "Dense head";
constexpr double kMostMetres = 1e6;

constexpr Named<ResizeRuleChoice> kResizeRules[]{{"auto", ResizeRuleChoice::automatic},
                                                 {"library", ResizeRuleChoice::library},
                                                 {"repository", ResizeRuleChoice::repository}};

std::vector<std::size_t> parse_taps(const std::string& list) {
  constexpr std::size_t kMostBlocks = 1023;
  std::vector<std::size_t> taps;
  for (const std::string& part : words_of(list, "blocks, such as 2,5,8,11"))
    taps.push_back(parse_integer(part, 0, kMostBlocks));
  return taps;
}

std::array<float, 2> parse_range(const std::string& value) {
  const std::vector<std::string> parts = words_of(value, "MIN,MAX in metres");
  if (parts.size() != 2) fail_value("MIN,MAX in metres", value);
  const double low = parse_real(parts[0], 0.0, kMostMetres), high = parse_real(parts[1], 0.0, kMostMetres);
  if (low >= high) fail_value("MIN,MAX in metres with MIN below MAX", value);
  return {static_cast<float>(low), static_cast<float>(high)};
}

float parse_depth(const std::string& value) {
  return static_cast<float>(parse_real(value, 1e-3, kMostMetres));
}

}  // namespace

void add_dense_options(std::vector<Option>& list, DenseOptions& options) {
  list.push_back({.name = "--head",
                  .type_name = "FILE",
                  .help = "A publisher's head file for the backbone of --model",
                  .target = text_target(options.head),
                  .group = kGroup});
  list.push_back({.name = "--taps",
                  .type_name = "LIST",
                  .help = "Blocks whose tokens the head reads, from 0: 2,5,8,11; default: as published",
                  .target = parsed_target(options.taps, parse_taps),
                  .group = kGroup});
  list.push_back({.name = "--depth-range",
                  .type_name = "MIN,MAX",
                  .help = "Nearest and farthest depth of a head's bins, in metres; default: as published",
                  .target = parsed_target(options.depth_range, parse_range),
                  .group = kGroup});
  list.push_back({.name = "--max-depth",
                  .type_name = "M",
                  .help = "Largest depth of a metric model, in metres; default: as published",
                  .target = parsed_target(options.max_depth, parse_depth),
                  .group = kGroup});
  list.push_back({.name = "--expert",
                  .type_name = "N",
                  .help = "Data set whose layers a model with experts uses (ViTPose+), from 0; 0 = COCO",
                  .target = integer_target<std::size_t>(options.expert, 0, 63),
                  .group = kGroup});
  list.push_back({.name = "--resize-rule",
                  .type_name = "RULE",
                  .help = "Whose rules resize images and maps: library (transformers) or repository (the "
                          "publisher's code); auto: those of the files",
                  .target = choice_target(options.resize_rule, kResizeRules),
                  .group = kGroup});
}

namespace {

template <typename Number>
NamedArray array_of(std::string name, TensorView<const Number> view, Dtype dtype) {
  NamedArray out{.name = std::move(name), .dtype = dtype, .shape = {}, .bytes = {}};
  for (std::size_t i = 0; i < view.rank(); ++i) out.shape.push_back(view.dim(i));
  const auto bytes = std::as_bytes(view.flat());
  out.bytes.assign(bytes.begin(), bytes.end());
  return out;
}

}  // namespace

NamedArray NamedArray::of(std::string name, TensorView<const float> view) {
  return array_of(std::move(name), view, Dtype::f32);
}

NamedArray NamedArray::of(std::string name, TensorView<const std::int32_t> view) {
  return array_of(std::move(name), view, Dtype::i32);
}

NamedArray NamedArray::of(std::string name, TensorView<const std::uint8_t> view) {
  return array_of(std::move(name), view, Dtype::u8);
}

struct MapArrays::State {
  struct Entry {
    std::string name;
    Dtype dtype;
    std::vector<std::size_t> shape;
    std::size_t bytes;
  };
  fs::path path;
  Spool spool;
  std::vector<Entry> entries;
  std::vector<std::string> files;
};

MapArrays::MapArrays(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension != ".safetensors" && extension != ".npz")
    fail_usage("--output must end in .safetensors or .npz, or in / for a folder; found '", path.string(),
               "'");
  check_output_place(path);
  state_ = std::make_unique<State>(State{path, Spool(path), {}, {}});
}
MapArrays::~MapArrays() = default;

void MapArrays::add(std::size_t index, const std::string& file, std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays) {
    state_->spool.append(array.bytes);
    state_->entries.push_back({text(array.name, ".", index), array.dtype, array.shape, array.bytes.size()});
  }
  state_->files.push_back(file);
}

void MapArrays::finish() {
  std::span<const std::byte> rest = state_->spool.view();
  const auto take = [&](std::size_t count) {
    const std::span<const std::byte> bytes = rest.first(count);
    rest = rest.subspan(count);
    return bytes;
  };
  if (state_->path.extension() == ".safetensors") {
    std::vector<TensorToWrite> tensors;
    for (const State::Entry& entry : state_->entries)
      tensors.push_back({entry.name, entry.dtype, entry.shape, take(entry.bytes)});
    std::string files;
    JsonWriter(files).array(state_->files);
    return write_safetensors(state_->path, tensors, {{"files", files}});
  }
  AtomicFile file(state_->path, "write");
  ZipWriter archive(file);
  for (const State::Entry& entry : state_->entries) {
    const std::string header = npy_header(entry.dtype == Dtype::i32  ? "<i4"
                                          : entry.dtype == Dtype::u8 ? "|u1"
                                                                     : "<f4",
                                          entry.shape);
    archive.add(entry.name + ".npy",
                std::array{std::as_bytes(std::span(std::string_view(header))), take(entry.bytes)});
  }
  const std::string strings = npy_strings(state_->files);
  archive.add("files.npy", std::array{std::as_bytes(std::span(std::string_view(strings)))});
  archive.finish();
  file.commit();
}

std::string MapArrays::summary() const {
  return text(state_->entries.size(), " arrays of ", state_->files.size(), " images");
}

}  // namespace vit::app
