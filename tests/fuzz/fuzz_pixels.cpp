#include "tests/fuzz/fuzz_pixels.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "apps/vit/ground/base64.h"
#include "apps/vit/inputs/pixel_labels.h"
#include "tests/apps/pixel_files.h"
#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "vit/api/head_file.h"
#include "vit/fit.h"
#include "vit/io/json_writer.h"
#include "vit/io/pickle.h"
#include "vit/pixels.h"

namespace vit::fuzz {
namespace {

constexpr auto kInMemory = test::TemporaryFolder::Place::memory;

/// Reads the labels of image.jpg, and puts their values in order.
void read_labels(const std::filesystem::path& truth) {
  app::LabelFiles files(truth, {0});
  const app::Input image{.name = "image.jpg", .path = "image.jpg", .pixels = nullptr};
  const std::optional<app::PixelLabels> labels = files.read(image, "image", ImageSize{5, 7});
  if (!labels) return;
  app::LabelClasses classes;
  classes.add(*labels);
  classes.sort(files);
  const Tensor<std::int32_t> map = classes.classes_of(*labels);
  const auto count = static_cast<std::int32_t>(classes.size());
  if (std::ranges::any_of(map.flat(), [count](std::int32_t c) { return c < -1 || c >= count; }))
    throw std::logic_error("a pixel of a class that is none");
  for (const std::int64_t value : classes.values()) files.name_of(classes.kind(), value);
}

}  // namespace

void run_pixel_labels(std::string_view input) {
  static const test::TemporaryFolder folder(kInMemory);
  if (input.starts_with('<')) {
    try {
      read_labels(folder.write("all.xml", input));  // of CVAT
    } catch (const Error&) {
    }
    return;
  }
  const bool is_json = !input.empty() && (input.front() == '{' || input.front() == '[');
  std::filesystem::remove(folder / "image.png");
  std::filesystem::remove(folder / "image.json");
  const std::filesystem::path file = folder.write(is_json ? "image.json" : "image.png", input);
  bool is_refused = false;
  try {
    read_labels(folder.path());  // of LabelMe, if it is JSON
  } catch (const Error&) {
    if (!is_json) throw;
    is_refused = true;
  }
  if (!is_json) return;
  try {
    read_labels(file);  // of COCO
  } catch (const Error&) {
    if (is_refused) throw;
  }
}

std::vector<std::string> pixel_labels_seeds() {
  static const test::TemporaryFolder folder(kInMemory);
  const auto seed = [](const std::filesystem::path& path) { return test::read_text(path); };
  test::write_gray((folder / "gray.png").string(), {"0120", "..17"}, 255);
  test::write_palette((folder / "palette.png").string(), {"0120"}, {{0, 0, 0}, {255, 0, 0}, {0, 255, 0}});
  test::write_strokes((folder / "strokes.png").string(), {".rb.", "rr.."});
  return {
      R"(<?xml version="1.0"?><annotations><image id="0" name="image.jpg" width="6" height="4">
             <polygon label="a" points="0,0;3,0;3,2" z_order="1"/><polyline label="b" points="1,1;4,3"/>
             <box label="c" xtl="0" ytl="1" xbr="3" ybr="2" rotation="30"/><points label="a" points="1,1"/>
             <ellipse label="b" cx="3" cy="2" rx="2" ry="1"/><tag label="d"/>
             <mask label="&lt;&#233;" rle="1, 2, 1" left="4" top="2" width="2" height="2"><attribute name="e">f</attribute>
             </mask></image></annotations>)",
      R"({"shapes": [{"label": "a", "shape_type": "mask", "points": [[1, 1], [4, 2]], "mask": ")" +
          app::encode_base64(seed(folder / "gray.png")) + "\"}]}",
      R"({"imageHeight": 4, "imageWidth": 6, "shapes": [
             {"label": "a", "points": [[0, 0], [3, 0], [3, 2]], "shape_type": "polygon"},
             {"label": "b", "points": [[2, 1], [5, 4]], "shape_type": "circle"},
             {"label": "c", "points": [[2, 1], [5, 4], [1, 1]], "shape_type": "linestrip"}]})",
      R"({"images": [{"id": 5, "file_name": "image.jpg", "height": 4, "width": 6}],
             "categories": [{"id": 2, "name": "cell"}], "annotations": [
             {"image_id": 5, "category_id": 2, "segmentation": [[0, 0, 6, 0, 6, 2, 0, 2]]},
             {"image_id": 5, "category_id": 3, "segmentation": {"size": [4, 6], "counts": [2, 3, 19]}},
             {"image_id": 5, "category_id": 3, "segmentation": {"size": [4, 6], "counts": "23c0"}}]})",
      seed(folder / "gray.png"),
      seed(folder / "palette.png"),
      seed(folder / "strokes.png")};
}

