#include "vit/weights/families/hf_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "vit/base/check.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"hf_config", ErrorKind::format};

void read_image_size(const Json& json, std::size_t fallback, ModelConfig& c) {
  const auto size = json.find("image_size");
  const GridSize edges = size ? read_edges(*size) : GridSize{fallback, fallback};
  c.image.height = edges.rows;
  c.image.width = edges.columns;
}

std::size_t read_patch_size(const Json& json, std::size_t fallback) {
  const SizeRange range{1, 1024};
  const auto size = json.find("patch_size");
  if (!size) return fallback;
  const GridSize edges = read_edges(*size, range);
  VIT_CHECK(edges.rows == edges.columns, kWhere.with(ErrorKind::unsupported), size->where(),
            " must be square");
  return edges.rows;
}

/// At the top level so far; other models of the library have moved it into rope_parameters.
double read_theta(const Json& json) {
  if (const auto theta = json.find_double("rope_theta")) return *theta;
  const auto parameters = json.find("rope_parameters");
  return parameters && parameters->is_object() ? parameters->find_double("rope_theta").value_or(100.0)
                                               : 100.0;
}

}  // namespace

std::string hf_model_type(const SourceFiles& files) {
  return files.config ? files.config->find_string("model_type").value_or("") : "";
}

namespace {

std::string class_of(const Json& config) {
  const auto classes = config.find("architectures");
  return classes && classes->is_array() && classes->size() != 0 ? std::string((*classes)[0].as_string()) : "";
}

}  // namespace

std::string hf_architecture(const SourceFiles& files) {
  return class_of(*files.config);
}

bool hf_class_contains(const Json& config, std::string_view part) {
  return class_of(config).find(part) != std::string::npos;
}

ModelConfig read_hf_sizes(const SourceFiles& files, const Json& json, const HfDefaults& defaults) {
  for (const auto& [key, value] : files.options.overrides) {
    if (key == "num_classes" && files.drops_classifier()) continue;
    VIT_CHECK(
        key == defaults.own_override, kWhere.with(ErrorKind::argument), override_name(key),
        " is an argument of timm's models; this checkpoint is one of transformers, whose config.json says "
        "everything");
  }
  ModelConfig c;
  c.library = "transformers";
  c.architecture = hf_architecture(files);
  c.embed_dim = json.find_size("hidden_size").value_or(defaults.hidden_size);
  c.encoder.depth = json.find_size("num_hidden_layers").value_or(defaults.num_layers);
  c.attention.num_heads = json.find_size("num_attention_heads").value_or(defaults.num_heads);
  c.mlp.dim = json.find_size("intermediate_size").value_or(defaults.intermediate_size);
  c.patch.size = read_patch_size(json, defaults.patch_size);
  read_image_size(json, defaults.image_size, c);
  c.image.num_channels = json.find_size("num_channels").value_or(3);
  c.patch.drops_remainder = true;
  c.encoder.norm.eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(defaults.norm_eps));
  c.mlp.activation = read_hf_activation(json, defaults.activation);
  return c;
}

Activation read_hf_activation(const Json& config, Activation fallback, const char* key) {
  const auto name = config.find(key);
  if (!name) return fallback;
  return read_choice<Activation>(*name, {{"gelu", Activation::gelu},
                                         {"gelu_python", Activation::gelu},
                                         {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                         {"gelu_new", Activation::gelu_tanh},
                                         {"gelu_fast", Activation::gelu_tanh},
                                         {"quick_gelu", Activation::quick_gelu},
                                         {"silu", Activation::silu},
                                         {"swish", Activation::silu},
                                         {"relu", Activation::relu}});
}

std::optional<Json> find_nested(const Json& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const auto found = config.find(key); found && found->is_object()) return found;
  return std::nullopt;
}

Json nested_config(const Json& config, std::initializer_list<std::string_view> keys) {
  return find_nested(config, keys).value_or(config);
}

Json hf_tower_part(const Json& config, const std::string& tower) {
  constexpr std::string_view kWithDict[] = {"altclip", "chinese_clip", "clip", "clipseg", "metaclip_2"};
  const std::string type = config.find_string("model_type").value_or("");
  const bool has_dict = std::ranges::find(kWithDict, type) != std::end(kWithDict);
  const std::string key = tower + "_config", dict = key + "_dict";
  return nested_config(config, {has_dict ? dict : key, key});
}

