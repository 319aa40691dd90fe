// The publishers' own names of architectures that timm lists too, with the preprocessing of the publishers'
// evaluations. Their names for tensors, and rules that differ from timm's, are in weights/families/.
#include "vit/base/error.h"
#include "vit/weights/architectures/architecture_list.h"

namespace vit::internal::architecture_list {
namespace {

/// A copy of the row called `timm` under the publisher's name.
Architecture& add_alias(std::vector<Architecture>& list, std::string name, const std::string& timm,
                        const char* library) {
  for (const Architecture& row : list) {
    if (row.name != timm) continue;
    Architecture copy = row;
    copy.name = std::move(name);
    copy.library = library;
    copy.timm_name = timm;
    list.push_back(std::move(copy));
    return list.back();
  }
  fail("architectures", "no row is called ", timm);
}

void add_naver(std::vector<Architecture>& list) {
  for (const std::string kind : {"axial", "mixed", "axial_ape", "mixed_ape"}) {
    for (const std::string size : {"small", "base", "large"}) {
      const std::string rules = kind == "axial" ? "" : kind == "axial_ape" ? "ape_" : kind + "_";
      add_alias(list, "rope_" + kind + "_deit_" + size + "_patch16_LS",
                "vit_" + size + "_patch16_rope_" + rules + "224", "Naver");
    }
  }
}

/// File names of BAAI's releases without their ending.
void add_baai(std::vector<Architecture>& list) {
  const std::pair<const char*, const char*> names[] = {
      {"eva02_Ti_pt_in21k_p14", "eva02_tiny_patch14_224"},
      {"eva02_S_pt_in21k_p14", "eva02_small_patch14_224"},
      {"eva02_B_pt_in21k_p14", "eva02_base_patch14_224"},
      {"eva02_L_pt_in21k_p14", "eva02_large_patch14_224"},
      {"eva02_L_pt_m38m_p14", "eva02_large_patch14_224"},
      {"eva02_Ti_pt_in21k_ft_in1k_p14", "eva02_tiny_patch14_336"},
      {"eva02_S_pt_in21k_ft_in1k_p14", "eva02_small_patch14_336"},
      {"eva02_B_pt_in21k_ft_in1k_p14", "eva02_base_patch14_448"},
      {"eva02_L_pt_in21k_ft_in1k_p14", "eva02_large_patch14_448"},
      {"eva02_L_pt_m38m_ft_in1k_p14", "eva02_large_patch14_448"},
      {"eva02_B_pt_in21k_medft_in21k_p14", "eva02_base_patch14_448"},
      {"eva02_L_pt_in21k_medft_in21k_p14", "eva02_large_patch14_448"},
      {"eva02_L_pt_m38m_medft_in21k_p14", "eva02_large_patch14_448"},
      {"eva02_B_pt_in21k_medft_in21k_ft_in1k_p14", "eva02_base_patch14_448"},
      {"eva02_L_pt_in21k_medft_in21k_ft_in1k_p14", "eva02_large_patch14_448"},
      {"eva02_L_pt_m38m_medft_in21k_ft_in1k_p14", "eva02_large_patch14_448"},
      {"EVA02_CLIP_B_psz16_s8B", "eva02_base_patch16_clip_224"},
      {"EVA02_CLIP_L_psz14_s4B", "eva02_large_patch14_clip_224"},
      {"EVA02_CLIP_L_336_psz14_s6B", "eva02_large_patch14_clip_336"}};
  for (const auto& [name, timm] : names) {
    // fine-tuned straight from masked image modelling: centre crop, the others squash
    add_alias(list, name, timm, "BAAI").squash =
        std::string_view(name).find("medft") != std::string_view::npos;
  }
}

void add_meta_dinov3(std::vector<Architecture>& list) {
  const std::pair<const char*, const char*> names[] = {
      {"dinov3_vits16", "vit_small_patch16_dinov3_qkvb"},
      {"dinov3_vits16plus", "vit_small_plus_patch16_dinov3_qkvb"},
      {"dinov3_vitb16", "vit_base_patch16_dinov3_qkvb"},
      {"dinov3_vitl16", "vit_large_patch16_dinov3_qkvb"},
      {"dinov3_vith16plus", "vit_huge_plus_patch16_dinov3_qkvb"},
      {"dinov3_vit7b16", "vit_7b_patch16_dinov3"}};
  for (const auto& [name, timm] : names) {
    Architecture& a = add_alias(list, name, timm, "Meta");
    a.args.global_pool = "token";
    a.squash = true;
    a.filter = ResizeFilter::bilinear;
    a.resampler = Resampler::torchvision_uint8;
  }
}

void add_meta_dinov2(std::vector<Architecture>& list) {
  const std::pair<const char*, const char*> sizes[] = {
      {"vits14", "small"}, {"vitb14", "base"}, {"vitl14", "large"}, {"vitg14", "giant"}};
  for (const std::string registers : {"", "reg4_"}) {
    for (const auto& [name, size] : sizes) {
      Architecture& a = add_alias(list, std::string("dinov2_") + name + (registers.empty() ? "" : "_reg"),
                                  std::string("vit_") + size + "_patch14_" + registers + "dinov2", "Meta");
      a.evaluated_at = 224;
      a.crop_pct = 224.0 / 256;
    }
  }
}

void add_meta_pe(std::vector<Architecture>& list) {
  const std::pair<const char*, const char*> names[] = {
      {"PE-Core-T16-384", "core_tiny_patch16_384"},
      {"PE-Core-S16-384", "core_small_patch16_384"},
      {"PE-Core-B16-224", "core_base_patch16_224"},
      {"PE-Core-L14-336", "core_large_patch14_336"},
      {"PE-Core-G14-448", "core_gigantic_patch14_448"},
      {"PE-Lang-L14-448", "lang_large_patch14_448"},
      {"PE-Lang-L14-448-Tiling", "lang_large_patch14_448"},
      {"PE-Lang-G14-448", "lang_gigantic_patch14_448"},
      {"PE-Lang-G14-448-Tiling", "lang_gigantic_patch14_448"},
      {"PE-Spatial-T16-512", "spatial_tiny_patch16_512"},
      {"PE-Spatial-S16-512", "spatial_small_patch16_512"},
      {"PE-Spatial-B16-512", "spatial_base_patch16_512"},
      {"PE-Spatial-L14-448", "spatial_large_patch14_448"},
      {"PE-Spatial-G14-448", "spatial_gigantic_patch14_448"}};
  for (const auto& [name, timm] : names) {
    Architecture& a = add_alias(list, name, std::string("vit_pe_") + timm, "Meta");
    a.squash = true;
    a.filter = ResizeFilter::bilinear;
  }
}

}  // namespace

void add_publishers(std::vector<Architecture>& list) {
  add_naver(list);
  add_baai(list);
  add_meta_dinov3(list);
  add_meta_dinov2(list);
  add_meta_pe(list);
}

}  // namespace vit::internal::architecture_list
