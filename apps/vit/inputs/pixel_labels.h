// Labels of single pixels of images, as people store them: maps of indices, strokes on transparent images,
// polygons and run lengths of COCO, shapes of LabelMe and CVAT. Letters: H, W = height and width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit::app {

struct LabelShape;

/// What the values of labels are.
enum class LabelKind {
  indices,  // gray values or indices of a palette
  colors,   // of strokes: 65536 r + 256 g + b
  coco,     // ids of categories
  labelme,  // numbers of names
  cvat,     // the same
};

/// The labels of one image.
struct PixelLabels {
  LabelKind kind = LabelKind::indices;
  std::string file;                   // that they are from, for messages
  Tensor<std::int64_t> values;        // (H, W), kUnlabeled = none
  std::vector<std::int64_t> found{};  // different values, in the order of their first pixels
};
inline constexpr std::int64_t kUnlabeled = -1;

/// Reads the labels of images. A label file may be named later than another, which then covers it.
class LabelFiles {
 public:
  /// `truth`: a folder with NAME.png or NAME.json (LabelMe) for each image, a COCO file, .json, or one of
  /// CVAT for images, .xml. `unlabeled`: indices that are no labels, besides 255. Throws Error if it cannot
  /// be read.
  LabelFiles(const std::filesystem::path& truth, std::vector<std::size_t> unlabeled);
  ~LabelFiles();

  /// The labels of an image, whose results are named `name` (result_names.h); nothing if there are none.
  /// Throws Error that names the file and its defect. `size`: of the image, which files of shapes may leave
  /// out; nothing = not known yet.
  std::optional<PixelLabels> read(const Input& input, const std::filesystem::path& name,
                                  std::optional<ImageSize> size);
  /// The name of a value: "3", "#ff0000", that of a category or shape.
  std::string name_of(LabelKind kind, std::int64_t value) const;

 private:
  struct Annotations;
  void fill_named(std::span<const LabelShape> shapes, PixelLabels& out);

  std::filesystem::path truth_;
  std::vector<std::size_t> unlabeled_;
  std::unique_ptr<Annotations> annotations_;    // null unless the truth is a file
  std::map<std::string, std::int64_t> shapes_;  // numbers of the names of LabelMe and CVAT
};

/// The classes of the labels of a run: an index for each value.
class LabelClasses {
 public:
  /// Adds the values of an image. Throws Error if it has another kind of labels than those before.
  void add(const PixelLabels& labels);
  /// Orders them: by index, by id, by name, and strokes by first appearance.
  void sort(const LabelFiles& files);
  std::size_t size() const noexcept { return values_.size(); }
  std::span<const std::int64_t> values() const noexcept { return values_; }
  LabelKind kind() const noexcept { return kind_; }
  /// Classes (H, W) of the labels of an image, whose values were added; -1 = none.
  Tensor<std::int32_t> classes_of(const PixelLabels& labels) const;

 private:
  LabelKind kind_ = LabelKind::indices;
  std::string first_file_;
  std::vector<std::int64_t> values_;
};

}  // namespace vit::app
