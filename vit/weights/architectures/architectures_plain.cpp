// Architectures without rotation: ViT, DeiT, SigLIP and CLIP as timm names them. Values: the papers and
// timm's registry.
#include <tuple>
#include <utility>

#include "vit/weights/architectures/architecture_list.h"

namespace vit::internal::architecture_list {
namespace {

std::string sized(const std::string& front, std::size_t patch, const std::string& middle, std::size_t image) {
  return front + "_patch" + std::to_string(patch) + middle + "_" + std::to_string(image);
}

/// Plain ViT (Dosovitskiy et al. 2020, weights of "How to train your ViT") and its sizes in timm.
void add_vit(std::vector<Architecture>& list) {
  const auto add = [&](const Size& size, std::size_t patch, std::size_t image, double mlp_ratio = 4.0) {
    Architecture a =
        make(sized(std::string("vit_") + size.name, patch, "", image), "vit", size, patch, image);
    a.args.mlp_ratio = mlp_ratio;
    const bool dino =
        patch == 8 && size.embed_dim == kSmall.embed_dim;  // DINO's, the one without a classifier
    if (!dino) a.mean = a.std = kHalf;
    const bool pretrained = dino || (patch == 32 && image == 224 && size.embed_dim == kLarge.embed_dim) ||
                            size.embed_dim == kHuge.embed_dim;
    if (pretrained) a.args.num_classes = 0;
    a.crop_pct = image == 384 ? 1.0 : 0.9;
    list.push_back(std::move(a));
  };
  for (const std::size_t image : {224, 384}) {
    add(kTiny, 16, image);
    for (const Size& size : {kSmall, kBase, kLarge}) {
      add(size, 16, image);
      add(size, 32, image);
    }
  }
  add(kSmall, 8, 224);
  add(kBase, 8, 224);
  add(kLarge, 14, 224);
  add(kHuge, 14, 224);
  add({"giant", 1408, 40, 16}, 14, 224, 48.0 / 11);
  add({"gigantic", 1664, 48, 16}, 14, 224, 64.0 / 13);
}

/// timm's search for better baselines: registers or no prefix at all, mean pooling.
void add_sbb(std::vector<Architecture>& list) {
  struct Row {
    Size size;
    double mlp_ratio;
    std::size_t registers, image;
  };
  const Size wee{"wee", 256, 14, 4}, little{"little", 320, 14, 5}, mediumd{"mediumd", 512, 20, 8};
  for (const Row& row : {Row{wee, 5.0, 1, 256}, Row{little, 5.6, 1, 256}, Row{little, 5.6, 4, 256},
                         Row{kMedium, 4.0, 1, 256}, Row{kMedium, 4.0, 4, 256}, Row{mediumd, 4.0, 4, 256},
                         Row{mediumd, 4.0, 4, 384}, Row{kBetwixt, 4.0, 1, 256}, Row{kBetwixt, 4.0, 4, 256},
                         Row{kBetwixt, 4.0, 4, 384}, Row{kBase, 4.0, 4, 256}}) {
    const std::string middle = "_reg" + std::to_string(row.registers) + "_gap";
    Architecture a = make(sized(std::string("vit_") + row.size.name, 16, middle, row.image), "vit", row.size,
                          16, row.image);
    a.args.mlp_ratio = row.mlp_ratio;
    a.args.reg_tokens = row.registers;
    a.args.class_token = false;
    a.args.no_embed_class = true;
    a.args.global_pool = "avg";
    a.args.layer_scale = row.size.embed_dim != kBase.embed_dim;
    a.mean = a.std = kHalf;
    a.crop_pct = row.image == 384 ? 1.0 : row.size.embed_dim == kBase.embed_dim ? 0.9 : 0.95;
    list.push_back(std::move(a));
  }
}

/// Plain models of later recipes: EVA-01 Large, FlexiViT, wider tables, registers, the mean of all patches,
/// InternViT, ImageNet-21K-P.
void add_later_vit(std::vector<Architecture>& list) {
  const auto add = [&](const std::string& name, const Size& size, std::size_t patch, std::size_t image,
                       double crop_pct) -> Architecture& {
    Architecture a = make(name, "vit", size, patch, image);
    a.mean = a.std = kHalf;
    a.crop_pct = crop_pct;
    list.push_back(std::move(a));
    return list.back();
  };
  for (const std::size_t image : {196, 336}) {
    Architecture& a = add("eva_large_patch14_" + std::to_string(image), kLarge, 14, image, 1.0);
    a.family = "eva";
    a.args.global_pool = "avg";
    a.mean = kClipMean;
    a.std = kClipStd;
    a.squash = image == 336;
  }
  for (const Size& size : {kSmall, kBase, kLarge}) {
    add(std::string("flexivit_") + size.name, size, 16, 240, 0.95).args.no_embed_class = true;
  }
  const Size plus{"base", 896, 12, 14};
  add("vit_base_patch16_plus_240", plus, 16, 240, 0.95).args.layer_scale = true;
  add("vit_base_patch32_plus_256", plus, 32, 256, 0.95).args.layer_scale = true;

  // no class token, the mean without a norm of its own; the largest are I-JEPA's
  const auto add_gap = [&](const Size& size, std::size_t patch, std::size_t image,
                           double crop_pct) -> Architecture& {
    Architecture& a =
        add(sized(std::string("vit_") + size.name, patch, "_gap", image), size, patch, image, crop_pct);
    a.args.class_token = false;
    a.args.global_pool = "avg";
    a.args.fc_norm = false;
    return a;
  };
  for (const auto& [size, image] : {std::pair{kMedium, 240}, std::pair{kMedium, 256}, std::pair{kMedium, 384},
                                    std::pair{kBetwixt, 256}}) {
    Architecture& a = add_gap(size, 16, static_cast<std::size_t>(image), 0.95);
    a.args.qkv_bias = false;
    a.args.layer_scale = true;
    a.squash = image == 384;
    if (image == 240) a.args.num_classes = 11821;
  }
  add_gap({"base", 768, 12, 16}, 16, 224, 0.9);
  const Size giant{"giant", 1408, 40, 16};
  for (const auto& [size, patch, image] :
       {std::tuple{kHuge, 14, 224}, std::tuple{kHuge, 16, 448}, std::tuple{giant, 16, 224}}) {
    Architecture& a = add_gap(size, static_cast<std::size_t>(patch), static_cast<std::size_t>(image),
                              image == 448 ? 1.0 : 0.9);
    a.args.num_classes = 0;
    a.mean = kImageNetMean;
    a.std = kImageNetStd;
    if (size.embed_dim == giant.embed_dim) a.args.mlp_ratio = 48.0 / 11;
  }

  for (const std::size_t image : {256, 384}) {
    Architecture& a = add("vit_so150m_patch16_reg4_gap_" + std::to_string(image), {"so150m", 896, 18, 14}, 16,
                          image, image == 384 ? 1.0 : 0.95);
    a.args.mlp_ratio = 2.572;
    a.args.class_token = false;
    a.args.reg_tokens = 4;
    a.args.global_pool = "avg";
    a.args.fc_norm = false;
  }
  for (const std::size_t image : {256, 384, 448}) {
    Architecture& a = add("vit_so150m2_patch16_reg1_gap_" + std::to_string(image), {"so150m2", 832, 21, 13},
                          16, image, 1.0);
    a.args.mlp_ratio = 34.0 / 13;
    a.args.layer_scale = true;
    a.args.qkv_bias = false;
    a.args.class_token = false;
    a.args.reg_tokens = 1;
    a.args.global_pool = "avg";
    a.squash = image == 448;
  }
  Architecture& miil = add("vit_base_patch16_224_miil", kBase, 16, 224, 0.875);
  miil.args.qkv_bias = false;
  miil.args.num_classes = 11221;
  miil.mean = kZero;
  miil.std = kOne;
  miil.filter = ResizeFilter::bilinear;

  Architecture& intern = add("vit_intern300m_patch14_448", kLarge, 14, 448, 1.0);
  intern.args.layer_scale = true;
  intern.args.post_norm = false;
  intern.args.num_classes = 0;
  intern.mean = kImageNetMean;
  intern.std = kImageNetStd;
}

/// The small models that timm trained for its own tests.
void add_test_vit(std::vector<Architecture>& list) {
  struct Row {
    const char* name;
    Size size;
    double mlp_ratio;
    const char* global_pool;
  };
  for (const Row& row :
       {Row{"test_vit", {"", 64, 6, 2}, 3.0, "token"}, Row{"test_vit2", {"", 64, 8, 2}, 3.0, "avg"},
        Row{"test_vit3", {"", 96, 9, 3}, 2.0, "map"}}) {
    Architecture a = make(row.name, "vit", row.size, 16, 160);
    a.args.mlp_ratio = row.mlp_ratio;
    a.args.global_pool = row.global_pool;
    if (a.args.global_pool != "token") {
      a.args.class_token = false;
      a.args.reg_tokens = 1;
      a.args.layer_scale = true;
    }
    a.args.pool_include_prefix = a.args.global_pool == "map";
    a.mean = a.std = kHalf;
    a.crop_pct = 0.95;
    list.push_back(std::move(a));
  }
}

/// DeiT (Touvron et al. 2021), its distilled form, and DeiT-III (2022).
void add_deit(std::vector<Architecture>& list) {
  for (const Size& size : {kTiny, kSmall, kBase}) {
    for (const bool distilled : {false, true}) {
      for (const std::size_t image : {224, 384}) {
        if (image == 384 && size.embed_dim != kBase.embed_dim) continue;
        Architecture a =
            make(sized(std::string("deit_") + size.name + (distilled ? "_distilled" : ""), 16, "", image),
                 "deit", size, 16, image);
        a.args.distilled = distilled;
        a.crop_pct = image == 384 ? 1.0 : 0.9;
        list.push_back(std::move(a));
      }
    }
  }
  const auto add3 = [&](const Size& size, std::size_t patch, std::size_t image) {
    Architecture a =
        make(sized(std::string("deit3_") + size.name, patch, "", image), "deit3", size, patch, image);
    a.args.no_embed_class = true;
    a.args.layer_scale = true;
    a.crop_pct = image == 384 ? 1.0 : 0.9;
    list.push_back(std::move(a));
  };
  add3(kMedium, 16, 224);
  add3(kHuge, 14, 224);
  for (const Size& size : {kSmall, kBase, kLarge}) {
    add3(size, 16, 224);
    add3(size, 16, 384);
  }
}

/// SigLIP and SigLIP 2 (Zhai et al. 2023, Tschannen et al. 2025): attention pooling, or the mean ("gap").
void add_siglip(std::vector<Architecture>& list) {
  struct Row {
    Size size;
    std::size_t patch, image;
    bool gap_only = false;
  };
  const Size giant{"giantopt", 1536, 40, 16};
  for (const Row& row :
       {Row{kBase, 32, 256}, Row{kBase, 16, 224}, Row{kBase, 16, 256}, Row{kBase, 16, 384},
        Row{kBase, 16, 512}, Row{kLarge, 16, 256}, Row{kLarge, 16, 384}, Row{kLarge, 16, 512},
        Row{kSo400m, 14, 224}, Row{kSo400m, 14, 378}, Row{kSo400m, 14, 384}, Row{kSo400m, 14, 448, true},
        Row{kSo400m, 14, 896, true}, Row{kSo400m, 16, 256}, Row{kSo400m, 16, 384}, Row{kSo400m, 16, 512},
        Row{giant, 16, 256}, Row{giant, 16, 384}}) {
    for (const bool gap : {false, true}) {
      if (row.gap_only && !gap) continue;
      Architecture a = make(
          sized(std::string("vit_") + row.size.name, row.patch, gap ? "_siglip_gap" : "_siglip", row.image),
          "siglip", row.size, row.patch, row.image);
      const bool so400m = row.size.embed_dim == kSo400m.embed_dim;
      if (so400m) a.args.mlp_ratio = 3.7362;  // 4304 hidden
      a.args.class_token = false;
      a.args.global_pool = gap ? "avg" : "map";
      if (gap) a.args.fc_norm = false;
      // the original uses the tanh form everywhere; timm kept its default in the models that it took over
      // first
      const bool tanh = row.patch == 32 || (so400m && row.patch == 16) ||
                        row.size.embed_dim == giant.embed_dim ||
                        (row.size.embed_dim == kLarge.embed_dim && row.image == 512);
      a.args.activation = tanh ? Activation::gelu_tanh : Activation::gelu;
      a.args.num_classes = 0;
      a.mean = a.std = kHalf;
      a.crop_pct = gap && so400m && row.patch == 14 && row.image >= 384 ? 1.0 : 0.9;
      list.push_back(std::move(a));
    }
  }
}

/// CLIP image towers (Radford et al. 2021; OpenCLIP): a LayerNorm before the blocks, a projection as the
/// classifier.
void add_clip(std::vector<Architecture>& list) {
  struct Row {
    Size size;
    std::size_t patch, image;
    std::size_t num_classes;
    double crop_pct;
    bool quick_gelu = false;
    bool squash = false;
    double mlp_ratio = 4.0;
  };
  const Size xsmall{"xsmall", 256, 10, 4}, plus{"base", 896, 12, 14};
  const Size giant{"giant", 1408, 40, 16}, gigantic{"gigantic", 1664, 48, 16};
  const Row rows[] = {{xsmall, 16, 224, 512, 0.9},
                      {kMedium, 32, 224, 512, 0.9},
                      {kMedium, 16, 224, 512, 0.9},
                      {kBetwixt, 32, 224, 512, 0.9},
                      {kBase, 32, 224, 1000, 0.9},
                      {kBase, 32, 256, 512, 1.0},
                      {kBase, 32, 384, 1000, 1.0},
                      {kBase, 32, 448, 1000, 1.0},
                      {kBase, 16, 224, 1000, 0.95},
                      {kBase, 16, 384, 1000, 1.0, false, true},
                      {kLarge, 14, 224, 1000, 1.0},
                      {kLarge, 14, 336, 1000, 1.0, false, true},
                      {kHuge, 14, 224, 1000, 1.0},
                      {kHuge, 14, 336, 1000, 1.0, false, true},
                      {kHuge, 14, 378, 1024, 1.0},
                      {giant, 14, 224, 1024, 1.0, false, false, 48.0 / 11},
                      {gigantic, 14, 224, 1280, 1.0, false, false, 64.0 / 13},
                      {gigantic, 14, 378, 1280, 1.0, false, true, 64.0 / 13},
                      {kBase, 32, 224, 512, 0.9, true},
                      {kBase, 16, 224, 512, 1.0, true},
                      {kLarge, 14, 224, 768, 1.0, true},
                      {kLarge, 14, 336, 768, 1.0, true},
                      {kHuge, 14, 224, 1024, 1.0, true},
                      {kHuge, 14, 378, 1024, 1.0, true},
                      {gigantic, 14, 224, 1280, 1.0, true, false, 64.0 / 13},
                      {plus, 16, 240, 640, 1.0}};
  for (const Row& row : rows) {
    const std::string middle = row.size.embed_dim == 896 ? "_plus_clip"
                               : row.quick_gelu          ? "_clip_quickgelu"
                                                         : "_clip";
    Architecture a = make(sized(std::string("vit_") + row.size.name, row.patch, middle, row.image), "clip",
                          row.size, row.patch, row.image);
    a.args.pre_norm = true;
    a.args.norm_eps = 1e-5;
    a.args.mlp_ratio = row.mlp_ratio;
    a.args.num_classes = row.num_classes;
    if (row.quick_gelu) a.args.activation = Activation::quick_gelu;
    // the plain Large names stand for weights of LAION, which were trained with these
    const bool half = row.size.embed_dim == kLarge.embed_dim && !row.quick_gelu;
    a.mean = half ? kHalf : kClipMean;
    a.std = half ? kHalf : kClipStd;
    a.crop_pct = row.crop_pct;
    a.squash = row.squash;
    list.push_back(std::move(a));
  }
}

}  // namespace

void add_plain(std::vector<Architecture>& list) {
  add_vit(list);
  add_later_vit(list);
  add_test_vit(list);
  add_sbb(list);
  add_deit(list);
  add_siglip(list);
  add_clip(list);
}

}  // namespace vit::internal::architecture_list
