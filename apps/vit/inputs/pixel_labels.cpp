#include "apps/vit/inputs/pixel_labels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apps/vit/inputs/label_shapes.h"
#include "apps/vit/inputs/png_values.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/io/source_file.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
namespace {

constexpr Where kLabels{"labels", ErrorKind::format};
constexpr std::size_t kMaxLabelBytes = std::size_t{1} << 30;
constexpr std::size_t kMostColors = 64;  // of strokes
constexpr std::int64_t kNoClass = 255;   // of indices

std::string color_name(std::int64_t value) {
  char name[16];
  std::snprintf(name, sizeof name, "#%06x", static_cast<unsigned>(value & 0xffffff));
  return name;
}

/// Throws Error if two colors are so alike that they were meant to be one.
void check_colors(const PixelLabels& labels) {
  VIT_CHECK(labels.found.size() <= kMostColors, kLabels, labels.file, ": strokes of ", labels.found.size(),
            " colors; each color is a class: paint with a few, without soft edges (antialiasing)");
  constexpr std::int64_t kAlike = 8;  // of 255
  for (std::size_t a = 0; a < labels.found.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::int64_t difference = 0;
      for (int shift = 0; shift < 24; shift += 8) {
        const std::int64_t of_a = labels.found[a] >> shift & 255, of_b = labels.found[b] >> shift & 255;
        difference = std::max(difference, std::abs(of_a - of_b));
      }
      VIT_CHECK(
          difference > kAlike, kLabels, labels.file, ": the colors ", color_name(labels.found[b]), " and ",
          color_name(labels.found[a]),
          " of two classes are nearly the same; paint without soft edges (antialiasing), or with colors that "
          "differ");
    }
  }
}

/// Throws Error if two indices that occur have one color of the palette.
void check_palette(const PngValues& png, const PixelLabels& labels) {
  for (std::size_t a = 0; a < labels.found.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const auto of_a = static_cast<std::size_t>(labels.found[a]),
                 of_b = static_cast<std::size_t>(labels.found[b]);
      VIT_CHECK(
          of_a >= png.palette.size() || of_b >= png.palette.size() || png.palette[of_a] != png.palette[of_b],
          kLabels, labels.file, ": the classes ", labels.found[b], " and ", labels.found[a],
          " have the same color in the palette; whoever painted them saw one class");
    }
  }
}

void collect_values(PixelLabels& labels) {
  std::unordered_set<std::int64_t> seen;
  std::int64_t last = kUnlabeled;
  for (const std::int64_t value : labels.values.flat()) {
    if (value == last || value == kUnlabeled) continue;
    last = value;
    if (seen.insert(value).second) labels.found.push_back(value);
  }
}

PixelLabels read_png_labels(const fs::path& path, std::span<const std::size_t> unlabeled) {
  const PngValues png = read_png_values(path, kLabels);
  PixelLabels out{.kind = png.channels == 3 ? LabelKind::colors : LabelKind::indices,
                  .file = path.string(),
                  .values = Tensor<std::int64_t>(png.values.shape())};
  constexpr std::int32_t kGray = 1 + 256 + 65536;  // of three equal bytes
  const bool is_gray = png.channels == 3 && png.alpha.empty() &&
                       std::ranges::all_of(png.values.flat(), [](std::int32_t v) { return v % kGray == 0; });
  if (is_gray) out.kind = LabelKind::indices;
  VIT_CHECK(
      png.channels == 1 || is_gray || !png.alpha.empty(), kLabels, path.string(),
      ": is an RGB image without transparency; labels are indices in a gray or palette PNG, or strokes on a "
      "transparent one (RGBA, alpha 0 = not labeled)");
  VIT_CHECK(png.bits <= 8, kLabels, path.string(), ": a PNG of ", png.bits, " bits; labels have 8");
  for (std::size_t i = 0; i < png.values.num_elements(); ++i) {
    std::int64_t value = png.values.data()[i];
    if (is_gray) value /= kGray;
    bool is_none = !png.alpha.empty() && png.alpha.data()[i] == 0;
    if (out.kind == LabelKind::colors) {
      value = (value & 255) << 16 | (value & 0xff00) | value >> 16;
    } else {
      is_none = is_none || value == kNoClass ||
                std::ranges::find(unlabeled, static_cast<std::size_t>(value)) != unlabeled.end();
    }
    out.values.data()[i] = is_none ? kUnlabeled : value;
  }
  collect_values(out);
  if (out.kind == LabelKind::colors) check_colors(out);
  if (!png.palette.empty()) check_palette(png, out);
  return out;
}

