#include "vit/weights/families/noted_facts.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/weights/architectures/architecture.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

/// Last components of the names under which scripts note an architecture, the surest first.
constexpr std::string_view kKeys[] = {"arch",       "architecture", "model_name", "model",
                                      "model_arch", "timm_model",   "backbone",   "encoder",
                                      "network",    "vit_model",    "name",       "type"};
/// OpenCLIP calls a run by its time and arguments: "2023_01_02-03_04_05-model_ViT-B-32-lr_0.001-b_64-...".
constexpr std::string_view kRunModel = "-model_", kRunRate = "-lr_";
constexpr std::string_view kModelArguments = "args.model_kwargs.";

std::string_view last_component(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 = 0
}

/// Configurations of yacs have keys in capitals.
bool is_key(std::string_view name, std::string_view key) {
  return std::ranges::equal(name, key,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

/// The known architecture that a script calls so: by its whole name, or without size ("vit_base_patch16"), or
/// with the patch noted beside it (DINO: arch "vit_small", patch_size "16").
std::string known_name(const SourceFiles& files, const std::string& key, const std::string& value) {
  const auto& facts = files.tensors.facts();
  const auto patch = facts.find(key.substr(0, key.rfind('.') + 1) + "patch_size");  // npos + 1 = 0
  std::vector<std::string> names = {value, value + "_224"};
  if (patch != facts.end()) names.push_back(value + "_patch" + patch->second + "_224");
  for (std::string& name : names) {
    if (find_known_architecture(name) != nullptr) return std::move(name);
  }
  return "";
}

/// Of the noted values under a key the known architecture with the shortest name of the key.
std::string noted_under(const SourceFiles& files, std::string_view key) {
  std::string found;
  std::size_t length = 0;
  for (const auto& [name, value] : files.tensors.facts()) {
    if (!is_key(last_component(name), key) || (!found.empty() && name.size() >= length)) continue;
    std::string known = known_name(files, name, value);
    if (known.empty()) continue;
    found = std::move(known);
    length = name.size();
  }
  return found;
}

std::string model_of_run(const SourceFiles& files) {
  const auto name = files.tensors.facts().find("name");
  if (name == files.tensors.facts().end()) return "";
  const std::size_t begin = name->second.find(kRunModel);
  const std::size_t end = name->second.find(kRunRate, begin == name->second.npos ? 0 : begin);
  if (begin == name->second.npos || end == name->second.npos) return "";
  const std::size_t first = begin + kRunModel.size();
  const std::string model = name->second.substr(first, end - first);
  return find_known_architecture(model) != nullptr ? model : "";
}

}  // namespace

std::string noted_architecture(const SourceFiles& files) {
  for (const std::string_view key : kKeys) {
    if (const std::string name = noted_under(files, key); !name.empty()) return name;
  }
  return model_of_run(files);
}

void apply_noted_args(const SourceFiles& files, TimmArgs& args) {
  const auto& facts = files.tensors.facts();
  if (const auto pool = facts.find("args.gp"); pool != facts.end() && !pool->second.empty())
    apply_timm_override(args, "global_pool", pool->second);
  for (const auto& [name, value] : facts) {
    if (name.starts_with(kModelArguments))
      apply_timm_override(args, name.substr(kModelArguments.size()), value);
  }
}

}  // namespace vit::internal
