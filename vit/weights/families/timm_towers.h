// The vision towers of language models that timm publishes without the rest, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vit/weights/families/source_files.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

enum class TowerKind : std::uint8_t { qwen3, deepseek };

/// Sizes that a name implies.
struct TimmTower {
  std::string_view name;
  TowerKind kind{};
  std::size_t embed_dim = 0, depth = 0, num_heads = 0, mlp_dim = 0;
  std::size_t out_dim = 0;  // of visual tokens, where no file says
};

std::span<const TimmTower> timm_towers();
/// The tower of one of timm's names, its variant and tag left out; null for others.
const TimmTower* find_timm_tower(std::string_view name);
/// By the name, by model_args of config.json and by the tensors, where there are such.
ModelConfig timm_tower_config(const SourceFiles& files, std::string_view name, const TimmTower& tower);

}  // namespace vit::internal