/// An empty map of the size that a file states, or else of its image.
Tensor<std::int64_t> empty_map(ImageSize stated, std::optional<ImageSize> image, const std::string& file) {
  const ImageSize size = stated.height != 0 && stated.width != 0 ? stated : image.value_or(ImageSize{1, 1});
  VIT_CHECK(checked_mul(size.height, size.width, kLabels) <= kMaxImagePixels, kLabels, file, ": an image of ",
            size.height, " x ", size.width);
  Tensor<std::int64_t> map(Shape{size.height, size.width});
  std::ranges::fill(map.flat(), kUnlabeled);
  return map;
}

std::string file_name_of(const std::string& path) {
  return fs::path(path).filename().string();
}

}  // namespace

struct LabelFiles::Annotations {
  Annotations(AnnotatedImages images, bool are_of_coco) : labels(std::move(images)), are_coco(are_of_coco) {
    for (std::size_t i = 0; i < labels.images.size(); ++i)
      by_name[file_name_of(labels.images[i].file)].push_back(i);
  }

  AnnotatedImages labels;
  bool are_coco;                                                      // else CVAT's
  std::unordered_map<std::string, std::vector<std::size_t>> by_name;  // images, by names without folders

  /// The image whose file is that of an input: of the longest common end, or of its name without extension.
  const AnnotatedImages::Image* find(const Input& input) const {
    const AnnotatedImages::Image* found = nullptr;
    std::size_t longest = 0;
    const auto of_name = by_name.find(file_name_of(input.name));
    if (of_name == by_name.end()) return nullptr;
    for (const std::size_t index : of_name->second) {
      const AnnotatedImages::Image& image = labels.images[index];
      const bool is_end =
          input.name.ends_with(image.file) && (input.name.size() == image.file.size() ||
                                               input.name[input.name.size() - image.file.size() - 1] == '/');
      const std::size_t common = is_end ? image.file.size() + 1 : 1;
      if (common <= longest) continue;
      longest = common;
      found = &image;
    }
    return found;
  }
};

LabelFiles::LabelFiles(const fs::path& truth, std::vector<std::size_t> unlabeled)
    : truth_(truth), unlabeled_(std::move(unlabeled)) {
  std::error_code error;
  if (fs::is_directory(truth, error)) return;
  VIT_CHECK(fs::is_regular_file(truth, error), kLabels.with(ErrorKind::io), truth.string(),
            ": no such folder of labels, and no file of COCO or CVAT");
  if (truth.extension() == ".xml") {
    const SourceFile file(truth, kLabels.with(ErrorKind::io));
    VIT_CHECK(file.size() <= kMaxLabelBytes, kLabels, truth.string(), ": a file of ", file.size(), " bytes");
    annotations_.reset(new Annotations(parse_cvat(file.text(), truth.string()), /*are_of_coco=*/false));
    return;
  }
  VIT_CHECK(
      truth.extension() == ".json", kLabels, truth.string(),
      ": labels are a folder of files named as the images, a COCO file, .json, or one of CVAT for images, "
      ".xml");
  annotations_.reset(
      new Annotations(parse_coco(load_json(truth, {.max_bytes = kMaxLabelBytes})), /*are_of_coco=*/true));
}
LabelFiles::~LabelFiles() = default;

