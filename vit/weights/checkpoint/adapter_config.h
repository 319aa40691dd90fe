// adapter_config.json of PEFT: how strong an adapter is, and which kinds of adapters are refused.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace vit::internal {

struct AdapterConfig {
  double alpha = 8.0;
  std::vector<std::pair<std::string, double>> alpha_pattern{};  // modules with an alpha of their own
  bool rank_stabilized = false;                                 // scale alpha / sqrt(r)
  bool transposed = false;                                      // fan_in_fan_out
  std::string base{};                                           // base_model_name_or_path

  /// What B A is multiplied by in a module of this rank.
  double scale(const std::string& module, std::size_t rank) const;
};

/// Throws Error (unsupported) naming the member for everything but plain LoRA.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);

}  // namespace vit::internal
