#include "vit/weights/families/dpt_tables.h"

#include "vit/base/check.h"
#include "vit/weights/architectures/pixel_statistics.h"

namespace vit::internal {

std::vector<std::size_t> read_dpt_channels(const Json& config, const char* key,
                                           std::vector<std::size_t> fallback) {
  const auto list = config.find(key);
  if (!list) return fallback;
  list->expect_array(4, "four numbers");
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < 4; ++i) out.push_back((*list)[i].as_size());
  return out;
}

void check_dpt_factors(const Json& config) {
  constexpr double kFactors[] = {4, 2, 1, 0.5};
  const auto factors = config.find("reassemble_factors");
  if (!factors) return;
  factors->expect_array(4, "four numbers");
  for (std::size_t i = 0; i < 4; ++i) {
    VIT_CHECK((*factors)[i].as_double() == kFactors[i], (Where{"read_config", ErrorKind::unsupported}),
              factors->where(), " must be [4, 2, 1, 0.5]; others are not implemented");
  }
}

PreprocessConfig depth_anything_preprocess(std::size_t edge, bool by_repository) {
  PreprocessConfig out;
  out.resize_height = out.resize_width = edge;
  out.size_multiple = 14;
  out.crop = false;
  out.mean = to_vector(kImageNetMean);
  out.std = to_vector(kImageNetStd);
  if (by_repository) {
    out.resampler = Resampler::torchvision_float;
    out.filter = ResizeFilter::opencv_cubic;
    out.resize = ResizeRule::cover;
    out.normalize = NormalizeRule::rescale_first;
    out.source = "Depth-Anything, util/transform.py";
  } else {
    out.resampler = Resampler::torchvision_uint8;
    out.filter = ResizeFilter::bicubic;
    out.resize = ResizeRule::nearer_scale;
    out.normalize = NormalizeRule::fused;
    out.apply_orientation = true;
    out.source = "DPTImageProcessor of transformers";
  }
  return out;
}

}  // namespace vit::internal
