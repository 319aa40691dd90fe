#include "vit/weights/checkpoint/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"read_adapter", ErrorKind::unsupported};

/// Members that change the arithmetic if they are set.
constexpr std::string_view kRefused[] = {"layer_replication", "target_parameters", "trainable_token_indices",
                                         "alora_invocation_tokens", "lora_bias"};
/// Further configurations that do not change W + s B A.
constexpr std::string_view kHarmlessConfigs[] = {"eva_config",     "loftq_config", "megatron_config",
                                                 "runtime_config", "corda_config", "lora_ga_config"};
/// Initializations of B and A that do not change the base.
constexpr std::string_view kPlainStarts[] = {"gaussian", "eva", "orthogonal"};

bool is_set(const Json& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_array() || value.is_object()) return value.size() != 0;
  return !value.is_null();
}

void check_member(const Json& value) {
  const std::string_view key = value.key();
  const auto holds = [&](const auto& list) { return std::ranges::find(list, key) != std::end(list); };
  const bool default_scaling_rule = (key.starts_with("use_") && key != "use_rslora") ||
                                    (key.ends_with("_config") && !holds(kHarmlessConfigs));
  VIT_CHECK(!is_set(value) || (!default_scaling_rule && !holds(kRefused)), kWhere, value.where(),
            key == "use_dora" ? " is set: DoRA" : " is set",
            ", which is not implemented; merge_and_unload() and save_pretrained() in PEFT merge it into its "
            "base");
  if (key != "init_lora_weights" || !value.is_string()) return;
  const std::string_view start = value.as_string();
  VIT_CHECK(std::ranges::find(kPlainStarts, start) != std::end(kPlainStarts), kWhere, value.where(), " is ",
            in_quotes(start),
            ", which changes the base too; merge_and_unload() and save_pretrained() in PEFT merge it");
}

/// PEFT treats patterns as regular expressions for the end of a module's name; only plain names are
/// supported.
std::string plain_pattern(const Json& value) {
  std::string out;
  std::string_view text = value.key();
  if (text.starts_with('^')) text.remove_prefix(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '.') continue;
    VIT_CHECK(std::string_view("*+?()[]{}|\\$").find(text[i]) == std::string_view::npos, kWhere,
              value.where(), ": regular expressions for names of modules are not implemented");
    out += text[i];
  }
  return out;
}

}  // namespace

double AdapterConfig::scale(const std::string& module, std::size_t rank) const {
  double own = alpha;
  for (const auto& [pattern, value] : alpha_pattern) {
    if (module != pattern && !module.ends_with("." + pattern)) continue;
    own = value;
    break;
  }
  const auto r = static_cast<double>(rank);
  return own / (rank_stabilized ? std::sqrt(r) : r);
}

AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  const Json json = load_json(folder / "adapter_config.json");
  json.expect(Json::Kind::object);
  const std::string type = json.find_string("peft_type").value_or("LORA");
  VIT_CHECK(type == "LORA", kWhere, json.where(), ": an adapter of the kind ", in_quotes(type),
            "; only LORA is implemented; merge_and_unload() and save_pretrained() in PEFT merge others into "
            "their base");
  for (std::size_t i = 0; i < json.size(); ++i) check_member(json[i]);
  AdapterConfig config;
  config.alpha = json.find_double("lora_alpha").value_or(8.0);
  config.rank_stabilized = json.find_bool("use_rslora").value_or(false);
  config.transposed = json.find_bool("fan_in_fan_out").value_or(false);
  config.base = json.find_string("base_model_name_or_path").value_or("");
  if (const auto patterns = json.find("alpha_pattern")) {
    patterns->expect(Json::Kind::object);
    for (std::size_t i = 0; i < patterns->size(); ++i)
      config.alpha_pattern.emplace_back(plain_pattern((*patterns)[i]), (*patterns)[i].as_double());
  }
  return config;
}

}  // namespace vit::internal
