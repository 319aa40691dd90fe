#include "vit/weights/checkpoint/find_family.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/tensor_matcher.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::unsupported};
constexpr std::size_t kShortestName = 6;  // of a file that may be called after its architecture

/// Models that the layout files of data/layouts describe, by the end of the name of their patch weight.
struct ForeignLayout {
  std::string_view patch, files;
};
constexpr ForeignLayout kForeignLayouts[] = {
    {"to_patch_embedding.2.weight",
     "vit-pytorch-vit.json or vit-pytorch-simple-vit.json of data/layouts, for vit-pytorch's ViT and "
     "SimpleViT"},
    {"to_patch_embedding.1.weight",
     "vit-pytorch-old-vit.json or vit-pytorch-old-simple-vit.json of data/layouts, for vit-pytorch's ViT and "
     "SimpleViT before 1.0"},
    {"patch_embedding.patch_embeddings.weight", "monai-vit.json of data/layouts, for MONAI's ViT"},
    {"backbone.patch_embed.projection.weight", "mmpretrain-vit.json of data/layouts, for mmpretrain's ViT"},
};

/// The files of data/layouts that describe models with such tensors; "" if none does.
std::string_view find_foreign_layout(std::span<const TensorEntry> entries) {
  for (const ForeignLayout& layout : kForeignLayouts) {
    const auto is_it = [&](const TensorEntry& entry) { return entry.name.ends_with(layout.patch); };
    if (std::ranges::any_of(entries, is_it)) return layout.files;
  }
  return "";
}

/// A tensor that only models of transformers have; null if there is none.
const TensorEntry* find_transformers_tensor(std::span<const TensorEntry> entries) {
  const auto is_of_transformers = [](const Family* family) {
    return std::string_view(family->name).starts_with("hf_");
  };
  for (const Family* family : families()) {
    const bool also_others = std::ranges::any_of(families(), [&](const Family* other) {
      return !is_of_transformers(other) && other->anchor == family->anchor;
    });
    if (!is_of_transformers(family) || also_others) continue;
    for (const TensorEntry& entry : entries) {
      if (entry.name.ends_with(family->anchor)) return &entry;
    }
  }
  return nullptr;
}

std::string first_names(std::span<const TensorEntry> entries) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, entries.size()); ++i)
    names += (i ? ", " : "") + in_quotes(entries[i].name);
  return names;
}

std::string all_anchors() {
  std::string anchors;
  for (const Family* family : families()) {
    if (anchors.find(family->anchor) == std::string::npos)
      anchors += (anchors.empty() ? "" : ", ") + std::string(family->anchor);
  }
  return anchors;
}

/// For a config.json of transformers with this model_type.
[[noreturn]] void refuse_model_type(const SourceFiles& files, std::string_view type) {
  for (const std::string_view known : {"zoedepth", "depth_pro", "vitmatte", "mask2former", "segformer"}) {
    VIT_CHECK(type != known, kWhere, files.weights_name, ": ", type,
              ": the head of this model is not implemented; of dense heads those of depth_anything, dpt, "
              "tipsv2_dpt, chmv2, eomt, owlv2, owlvit, yolos, rf_detr, lw_detr, vitpose, Depth Anything 3 "
              "and DINOv2's own files are");
  }
  fail(kWhere, files.weights_name, ": its config.json is from transformers, with the model_type ",
       in_quotes(type), ", which no supported family of Vision Transformers has");
}

[[noreturn]] void refuse_family(const SourceFiles& files) {
  const std::span<const TensorEntry> entries = files.tensors.entries();
  if (files.config) {
    if (const auto type = files.config->find_string("model_type")) refuse_model_type(files, *type);
  }
  constexpr const char* kNoFamily = ": not a supported family of Vision Transformers. Its tensors are named ";
  if (const std::string_view layouts = find_foreign_layout(entries); !layouts.empty())
    fail(kWhere, files.weights_name, kNoFamily, first_names(entries),
         ", ...; a layout file describes such models (ModelOptions::layout): ", layouts);
  const TensorEntry* const known = files.config ? nullptr : find_transformers_tensor(entries);
  if (known != nullptr)
    fail(kWhere.with(ErrorKind::mismatch), files.weights_name, ": ", in_quotes(known->name),
         " belongs to a model of transformers, whose config.json is missing next to the file");
  VIT_CHECK(files.has_weights, kWhere.with(ErrorKind::io), files.config_name(),
            ": no file identifies the model, and there are no weights");
  fail(kWhere, files.weights_name, kNoFamily, first_names(entries), ", ...; a supported one has one of ",
       all_anchors(),
       files.config ? ", and its config.json names the model" : ". A config.json may be missing");
}

/// Architectures matching these tensors: of the same sizes, or of the same kind.
struct Fitting {
  std::vector<std::string> same_size, same_kind;

  bool empty() const noexcept { return same_size.empty() && same_kind.empty(); }
  std::string text() const {
    if (!same_size.empty()) return "its tensors match " + listed(same_size);
    return "its tensors are of the kind of " + listed(same_kind) + ", with other sizes (add " +
           override_name("num_heads") + ")";
  }
};