std::optional<PixelLabels> LabelFiles::read(const Input& input, const fs::path& name,
                                            std::optional<ImageSize> size) {
  std::error_code error;
  if (annotations_) {
    const AnnotatedImages::Image* const image = annotations_->find(input);
    if (image == nullptr || (image->shapes.empty() && image->named.empty())) return std::nullopt;
    ImageSize stated = image->size;
    for (const CocoShape& shape : image->shapes) {
      if (shape.size.height == 0) continue;
      VIT_CHECK(stated.height == 0 || stated == shape.size, kLabels, truth_.string(), ": ", image->file,
                " is ", stated.width, " x ", stated.height, ", and run lengths of it are for ",
                shape.size.width, " x ", shape.size.height);
      stated = shape.size;
    }
    PixelLabels out{.kind = annotations_->are_coco ? LabelKind::coco : LabelKind::cvat,
                    .file = truth_.string(),
                    .values = empty_map(stated, size, truth_.string())};
    for (const CocoShape& shape : image->shapes) {
      for (const auto& polygon : shape.polygons) fill_polygon(polygon, shape.category, out.values);
      if (!shape.runs.empty()) fill_runs(shape.runs, shape.category, out.values);
    }
    fill_named(image->named, out);
    collect_values(out);
    return out;
  }
  const fs::path png = truth_ / (name.string() + ".png"), json = truth_ / (name.string() + ".json");
  if (fs::is_regular_file(png, error) && !fs::equivalent(png, input.path, error))
    return read_png_labels(png, unlabeled_);
  if (!fs::is_regular_file(json, error)) return std::nullopt;
  const LabelmeFile file = parse_labelme(load_json(json, {.max_bytes = kMaxLabelBytes}));
  PixelLabels out{
      .kind = LabelKind::labelme, .file = json.string(), .values = empty_map(file.size, size, json.string())};
  fill_named(file.shapes, out);
  collect_values(out);
  return out;
}

void LabelFiles::fill_named(std::span<const LabelShape> shapes, PixelLabels& out) {
  for (const LabelShape& shape : shapes) {
    const std::int64_t value =
        shapes_.emplace(shape.label, static_cast<std::int64_t>(shapes_.size())).first->second;
    fill_shape(shape, value, out.values);
  }
}

std::string LabelFiles::name_of(LabelKind kind, std::int64_t value) const {
  if (kind == LabelKind::colors) return color_name(value);
  if (kind == LabelKind::labelme || kind == LabelKind::cvat) {
    for (const auto& [name, number] : shapes_) {
      if (number == value) return name;
    }
  }
  if (kind == LabelKind::coco && annotations_) {
    const auto found = annotations_->labels.categories.find(value);
    if (found != annotations_->labels.categories.end()) return found->second;
  }
  return std::to_string(value);
}

void LabelClasses::add(const PixelLabels& labels) {
  if (labels.found.empty()) return;
  if (values_.empty()) {
    kind_ = labels.kind;
    first_file_ = labels.file;
  }
  constexpr const char* kKinds[]{"indices", "strokes in colors", "categories of COCO", "shapes of LabelMe",
                                 "shapes of CVAT"};
  VIT_CHECK(kind_ == labels.kind, kLabels.with(ErrorKind::mismatch), labels.file, ": has ",
            kKinds[static_cast<int>(labels.kind)], ", and ", first_file_, " ",
            kKinds[static_cast<int>(kind_)], "; all labels of a run must be of one kind");
  for (const std::int64_t value : labels.found) {
    if (std::ranges::find(values_, value) == values_.end()) values_.push_back(value);
  }
}

void LabelClasses::sort(const LabelFiles& files) {
  if (kind_ == LabelKind::colors) return;
  if (kind_ == LabelKind::labelme || kind_ == LabelKind::cvat) {
    std::ranges::sort(values_, {}, [&](std::int64_t value) { return files.name_of(kind_, value); });
  } else {
    std::ranges::sort(values_);
  }
}

Tensor<std::int32_t> LabelClasses::classes_of(const PixelLabels& labels) const {
  std::unordered_map<std::int64_t, std::int32_t> numbers{{kUnlabeled, -1}};
  for (std::size_t k = 0; k < values_.size(); ++k) numbers[values_[k]] = static_cast<std::int32_t>(k);
  Tensor<std::int32_t> out(labels.values.shape());
  std::ranges::transform(labels.values.flat(), out.data(),
                         [&](std::int64_t value) { return numbers.at(value); });
  return out;
}

}  // namespace vit::app
