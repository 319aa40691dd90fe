// Source: mlfoundations/open_clip, src/open_clip/transform.py (PreprocessCfg, image_transform) and
// factory.py. On RGB images its steps are those of timm with a crop of 100 %.
#include <string_view>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/families/open_clip_config.h"

namespace vit::internal {
namespace {

ResizeFilter read_interpolation(const Json& value) {
  return read_choice<ResizeFilter>(value, {{"bicubic", ResizeFilter::bicubic},
                                           {"bilinear", ResizeFilter::bilinear},
                                           {"random", ResizeFilter::bicubic}});  // for training
}

TimmCropMode read_resize_mode(const Json& value) {
  return read_choice<TimmCropMode>(value, {{"shortest", TimmCropMode::center},
                                           {"longest", TimmCropMode::border},
                                           {"squash", TimmCropMode::squash}});
}

}  // namespace

PreprocessConfig read_open_clip_preprocess(const Json& root, const ModelOptions& options) {
  // the image is made for the model, whatever preprocess_cfg.size says
  const GridSize size = read_open_clip_image_size(root.at("model_cfg").at("vision_cfg"));
  TimmPreprocess timm{.height = size.rows,
                      .width = size.columns,
                      .crop_pct = 1.0,
                      .mean = to_vector(kClipMean),
                      .std = to_vector(kClipStd)};
  std::size_t fill = 0;
  if (const auto cfg = root.find("preprocess_cfg")) {
    if (const auto mode = cfg->find("mode")) read_choice<bool>(*mode, {{"RGB", true}});
    if (const auto value = cfg->find("mean")) timm.mean = read_mean(*value, ScalarForm::refused);
    if (const auto value = cfg->find("std")) timm.std = read_std(*value, ScalarForm::refused);
    check_channels(*cfg, "mean", timm.mean, "std", timm.std);
    if (const auto value = cfg->find("interpolation")) timm.filter = read_interpolation(*value);
    if (const auto value = cfg->find("resize_mode")) timm.crop_mode = read_resize_mode(*value);
    fill = cfg->find_size("fill_color", {0, 255}).value_or(0);
  }
  // for a rectangle the shortest edge is resized by a class whose default is not overridden
  if (timm.crop_mode == TimmCropMode::center && timm.height != timm.width)
    timm.filter = ResizeFilter::bicubic;
  PreprocessConfig config = build_timm_preprocess(timm, options, root.file() + " (OpenCLIP)");
  if (timm.crop_mode == TimmCropMode::border) config.crop_pad_color.fill(static_cast<unsigned char>(fill));
  return config;
}

}  // namespace vit::internal