Fitting find_fitting(const Family& family, const SourceFiles& files) {
  Fitting out;
  for (const Architecture& a : architectures()) {
    if (a.library != "timm" && a.library != family.library) continue;
    try {
      ParsedModel parsed = family.read_as(files, a);
      parsed.match = files.match;
      const ModelConfig& config = parsed.config;
      validate(config);
      if (!TensorMatcher(files, parsed, nullptr).fits(config)) continue;
      const bool same = config.embed_dim == a.args.embed_dim && config.encoder.depth == a.args.depth &&
                        config.patch.size == a.args.patch_size;
      (same ? out.same_size : out.same_kind).emplace_back(a.name);
    } catch (const Error&) {
      continue;  // these tensors and that architecture contradict each other
    }
  }
  return out;
}

/// Values of arguments without which no architecture may fit, the likely ones first.
using Argument = std::pair<std::string_view, std::string_view>;
constexpr Argument kMean[] = {{"class_token", "false"}, {"global_pool", "avg"}};
constexpr Argument kMeanOfNormed[] = {{"class_token", "false"}, {"global_pool", "avg"}, {"fc_norm", "false"}};
constexpr Argument kNoClassifier[] = {{"num_classes", "0"}};
constexpr Argument kMeanNoClassifier[] = {
    {"class_token", "false"}, {"global_pool", "avg"}, {"fc_norm", "false"}, {"num_classes", "0"}};
constexpr Argument kClassAndMean[] = {{"global_pool", "avg"}};
constexpr std::span<const Argument> kOtherArguments[] = {kNoClassifier, kMean, kMeanOfNormed,
                                                         kMeanNoClassifier, kClassAndMean};

/// Which architectures fit, and with which arguments where none does without.
std::string fitting_text(const Family& family, const SourceFiles& files) {
  const Fitting fitting = find_fitting(family, files);
  if (!fitting.empty()) return fitting.text();
  for (const std::span<const Argument> arguments : kOtherArguments) {
    ModelOptions options = files.options;
    std::string given;
    for (const auto& [key, value] : arguments) {
      if (!options.overrides.emplace(key, value).second) continue;
      given += (given.empty() ? "" : " and ") + override_name(key) + " = " + in_quotes(value);
    }
    const SourceFiles changed{.tensors = files.tensors,
                              .options = options,
                              .config = files.config,
                              .weights_name = files.weights_name,
                              .has_weights = files.has_weights,
                              .root = files.root,
                              .in_training_file = files.in_training_file,
                              .match = files.match};
    const Fitting other = find_fitting(family, changed);
    if (!other.empty()) return "with " + given + " " + other.text();
  }
  return "its tensors match no architecture known by name";
}

/// The name of the file, or that of its folder if the file is only named model.
std::string telling_name(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  for (const char* anonymous : {"model", "pytorch_model", "model.safetensors.index"}) {
    if (stem != anonymous) continue;
    std::error_code gone;  // the working folder may be
    const std::filesystem::path full = std::filesystem::absolute(file, gone);
    if (!gone) return full.parent_path().filename().string();
  }
  return stem;
}

[[noreturn]] void refuse_architecture(const Family& family, const SourceFiles& files,
                                      const std::string& name) {
  const Where where{"load_checkpoint", ErrorKind::argument};
  if (const std::string type = unknown_model_type(files.config); name.empty() && !type.empty())
    refuse_model_type(files, type);
  const std::string fitting = fitting_text(family, files);
  if (!name.empty()) {
    fail(where, files.weights_name, ": unknown architecture ", in_quotes(name), near_architectures(name, 3),
         "; ", fitting);
  }
  const std::string own_name = telling_name(files.weights_name);
  const std::string near = own_name.size() < kShortestName ? "" : listed(nearest_architectures(own_name, 3));
  fail(where, files.weights_name,
       ": number of heads, epsilon, activation, rotation and pooling cannot be inferred from the tensors, "
       "and there is no config.json; give ModelOptions::architecture: ",
       fitting, near.empty() ? "" : "; the nearest by the name of file or folder are ", near);
}

/// The first that matches; sets files.match.
const Family& find_family(SourceFiles& files) {
  for (const Family* family : families()) {
    std::optional<Match> match = family->match(files);
    if (!match) continue;
    files.match = *std::move(match);
    return *family;
  }
  refuse_family(files);
}

}  // namespace

std::string unknown_model_type(const std::optional<Json>& config) {
  if (!config || config->find("architecture")) return "";
  const std::string type = config->find_string("model_type").value_or("");
  if (type.empty()) return "";
  const TensorFile none({.path = config->file()});
  const ModelOptions options;
  const SourceFiles files{
      .tensors = none, .options = options, .config = config, .weights_name = "", .has_weights = false};
  const bool is_known = std::ranges::any_of(families(), [&](const Family* family) {
    return std::string_view(family->name).starts_with("hf_") && family->match(files);
  });
  return is_known ? "" : type;
}

ParsedModel parse_by_family(SourceFiles& files) {
  const Family& family = find_family(files);
  const auto parse = [&] {
    if (family.read != nullptr) return family.read(files);
    const std::string name = architecture_name(files);
    // dino.txt's names start with that of the image tower's backbone
    const std::string tower = name.substr(0, name.find("_dinotxt_"));
    const Architecture* const known = tower.empty() ? nullptr : find_known_architecture(tower);
    if (known == nullptr) refuse_architecture(family, files, name);
    return family.read_as(files, *known);
  };
  ParsedModel parsed = parse();
  parsed.match = files.match;
  return parsed;
}

}  // namespace vit::internal
