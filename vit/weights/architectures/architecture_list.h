// What the pages of the list of architectures share: sizes, and the functions that append one group of
// families each. architectures.cpp assembles them; to_config() in timm_args.cpp says what the arguments mean.
#pragma once

#include <string>
#include <vector>

#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal::architecture_list {

/// Width, depth and heads of one size.
struct Size {
  const char* name;
  std::size_t embed_dim, depth, num_heads;
};

inline constexpr Size kTiny{"tiny", 192, 12, 3};
inline constexpr Size kSmall{"small", 384, 12, 6};
inline constexpr Size kMedium{"medium", 512, 12, 8};
inline constexpr Size kBetwixt{"betwixt", 640, 12, 10};
inline constexpr Size kBase{"base", 768, 12, 12};
inline constexpr Size kLarge{"large", 1024, 24, 16};
inline constexpr Size kHuge{"huge", 1280, 32, 16};
inline constexpr Size kSo400m{"so400m", 1152, 27, 16};

inline constexpr std::array<double, 3> kZero{0.0, 0.0, 0.0}, kOne{1.0, 1.0, 1.0};  // no normalisation

/// A row with the sizes filled in and everything else at the defaults of timm's VisionTransformer.
Architecture make(std::string name, std::string family, const Size& size, std::size_t patch_size,
                  std::size_t image);
/// The same with the defaults of timm's Eva class.
Architecture make_eva(std::string name, std::string family, const Size& size, std::size_t patch_size,
                      std::size_t image);

/// rope-vit, EVA, EVA-02, SBB, DINOv3, LingBot, Perception Encoder.
void add_rope(std::vector<Architecture>& list);
/// ViT, DeiT, DeiT-III, SigLIP, CLIP.
void add_plain(std::vector<Architecture>& list);
/// DINOv2, TIPSv2, RADIO.
void add_backbones(std::vector<Architecture>& list);
/// The names that Naver, BAAI and Meta gave to rows that are in `list` already.
void add_publishers(std::vector<Architecture>& list);

/// A name that timm has given up, and what it stands for: a row under its current name and tag, with the
/// classes and the preprocessing of that tag.
struct FormerName {
  std::string name;
  Architecture current;
};
/// All of them; `list` has their architectures.
std::vector<FormerName> former_names(const std::vector<Architecture>& list);

}  // namespace vit::internal::architecture_list
