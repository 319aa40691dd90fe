// Names that timm has given up, and the architecture and tag that they stand for now. Source:
// register_model_deprecations() and the tags' configurations in timm's models/vision_transformer.py and
// models/deit.py.
#include <algorithm>

#include "vit/base/error.h"
#include "vit/weights/architectures/architecture_list.h"

namespace vit::internal::architecture_list {
namespace {

struct Row {
  const char* name;
  const char* current;
  std::size_t num_classes;
};

constexpr Row kRows[] = {
    {"vit_tiny_patch16_224_in21k", "vit_tiny_patch16_224.augreg_in21k", 21843},
    {"vit_small_patch32_224_in21k", "vit_small_patch32_224.augreg_in21k", 21843},
    {"vit_small_patch16_224_in21k", "vit_small_patch16_224.augreg_in21k", 21843},
    {"vit_base_patch32_224_in21k", "vit_base_patch32_224.augreg_in21k", 21843},
    {"vit_base_patch16_224_in21k", "vit_base_patch16_224.augreg_in21k", 21843},
    {"vit_base_patch8_224_in21k", "vit_base_patch8_224.augreg_in21k", 21843},
    {"vit_large_patch32_224_in21k", "vit_large_patch32_224.orig_in21k", 0},
    {"vit_large_patch16_224_in21k", "vit_large_patch16_224.augreg_in21k", 21843},
    {"vit_huge_patch14_224_in21k", "vit_huge_patch14_224.orig_in21k", 0},
    // timm's list of names still has sam, as this tag was called
    {"vit_base_patch32_224_sam", "vit_base_patch32_224.sam_in1k", 1000},
    {"vit_base_patch16_224_sam", "vit_base_patch16_224.sam_in1k", 1000},
    {"vit_small_patch16_224_dino", "vit_small_patch16_224.dino", 0},
    {"vit_small_patch8_224_dino", "vit_small_patch8_224.dino", 0},
    {"vit_base_patch16_224_dino", "vit_base_patch16_224.dino", 0},
    {"vit_base_patch8_224_dino", "vit_base_patch8_224.dino", 0},
    {"vit_base_patch16_224_miil_in21k", "vit_base_patch16_224_miil.in21k", 11221},
    {"vit_base_patch32_224_clip_laion2b", "vit_base_patch32_clip_224.laion2b", 512},
    {"vit_large_patch14_224_clip_laion2b", "vit_large_patch14_clip_224.laion2b", 768},
    {"vit_huge_patch14_224_clip_laion2b", "vit_huge_patch14_clip_224.laion2b", 1024},
    {"vit_giant_patch14_224_clip_laion2b", "vit_giant_patch14_clip_224.laion2b", 1024},
    {"deit3_small_patch16_224_in21ft1k", "deit3_small_patch16_224.fb_in22k_ft_in1k", 1000},
    {"deit3_small_patch16_384_in21ft1k", "deit3_small_patch16_384.fb_in22k_ft_in1k", 1000},
    {"deit3_medium_patch16_224_in21ft1k", "deit3_medium_patch16_224.fb_in22k_ft_in1k", 1000},
    {"deit3_base_patch16_224_in21ft1k", "deit3_base_patch16_224.fb_in22k_ft_in1k", 1000},
    {"deit3_base_patch16_384_in21ft1k", "deit3_base_patch16_384.fb_in22k_ft_in1k", 1000},
    {"deit3_large_patch16_224_in21ft1k", "deit3_large_patch16_224.fb_in22k_ft_in1k", 1000},
    {"deit3_large_patch16_384_in21ft1k", "deit3_large_patch16_384.fb_in22k_ft_in1k", 1000},
    {"deit3_huge_patch14_224_in21ft1k", "deit3_huge_patch14_224.fb_in22k_ft_in1k", 1000},
};

}  // namespace

std::vector<FormerName> former_names(const std::vector<Architecture>& list) {
  std::vector<FormerName> names;
  for (const Row& row : kRows) {
    const std::string_view current(row.current);
    const std::string_view plain = current.substr(0, current.find('.'));
    const auto found = std::ranges::find(list, plain, &Architecture::name);
    VIT_CHECK(found != list.end(), "architectures", "no row is called ", plain);
    Architecture a = *found;
    a.name = current;
    a.args.num_classes = row.num_classes;
    if (current.ends_with(".dino")) {
      a.mean = kImageNetMean;
      a.std = kImageNetStd;
    }
    if (a.family == "deit3") a.crop_pct = 1.0;
    names.push_back({row.name, std::move(a)});
  }
  return names;
}

}  // namespace vit::internal::architecture_list
