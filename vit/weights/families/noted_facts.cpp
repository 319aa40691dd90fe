#include "vit/weights/families/published_facts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"noted_architecture", ErrorKind::argument};

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
  return lower_ascii(name) == key;
}

/// MoCo v3 calls its models so, without their patch. Its ViT-S has twice the heads of others. Source:
/// facebookresearch/moco-v3, vits.py.
struct MocoModel {
  std::string_view arch, known;
  std::size_t num_heads;
};
constexpr MocoModel kMocoModels[] = {{"vit_small", "vit_small_patch16_224", 12},
                                     {"vit_base", "vit_base_patch16_224", 12}};
/// The model under training in a file of MoCo's pretraining.
constexpr std::string_view kMocoRoots[] = {"base_encoder.", "momentum_encoder."};

bool is_moco_pretraining(const SourceFiles& files) {
  return std::ranges::any_of(kMocoRoots, [&](std::string_view root) { return files.root.ends_with(root); });
}

/// Tables of sines and cosines leave the row of the class token zero; learned ones do not.
bool has_fixed_table(const SourceFiles& files) {
  const TensorEntry* const table = files.tensors.find(files.root + "pos_embed");
  if (table == nullptr || table->shape.size() != 3 || !is_floating(table->dtype)) return false;
  const std::vector<double> numbers = to_double(*table);
  return numbers.size() >= table->shape[2] &&
         std::all_of(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(table->shape[2]),
                     [](double x) { return x == 0.0; });
}

/// MoCo v3's model of this file; null if it is of another origin.
const MocoModel* find_moco_model(const SourceFiles& files) {
  const auto arch = files.tensors.facts().find("arch");
  if (arch == files.tensors.facts().end()) return nullptr;
  const auto* const found = std::ranges::find(kMocoModels, arch->second, &MocoModel::arch);
  if (found == std::end(kMocoModels)) return nullptr;
  return is_moco_pretraining(files) || has_fixed_table(files) ? found : nullptr;
}

/// "mae_vit_base_patch16_dec512d8b" of MAE's pretraining without what names the decoder.
std::string without_decoder(std::string_view name) {
  if (name.starts_with("mae_")) name.remove_prefix(4);
  return std::string(name.substr(0, name.find("_dec")));
}

/// The known architecture that a script calls so: by its whole name, or without size ("vit_base_patch16"), or
/// with the patch noted next to it (DINO: arch "vit_small", patch_size "16").
std::string known_name(const SourceFiles& files, const std::string& key, const std::string& noted) {
  const auto& facts = files.tensors.facts();
  const auto patch = facts.find(key.substr(0, key.rfind('.') + 1) + "patch_size");  // npos + 1 = 0
  const std::string value = without_decoder(noted);
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
  if (const MocoModel* const moco = find_moco_model(files)) return std::string(moco->known);
  for (const std::string_view key : kKeys) {
    if (const std::string name = noted_under(files, key); !name.empty()) return name;
  }
  return model_of_run(files);
}

std::span<const Ignored> noted_projector(const SourceFiles& files) {
  static constexpr Ignored kProjector[] = {{"head.*", "the projector of contrastive pretraining"}};
  return is_moco_pretraining(files) ? std::span<const Ignored>(kProjector) : std::span<const Ignored>();
}

void apply_noted_args(const SourceFiles& files, TimmArgs& args) {
  const auto& facts = files.tensors.facts();
  if (const MocoModel* const moco = find_moco_model(files)) {
    const ModelOptions& options = files.options;
    VIT_CHECK(options.architecture.empty() || args.num_heads == moco->num_heads ||
                  options.overrides.contains("num_heads"),
              kWhere, files.weights_name, ": notes that it is MoCo v3's ", moco->arch, ", with ",
              moco->num_heads, " heads, and ", options.architecture, " has ", args.num_heads,
              ": leave the architecture out, or give ", override_name("num_heads"));
    args.num_heads = moco->num_heads;
  }
  if (const auto pool = facts.find("args.gp"); pool != facts.end() && !pool->second.empty())
    apply_timm_override(args, "global_pool", pool->second);
  if (const auto mean = facts.find("args.global_pool"); mean != facts.end() && mean->second == "true")
    apply_timm_override(args, "global_pool", "avg");  // MAE's fine-tuning
  for (const auto& [name, value] : facts) {
    if (name.starts_with(kModelArguments))
      apply_timm_override(args, name.substr(kModelArguments.size()), value);
  }
}

}  // namespace vit::internal