void run_pixel_head(std::string_view input) {
  static const test::TemporaryFolder folder(kInMemory);
  static const ClassifierHead functions = [] {
    Tensor<float> rows(Shape{4, 2});
    rows.data()[0] = 1;
    return fit_centroid(rows, std::vector<std::uint32_t>{0, 1, 0, 1}, {.num_folds = 0});
  }();
  const std::filesystem::path path = folder / "head.safetensors";
  internal::write_head(path, functions, {{internal::kPixelsMember, std::string(input)}});
  const PixelHead head = PixelHead::load(path);
  head.save(path);
  const PixelHead again = PixelHead::load(path);
  if (again.options.layers != head.options.layers || again.sources != head.sources ||
      again.cross_validated_iou != head.cross_validated_iou)
    throw std::logic_error("what is written is read as another head");
}

void run_upsampler(std::string_view input) {
  static const test::TemporaryFolder folder(kInMemory);
  (void)PixelUpsampler::load(folder.write("network.safetensors", input));
}

std::vector<std::string> upsampler_seeds() {
  std::vector<std::string> out;
  for (const char* const name : {"naf.pth", "anyup.pth", "jafar.pth"}) {
    const std::filesystem::path golden =
        std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden/upsamplers" / name;
    const internal::TensorFile file = internal::open_pickle(golden);
    std::string header, numbers;
    for (const internal::TensorEntry& entry : file.entries()) {
      const Tensor<float> values = internal::to_float(entry);
      std::string sizes;
      for (const std::size_t size : entry.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
      header += (header.empty() ? "{" : ",") + internal::json_string(entry.name) +
                R"(:{"dtype":"F32","shape":[)" + sizes + R"(],"data_offsets":[)" +
                std::to_string(numbers.size());
      numbers.append(reinterpret_cast<const char*>(values.data()), values.num_elements() * sizeof(float));
      header += "," + std::to_string(numbers.size()) + "]}";
    }
    out.push_back(test::safetensors(header + "}", numbers));
  }
  return out;
}

std::vector<std::string> pixel_head_seeds() {
  const std::string network = std::string(VIT_FUZZ_DATA_DIR) + "/golden/upsamplers/naf.pth";
  const std::string fingerprint = PixelUpsampler::load(network)->fingerprint();
  return {R"({"format": 1, "layers": [1, 3], "size": {"kind": "fixed", "height": 518, "width": 518},
             "scales": [1.0, 0.5], "upsampling": "guided", "shifts": 2, "color": true, "unit_length": false,
             "sources": ["3", "7"], "background": false, "images": 2, "pixels": 100, "held_out": "images",
             "cross_validated_iou": 0.5})",
          R"({"format": 1, "layers": [], "size": {"kind": "native"}, "scales": [1.0], "upsampling": "shift",
             "shifts": 4, "color": false, "unit_length": true, "sources": [], "background": true, "images": 1,
             "pixels": 1, "held_out": "nothing", "cross_validated_iou": null})",
          R"({"format": 1, "layers": [], "size": {"kind": "model"}, "scales": [1.0], "upsampling": "learned",
             "shifts": 2, "color": false, "unit_length": true, "upsampler": {"name": "NAF", "fingerprint": ")" +
              fingerprint + R"(",
             "file": )" +
              internal::json_string(network) +
              R"(}, "sources": [], "background": true, "images": 1, "pixels": 1, "held_out": "nothing",
             "cross_validated_iou": null})"};
}

}  // namespace vit::fuzz
