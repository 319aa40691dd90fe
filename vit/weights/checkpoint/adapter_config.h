// adapter_config.json of PEFT: the scale of an adapter, and the refused kinds of adapters.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace vit::internal {

inline constexpr const char* kAdapterConfigName = "adapter_config.json";
/// The folder of an adapter, which is given as that or as its weight file.
inline std::filesystem::path adapter_folder(const std::filesystem::path& adapter) {
  std::error_code error;
  return std::filesystem::is_directory(adapter, error) && !error ? adapter : adapter.parent_path();
}

struct AdapterConfig {
  double alpha = 8.0;
  std::vector<std::pair<std::string, double>> alpha_pattern{};  // modules with a separate alpha
  bool rank_stabilized = false;                                 // scale alpha / sqrt(r)
  bool transposed = false;                                      // fan_in_fan_out
  std::string base{};                                           // base_model_name_or_path

  /// The factor of B A in a module of this rank.
  double scale(const std::string& module, std::size_t rank) const;
};

/// Throws Error (unsupported) naming the member for everything except plain LoRA.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);

}  // namespace vit::internal
