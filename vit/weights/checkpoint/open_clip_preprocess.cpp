// Source: mlfoundations/open_clip, src/open_clip/transform.py (PreprocessCfg, image_transform) and
// factory.py. On RGB pictures its steps are those of timm with a crop of 100 %.
#include <string_view>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/families/open_clip.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

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

PreprocessConfig read_open_clip_preprocess(const Json& root, const PreprocessLoadOptions& options) {
  // the image is made for the model, whatever preprocess_cfg.size says
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
  PreprocessConfig config = build_timm_preprocess(timm, options, root.file() + " (OpenCLIP)");
  if (timm.crop_mode == TimmCropMode::border) config.pad_color.fill(static_cast<unsigned char>(fill));
  return config;
}

}  // namespace vit::internal