void set_hf_mlp(const Json& json, ModelConfig& c) {
  const double ratio = json.find_double("mlp_ratio").value_or(4.0);
  VIT_CHECK(std::isfinite(ratio) && ratio > 0 && ratio < 1e4, kWhere, json.where(),
            ": mlp_ratio must be positive, got ", ratio);
  const double hidden = std::trunc(static_cast<double>(c.embed_dim) * ratio);
  VIT_CHECK(hidden >= 1 && hidden <= 1e6, kWhere, json.where(), ": mlp_ratio ", ratio,
            " gives a hidden width of ", hidden);
  c.mlp.dim = static_cast<std::size_t>(hidden);
  if (!json.find_bool("use_swiglu_ffn").value_or(false)) return;
  c.mlp.kind = MlpKind::gated;
  c.mlp.activation = Activation::silu;
  c.mlp.dim = (static_cast<std::size_t>(std::trunc(hidden * 2.0 / 3.0)) + 7) / 8 * 8;
}

void add_hf_table(ModelConfig& config, std::size_t added_prefix_rows, TableResampling resampling) {
  PositionConfig& position = config.position;
  position.added = added_prefix_rows != 0 ? AddedTable::prefix_and_patches : AddedTable::patches;
  position.added_grid = config.native_grid();
  position.added_prefix_rows = added_prefix_rows;
  position.resampling = resampling;
  position.reuse = TableReuse::equal_count_and_square;
}

void set_dinov3_position(const Json& json, ModelConfig& c) {
  PositionConfig& position = c.position;
  position.rope = RopeKind::axial;
  position.coordinates = CoordinateRule::centered;
  position.axis_order = AxisOrder::y_then_x;
  position.pairing = RopePairing::halves;
  position.theta = read_theta(json);
  position.angle_scale = 2.0 * std::numbers::pi;
}

std::size_t count_hf_classes(const SourceFiles& files, const std::string& name) {
  if (files.drops_classifier()) return 0;
  const auto rows = [&](const char* ending) {
    const TensorEntry* const entry = files.find(name + ending, Place::outside);
    return entry != nullptr && !entry->shape.empty() ? entry->shape[0] : 0;
  };
  const std::size_t weight = rows(".weight"), bias = rows(".bias");
  const auto names = find_hf_labels(*files.config);
  const std::size_t labels = names ? names->size() : 0;
  if (weight != 0 && weight == bias) return weight;
  if (weight != 0 || bias != 0)
    return labels != 0 && (labels == weight || labels == bias) ? labels : std::max(weight, bias);
  if (!hf_class_contains(*files.config, "ForImageClassification")) return 0;
  return names ? labels : 2;  // none of none: there is no classifier
}

std::optional<Json> find_hf_labels(const Json& config) {
  return config.find("id2label");
}

std::size_t count_hf_labels(const Json& config) {
  const auto names = find_hf_labels(config);
  return names ? names->size() : config.find_size("num_labels", {.max = 65535}).value_or(2);
}

std::vector<std::string> read_hf_labels(const Json& config, std::size_t num_classes) {
  const auto names = find_hf_labels(config);
  if (names && names->size() > num_classes) return {};  // of another model: no class is sure to be its own
  std::vector<std::string> labels(names ? num_classes : 0);
  bool has_names = false;  // other than the placeholders that transformers makes where there are none
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string number = std::to_string(i);
    const auto name = names->find(number);
    labels[i] = !name ? number : name->is_number() ? std::to_string(name->as_integer()) : name->as_string();
    has_names = has_names || (name && labels[i] != "LABEL_" + number);
  }
  if (!has_names) labels.clear();
  return labels;
}

bool has_module_names(const SourceFiles& files) {
  for (const char* name : {"layers.{}.attention.o_proj.weight", "encoder.layer.{}.attention.o_proj.weight"}) {
    if (files.any_block_has(name)) return true;
  }
  return false;
}

}  // namespace vit::internal
