// Source: mlfoundations/open_clip, src/open_clip/transform.py (PreprocessCfg, image_transform) and
// factory.py. On RGB pictures its steps are those of timm with a crop of 100 %.
#include "vit/weights/checkpoint/open_clip_preprocess.h"

#include <string_view>

#include "vit/base/error.h"
#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/families/timm_args.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "load_preprocess_config";

ResizeFilter read_filter(const Json& value) {
  const std::string_view name = value.as_string();
  if (name == "bilinear") return ResizeFilter::bilinear;
  if (name == "bicubic" || name == "random") return ResizeFilter::bicubic;  // random is for training
  fail(kWhere, value.where(), " must be bicubic, bilinear or random, found ", in_quotes(name));
}

TimmCropMode read_resize_mode(const Json& value) {
  const std::string_view name = value.as_string();
  if (name == "shortest") return TimmCropMode::center;
  if (name == "longest") return TimmCropMode::border;
  if (name == "squash") return TimmCropMode::squash;
  fail(kWhere, value.where(), " must be shortest, longest or squash, found ", in_quotes(name));
}

}  // namespace

GridSize read_open_clip_image_size(const Json& vision_cfg) {
  const auto size = vision_cfg.find("image_size");
  if (!size) return {224, 224};
  if (!size->is_array()) return {size->as_size(kEdgeRange), size->as_size(kEdgeRange)};
  VIT_CHECK(size->size() == 2, kWhere, size->where(), " must be one number or [height, width]");
  return {(*size)[0].as_size(kEdgeRange), (*size)[1].as_size(kEdgeRange)};
}

std::size_t read_open_clip_patch_size(const Json& vision_cfg) {
  const auto tower = vision_cfg.find_string("timm_model_name");
  if (tower && !tower->empty()) return find_architecture(*tower).args.patch_size;
  const auto size = vision_cfg.find("patch_size");
  if (!size) return 16;
  VIT_CHECK(!size->is_array() || size->size() == 2, kWhere, size->where(),
            " must be one number or a list of two");
  return (size->is_array() ? (*size)[0] : *size).as_size(kEdgeRange);
}

PreprocessConfig read_open_clip_preprocess(const Json& root, const PreprocessLoadOptions& options,
                                           const std::string& source) {
  // the picture is made for the model, whatever preprocess_cfg.size says
  const GridSize size = read_open_clip_image_size(root.at("model_cfg").at("vision_cfg"));
  TimmPreprocess timm{
      .height = size.rows, .width = size.columns, .crop_pct = 1.0, .mean = kClipMean, .std = kClipStd};
  std::size_t fill = 0;
  if (const auto cfg = root.find("preprocess_cfg")) {
    const auto mode = cfg->find("mode");
    VIT_CHECK(!mode || mode->as_string() == "RGB", kWhere, mode->where(), " must be RGB, found ",
              in_quotes(mode->as_string()));
    if (const auto value = cfg->find("mean")) timm.mean = read_mean(*value, ScalarForm::refused);
    if (const auto value = cfg->find("std")) timm.std = read_std(*value, ScalarForm::refused);
    if (const auto value = cfg->find("interpolation")) timm.filter = read_filter(*value);
    if (const auto value = cfg->find("resize_mode")) timm.crop_mode = read_resize_mode(*value);
    fill = cfg->find_size("fill_color", {0, 255}).value_or(0);
  }
  // for a rectangle the shortest edge is resized by a class whose default is not overridden
  if (timm.crop_mode == TimmCropMode::center && timm.height != timm.width)
    timm.filter = ResizeFilter::bicubic;
  PreprocessConfig config = build_timm_preprocess(timm, options, source + " (OpenCLIP)");
  if (timm.crop_mode == TimmCropMode::border) config.pad_color.fill(static_cast<unsigned char>(fill));
  return config;
}

}  // namespace vit::internal
