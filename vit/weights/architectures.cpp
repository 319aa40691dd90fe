// The published architectures of timm by name: what the name stands for, as given by the papers and timm's registry.
#include <algorithm>
#include <numeric>

#include "vit/base/error.h"
#include "vit/weights/timm_args.h"

namespace vit {
namespace {

constexpr std::array<double, 3> kHalf{0.5, 0.5, 0.5};
constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};

/// Width, depth and heads of one size.
struct Size {
  const char* name;
  std::size_t embed_dim, depth, num_heads;
};

constexpr Size kTiny{"tiny", 192, 12, 3};
constexpr Size kSmall{"small", 384, 12, 6};
constexpr Size kMedium{"medium", 512, 12, 8};
constexpr Size kBase{"base", 768, 12, 12};
constexpr Size kLarge{"large", 1024, 24, 16};
constexpr Size kHuge{"huge", 1280, 32, 16};

Architecture make(std::string name, std::string family, const Size& size, std::size_t patch_size, std::size_t image) {
  Architecture a;
  a.name = std::move(name);
  a.family = std::move(family);
  a.args.embed_dim = size.embed_dim;
  a.args.depth = size.depth;
  a.args.num_heads = size.num_heads;
  a.args.patch_size = patch_size;
  a.args.image_height = a.args.image_width = image;
  return a;
}

std::string numbered(const std::string& front, std::size_t number) { return front + std::to_string(number); }

/// rope-vit, Naver, "Rotary Position Embedding for Vision Transformer" (2024).
void add_rope_vit(std::vector<Architecture>& list) {
  for (const char* kind : {"", "mixed_", "ape_", "mixed_ape_"}) {
    for (const Size& size : {kSmall, kBase, kLarge}) {
      Architecture a =
          make(std::string("vit_") + size.name + "_patch16_rope_" + kind + "224", "rope-vit", size, 16, 224);
      const std::string_view rules(kind);
      a.args.timm_class = TimmClass::eva;
      a.args.attn_type = "rope";
      a.args.layer_scale = true;
      a.args.rope = true;
      a.args.rope_xy = true;
      a.args.rope_type = rules.starts_with("mixed") ? "mixed" : "cat";
      a.args.rope_temperature = rules.starts_with("mixed") ? 10.0 : 100.0;
      a.args.pos_embed = rules.ends_with("ape_");
      a.args.no_embed_class = true;
      list.push_back(std::move(a));
    }
  }
}

/// Plain ViT (Dosovitskiy et al. 2020, weights of "How to train your ViT") and its sizes in timm.
void add_vit(std::vector<Architecture>& list) {
  const auto add = [&](const Size& size, std::size_t patch, std::size_t image) {
    Architecture a = make(std::string("vit_") + size.name + numbered("_patch", patch) + numbered("_", image), "vit", size,
                          patch, image);
    a.mean = a.std = kHalf;
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
  add({"large", 1024, 24, 16}, 14, 224);
  add({"huge", 1280, 32, 16}, 14, 224);
}

/// DeiT (Touvron et al. 2021), its distilled form, and DeiT-III (2022).
void add_deit(std::vector<Architecture>& list) {
  for (const Size& size : {kTiny, kSmall, kBase}) {
    for (const bool distilled : {false, true}) {
      for (const std::size_t image : {224, 384}) {
        if (image == 384 && size.embed_dim != kBase.embed_dim) continue;
        Architecture a = make(std::string("deit_") + size.name + (distilled ? "_distilled" : "") +
                                  numbered("_patch16_", image),
                              "deit", size, 16, image);
        a.args.distilled = distilled;
        a.crop_pct = image == 384 ? 1.0 : 0.9;
        list.push_back(std::move(a));
      }
    }
  }
  const auto add3 = [&](const Size& size, std::size_t patch, std::size_t image) {
    Architecture a = make(std::string("deit3_") + size.name + numbered("_patch", patch) + numbered("_", image), "deit3",
                          size, patch, image);
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = [] {
    std::vector<Architecture> all;
    add_rope_vit(all);
    add_vit(all);
    add_deit(all);
    return all;
  }();
  return list;
}

std::vector<std::string> nearest_architectures(std::string_view name, std::size_t count) {
  const std::string_view bounded = name.substr(0, 100);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const Architecture& a : architectures()) ranked.emplace_back(edit_distance(bounded, a.name), a.name);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) names.push_back(ranked[i].second);
  return names;
}

const Architecture& find_architecture(std::string_view name) {
  const std::string_view plain = name.substr(0, name.find('.'));
  for (const Architecture& a : architectures()) {
    if (a.name == plain) return a;
  }
  std::string near;
  for (const std::string& candidate : nearest_architectures(plain, 3)) near += (near.empty() ? "" : ", ") + candidate;
  fail("find_architecture", "unknown architecture \"", std::string(name.substr(0, 100)), "\"; the nearest known names are ",
       near);
}

}  // namespace vit
