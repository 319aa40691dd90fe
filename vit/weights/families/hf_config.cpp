#include "vit/weights/families/hf_config.h"

#include <algorithm>

#include "vit/base/error.h"
#include "vit/weights/families/timm_args.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "hf_config";

void read_image_size(const Json& json, std::size_t fallback, ModelConfig& c) {
  const SizeRange range{1, 1'000'000};
  const auto size = json.find("image_size");
  c.image_height = c.image_width = fallback;
  if (!size) return;
  if (size->is_array()) {
    VIT_CHECK(size->size() == 2, kWhere, size->where(), " must be one number or [height, width]");
    c.image_height = (*size)[0].as_size(range);
    c.image_width = (*size)[1].as_size(range);
  } else {
    c.image_height = c.image_width = size->as_size(range);
  }
}

std::size_t read_patch_size(const Json& json, std::size_t fallback) {
  const SizeRange range{1, 1024};
  const auto size = json.find("patch_size");
  if (!size) return fallback;
  if (!size->is_array()) return size->as_size(range);
  VIT_CHECK(size->size() == 2 && (*size)[0].as_size(range) == (*size)[1].as_size(range), kWhere,
            size->where(), " must be square");
  return (*size)[0].as_size(range);
}

}  // namespace

std::string hf_model_type(const SourceFiles& files) {
  return files.config ? files.config->find_string("model_type").value_or("") : "";
}

bool hf_class_contains(const Json& config, std::string_view part) {
  const auto classes = config.find("architectures");
  return classes && classes->is_array() && classes->size() != 0 &&
         std::string((*classes)[0].as_string()).find(part) != std::string::npos;
}

ModelConfig read_hf_sizes(const SourceFiles& files, const Json& json, const HfDefaults& defaults) {
  if (!files.options.overrides.empty()) {
    throw OverrideError(kWhere, text("--set ", files.options.overrides.begin()->first,
                                     " is an argument of timm's models; this checkpoint is one of "
                                     "transformers, whose config.json says everything"));
  }
  ModelConfig c;
  c.library = "transformers";
  if (const auto classes = files.config->find("architectures");
      classes && classes->is_array() && classes->size() != 0) {
    c.architecture = (*classes)[0].as_string();
  }
  c.embed_dim = json.find_size("hidden_size").value_or(defaults.hidden_size);
  c.depth = json.find_size("num_hidden_layers").value_or(defaults.num_layers);
  c.num_heads = json.find_size("num_attention_heads").value_or(defaults.num_heads);
  c.mlp_dim = json.find_size("intermediate_size").value_or(defaults.intermediate_size);
  c.patch_size = read_patch_size(json, defaults.patch_size);
  read_image_size(json, defaults.image_size, c);
  VIT_CHECK(json.find_size("num_channels").value_or(3) == 3, kWhere, json.where(),
            ": num_channels must be 3");
  c.norm_eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(defaults.norm_eps));
  c.activation = read_hf_activation(json, defaults.activation);
  return c;
}

Activation read_hf_activation(const Json& config, const char* fallback) {
  const std::string name = config.find_string("hidden_act").value_or(fallback);
  if (name == "gelu" || name == "gelu_python") return Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  fail(kWhere, config.at("hidden_act").where(), ": unknown activation ", in_quotes(name));
}

void add_hf_table(ModelConfig& config, std::size_t added_prefix_rows, TableResampling resampling) {
  PositionConfig& position = config.position;
  position.added = added_prefix_rows != 0 ? AddedTable::prefix_and_patches : AddedTable::patches;
  position.added_grid = config.native_grid();
  position.added_prefix_rows = added_prefix_rows;
  position.resampling = resampling;
  position.reuse = TableReuse::equal_count_and_square;
}

std::string hf_outer_prefix(const SourceFiles& files) {
  return files.prefix.starts_with("module.") ? "module." : "";
}

std::size_t count_hf_classes(const SourceFiles& files, const std::string& name) {
  const std::string front = hf_outer_prefix(files) + name;
  const auto rows = [&](const char* ending) {
    const TensorEntry* const entry = files.tensors.find(front + ending);
    return entry != nullptr && !entry->shape.empty() ? entry->shape[0] : 0;
  };
  const std::size_t weight = rows(".weight"), bias = rows(".bias");
  const auto names = files.config->find("id2label");
  const std::size_t labels = names ? names->size() : 0;
  if (weight != 0 && weight == bias) return weight;
  if (weight != 0 || bias != 0)
    return labels != 0 && (labels == weight || labels == bias) ? labels : std::max(weight, bias);
  if (!hf_class_contains(*files.config, "ForImageClassification")) return 0;
  return labels != 0 ? labels : 2;
}

std::vector<std::string> read_hf_labels(const Json& config, std::size_t num_classes) {
  const auto names = config.find("id2label");
  if (!names || names->size() != num_classes) return {};
  std::vector<std::string> labels(num_classes);
  for (std::size_t i = 0; i < num_classes; ++i) {
    const auto name = names->find_string(std::to_string(i));
    if (!name || *name == "LABEL_" + std::to_string(i)) return {};
    labels[i] = *name;
  }
  return labels;
}

HfNames hf_names(const SourceFiles& files) {
  return any_block_has(files, "attention.o_proj.weight") ? HfNames::modules : HfNames::published;
}

std::array<std::string, 3> hf_qkv_stems(HfNames names, const std::string& front) {
  const std::string attention = front + "attention.";
  if (names == HfNames::modules) return {attention + "q_proj", attention + "k_proj", attention + "v_proj"};
  return {attention + "attention.query", attention + "attention.key", attention + "attention.value"};
}

std::optional<Piece> hf_embedding_piece(const ModelConfig& config, const std::string& canonical,
                                        const Shape& shape) {
  if (canonical == "patch.weight") {
    return Piece{.source = "embeddings.patch_embeddings.projection.weight",
                 .shape = {config.embed_dim, 3, config.patch_size, config.patch_size}};
  }
  if (canonical == "class_token") return Piece{.source = "embeddings.cls_token", .shape = {1, 1, shape[0]}};
  if (canonical == "distillation_token") {
    return Piece{.source = "embeddings.distillation_token", .shape = {1, 1, shape[0]}};
  }
  if (canonical == "register_tokens") {
    return Piece{.source = "embeddings.register_tokens", .shape = {1, shape[0], config.embed_dim}};
  }
  if (canonical == "position_table") {
    return Piece{.source = "embeddings.position_embeddings", .shape = {1, shape[0], config.embed_dim}};
  }
  return std::nullopt;
}

Piece hf_head_piece(const SourceFiles& files, const std::string& name, const std::string& canonical,
                    const Shape& shape) {
  return {.source = hf_outer_prefix(files) + name + canonical.substr(canonical.rfind('.')),
          .shape = sizes_of(shape),
          .absolute = true};
}

}  // namespace vit::internal
