// Hugging Face's ViT and DeiT (model_type "vit", "deit"), bare or with a classification head, distilled or not.
// Source: transformers, models/vit and models/deit; class defaults as there.
#include <map>

#include "vit/base/error.h"
#include "vit/weights/family.h"

namespace vit {
namespace {

constexpr const char* kWhere = "hf_vit";
constexpr std::string_view kPrefixes[] = {"", "vit.", "deit.", "module.", "module.vit.", "module.deit."};

std::string model_type(const SourceFiles& files) {
  return files.config ? files.config->find_string("model_type").value_or("") : "";
}

bool matches(SourceFiles& files) {
  const std::string type = model_type(files);
  if (type != "vit" && type != "deit") return false;
  VIT_CHECK(files.find_prefix("embeddings.patch_embeddings.projection.weight", kPrefixes), kWhere, files.weights_name,
            ": no tensor embeddings.patch_embeddings.projection.weight, with or without the prefix vit. or deit.");
  return true;
}

Activation read_activation(const Json& config) {
  const std::string name = config.find_string("hidden_act").value_or("gelu");
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  fail(kWhere, config.at("hidden_act").where(), ": unknown activation \"", name, "\"");
}

/// Class names in index order; nothing where id2label is absent or holds the library's own placeholders.
std::vector<std::string> read_labels(const Json& config, std::size_t num_classes) {
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

class HfVitAdapter final : public Adapter {
 public:
  explicit HfVitAdapter(const SourceFiles& files) : files_(files), config_(read_config()) {}

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    const std::size_t width = config_.embed_dim;
    if (const auto block = split_block(canonical)) {
      return block_pieces("encoder.layer." + std::to_string(block->block) + ".", block->rest, shape);
    }
    if (canonical == "patch.weight") {
      return {{.source = "embeddings.patch_embeddings.projection.weight",
               .shape = {width, 3, config_.patch_size, config_.patch_size}}};
    }
    if (canonical == "class_token") return {{.source = "embeddings.cls_token", .shape = {1, 1, width}}};
    if (canonical == "distillation_token") return {{.source = "embeddings.distillation_token", .shape = {1, 1, width}}};
    if (canonical == "position_table") {
      return {{.source = "embeddings.position_embeddings", .shape = {1, shape[0], width}}};
    }
    const bool distilled = config_.head_input == HeadInput::class_and_distillation && config_.num_classes != 0;
    static const std::map<std::string, std::string> stems = {{"patch", "embeddings.patch_embeddings.projection"},
                                                             {"norm", "layernorm"}};
    if (canonical.starts_with("head.")) {
      return {head_piece((distilled ? "cls_classifier." : "classifier.") + canonical.substr(5), shape)};
    }
    if (canonical.starts_with("head_distillation.")) {
      return {head_piece("distillation_classifier." + canonical.substr(18), shape)};
    }
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool) const override {
    if (name.starts_with("pooler.")) return "tanh pooler of the pretraining task; the class token is the pooled output here";
    if (name == "embeddings.mask_token") return "used in training only";
    if (name.starts_with("decoder.")) return "decoder of masked image modelling";
    return "";
  }

 private:
  ModelConfig read_config() const {
    const Json& json = *files_.config;
    const std::string type = model_type(files_);
    ModelConfig c;
    c.family = type;
    c.library = "transformers";
    if (const auto classes = json.find("architectures"); classes && classes->size() != 0) {
      c.architecture = (*classes)[0].as_string();
    }
    c.embed_dim = json.find_size("hidden_size").value_or(768);
    c.depth = json.find_size("num_hidden_layers").value_or(12);
    c.num_heads = json.find_size("num_attention_heads").value_or(12);
    c.mlp_dim = json.find_size("intermediate_size").value_or(3072);
    c.patch_size = json.find_size("patch_size", {1, 1024}).value_or(16);
    read_image_size(json, c);
    VIT_CHECK(json.find_size("num_channels").value_or(3) == 3, kWhere, json.where(), ": num_channels must be 3");
    c.norm_eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(1e-12));
    c.qkv_bias = json.find_bool("qkv_bias").value_or(true);
    c.activation = read_activation(json);
    c.distillation_token = type == "deit";
    c.position.added = AddedTable::prefix_and_patches;
    c.position.added_grid = c.native_grid();
    c.position.added_prefix_rows = c.num_prefix_tokens();
    c.position.resampling = TableResampling::bicubic;
    c.position.reuse = TableReuse::equal_count_and_square;
    read_head(json, c);
    validate(c);
    return c;
  }

  static void read_image_size(const Json& json, ModelConfig& c) {
    const auto size = json.find("image_size");
    if (!size) return;
    const SizeRange range{1, 1'000'000};
    if (size->is_array()) {
      VIT_CHECK(size->size() == 2, kWhere, size->where(), " must be one number or [height, width]");
      c.image_height = (*size)[0].as_size(range);
      c.image_width = (*size)[1].as_size(range);
    } else {
      c.image_height = c.image_width = size->as_size(range);
    }
  }

  /// The tensors decide whether there is a classifier and how many classes it has.
  void read_head(const Json& json, ModelConfig& c) const {
    const bool distilled = files_.tensors.find("cls_classifier.weight") != nullptr;
    const TensorEntry* const head =
        files_.tensors.find(distilled ? "cls_classifier.weight" : "classifier.weight");
    if (head == nullptr) return;
    VIT_CHECK(head->shape.size() == 2, kWhere, files_.weights_name, ": ", head->describe(), " must be a matrix");
    c.num_classes = head->shape[0];
    c.labels = read_labels(json, c.num_classes);
    if (distilled) c.head_input = HeadInput::class_and_distillation;
  }

  /// Classifiers stand outside the prefixed image tower.
  static Piece head_piece(const std::string& name, const Shape& shape) {
    return {.source = name, .shape = sizes_of(shape), .absolute = true};
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest, const Shape& shape) const {
    if (rest.starts_with("qkv.")) {
      const std::string ending = rest.substr(3);
      const std::size_t width = config_.embed_dim;
      std::vector<Piece> parts;
      for (const char* name : {"query", "key", "value"}) {
        parts.push_back({.source = front + "attention.attention." + name + ending,
                         .shape = ending == ".weight" ? std::vector{width, width} : std::vector{width}});
      }
      return parts;
    }
    static const std::map<std::string, std::string> stems = {{"norm1", "layernorm_before"},
                                                             {"norm2", "layernorm_after"},
                                                             {"proj", "attention.output.dense"},
                                                             {"fc1", "intermediate.dense"},
                                                             {"fc2", "output.dense"}};
    return {renamed_piece(rest, shape, stems, front)};
  }

  const SourceFiles files_;
  ModelConfig config_;
};

}  // namespace

constinit const Family kHfVitFamily{
    "hf_vit", matches, [](const SourceFiles& files) -> std::unique_ptr<Adapter> { return std::make_unique<HfVitAdapter>(files); }};

}  // namespace vit
