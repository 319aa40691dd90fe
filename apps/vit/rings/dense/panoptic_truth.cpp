#include "apps/vit/rings/dense/panoptic_truth.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/vit/rings/dense/truth_maps.h"
#include "vit/base/check.h"
#include "vit/io/json.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
namespace {

constexpr Where kNoMatch{"evaluate", ErrorKind::mismatch};
constexpr std::size_t kMaxAnnotationBytes = std::size_t{1} << 30;

std::string stem_of(std::string_view file) {
  return fs::path(file).stem().string();
}

/// The model's class of each category.
std::map<std::size_t, std::size_t> classes_of(const Json& json, std::span<const std::string> labels) {
  std::map<std::size_t, std::size_t> by_name, by_place;
  const auto categories = json.find("categories");
  for (std::size_t i = 0; categories && i < categories->size(); ++i) {
    const Json category = (*categories)[i];
    const std::size_t id = category.at("id").as_size({0, 1u << 20});
    by_place[id] = i;
    const auto label = std::ranges::find(labels, category.at("name").as_string());
    if (label != labels.end()) by_name[id] = static_cast<std::size_t>(label - labels.begin());
  }
  return by_name.empty() ? by_place : by_name;
}

std::size_t class_of(const std::map<std::size_t, std::size_t>& classes, const Json& id) {
  const std::size_t number = id.as_size({0, 1u << 20});
  if (classes.empty()) return number;
  const auto found = classes.find(number);
  VIT_CHECK(found != classes.end(), kNoMatch, id.where(), ": category ", number,
            " is none of the categories, or has a name that is no label of the model");
  return found->second;
}

/// The names of images by their numbers.
std::map<std::int64_t, std::string> names_of(const Json& json) {
  std::map<std::int64_t, std::string> names;
  const auto images = json.find("images");
  for (std::size_t i = 0; images && i < images->size(); ++i) {
    const Json image = (*images)[i];
    names[image.at("id").as_integer()] = stem_of(image.at("file_name").as_string());
  }
  return names;
}

/// The name of the image that an annotation is for: itself, a number of `names`, or that of its PNG.
std::string name_of(const Json& annotation, const std::map<std::int64_t, std::string>& names) {
  const auto image = annotation.find("image_id");
  if (image && image->is_string()) return std::string(image->as_string());
  const auto known = image && image->is_number() ? names.find(image->as_integer()) : names.end();
  return known != names.end() ? known->second : stem_of(annotation.at("file_name").as_string());
}

std::vector<PanopticSegment> read_segments(const Json& infos,
                                           const std::map<std::size_t, std::size_t>& classes) {
  std::vector<PanopticSegment> segments;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const Json info = infos[i];
    segments.push_back({.id = static_cast<std::int32_t>(info.at("id").as_size({0, 1u << 24})),
                        .index = class_of(classes, info.at("category_id")),
                        .is_crowd = info.find_size("iscrowd").value_or(0) != 0});
  }
  return segments;
}

}  // namespace

PanopticTruth::PanopticTruth(const fs::path& path, std::span<const std::string> labels) : path_(path) {
  const Json json = load_json(path, {.max_bytes = kMaxAnnotationBytes});
  const std::map<std::size_t, std::size_t> classes = classes_of(json, labels);
  const Json annotations = json.at("annotations");
  const std::map<std::int64_t, std::string> names = names_of(json);
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const Json annotation = annotations[i];
    entries_[name_of(annotation, names)] = {
        .png = std::string(annotation.at("file_name").as_string()),
        .segments = read_segments(annotation.at("segments_info"), classes)};
  }
  folder_ = folder_of(path);
}

fs::path PanopticTruth::folder_of(const fs::path& path) {
  // with the name of the annotations, or the one that they are in
  std::error_code error;
  const fs::path own = path.parent_path() / path.stem();
  if (fs::is_directory(own, error)) return own;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Tensor<std::int32_t> PanopticTruth::map(const fs::path& name, ImageSize size) const {
  const fs::path path = folder_ / entry(name).png;
  Tensor<std::int32_t> out = read_label_map(path);
  check_map_size(out.shape(), size, path);
  for (std::int32_t& id : out.flat()) id = id == 0 ? -1 : id;
  return out;
}

const PanopticTruth::Entry& PanopticTruth::entry(const fs::path& name) const {
  const auto found = entries_.find(name.filename().string());
  VIT_CHECK(found != entries_.end(), kNoMatch, path_.string(), ": no annotation of an image ", name.string());
  return found->second;
}

}  // namespace vit::app
