// The image towers of Hugging Face's CLIP, MetaCLIP 2 and SigLIP, alone or inside the whole model, and their
// classifiers. CLIP and MetaCLIP 2, which differ in their text towers alone, normalise the class token and
// project it, SigLIP pools by attention. Source: transformers, models/clip, metaclip_2 and siglip.
#include <map>

#include "vit/base/error.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "hf_clip";
constexpr std::string_view kPrefixes[] = {"vision_model.", "", "module.vision_model.", "module."};

bool is_whole_clip(const std::string& type) {
  return type == "clip" || type == "metaclip_2";
}
bool is_clip(const std::string& type) {
  return is_whole_clip(type) || type == "clip_vision_model" || type == "metaclip_2_vision_model";
}
bool is_siglip(const std::string& type) {
  return type == "siglip" || type == "siglip_vision_model";
}

bool matches(SourceFiles& files) {
  const std::string type = hf_model_type(files);
  VIT_CHECK(type != "siglip2" && type != "siglip2_vision_model", kWhere, files.config->where(),
            ": SigLIP 2 NaFlex (model_type ", type, ") is not supported; its models of fixed resolution are");
  if (!is_clip(type) && !is_siglip(type)) return false;
  VIT_CHECK(files.find_prefix("embeddings.patch_embedding.weight", kPrefixes), kWhere, files.weights_name,
            ": no tensor embeddings.patch_embedding.weight, with or without the prefix vision_model.");
  return true;
}

/// The image tower's part of config.json.
Json vision_config(const Json& json) {
  for (const char* key : {"vision_config_dict", "vision_config"}) {  // where both are given, the first wins
    if (const auto nested = json.find(key); nested && nested->is_object()) return *nested;
  }
  return json;
}

class HfClipAdapter final : public Adapter {
 public:
  explicit HfClipAdapter(const SourceFiles& files)
      : files_(files), clip_(is_clip(hf_model_type(files))), config_(clip_ ? read_clip() : read_siglip()) {}

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    const std::size_t width = config_.embed_dim;
    if (const auto block = split_block(canonical)) {
      return block_pieces("encoder.layers." + std::to_string(block->block) + ".", block->rest, shape);
    }
    if (canonical == "patch.weight") {
      return {{.source = "embeddings.patch_embedding.weight",
               .shape = {width, 3, config_.patch_size, config_.patch_size}}};
    }
    if (canonical == "class_token") return {{.source = "embeddings.class_embedding", .shape = {width}}};
    if (canonical == "position_table")
      return {{.source = "embeddings.position_embedding.weight", .shape = sizes_of(shape)}};
    if (canonical == "pool.probe") return {{.source = "head.probe", .shape = {1, 1, width}}};
    if (canonical.starts_with("pool.q.") || canonical.starts_with("pool.kv.")) {
      return {pool_rows("head.attention.in_proj_", canonical, width)};
    }
    if (canonical.starts_with("head.")) return {hf_head_piece(files_, "classifier", canonical, shape)};
    if (canonical.starts_with("projection."))
      return {hf_head_piece(files_, "visual_projection", canonical, shape)};
    static const std::map<std::string, std::string> stems = {{"patch", "embeddings.patch_embedding"},
                                                             {"norm_pre", "pre_layrnorm"},
                                                             {"norm", "post_layernorm"},
                                                             {"pooled_norm", "post_layernorm"},
                                                             {"pool.proj", "head.attention.out_proj"},
                                                             {"pool.norm", "head.layernorm"},
                                                             {"pool.fc1", "head.mlp.fc1"},
                                                             {"pool.fc2", "head.mlp.fc2"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (has_prefix && name == "embeddings.position_ids") return "row numbers of the position table";
    if (has_prefix && config_.num_classes != 0) {
      if (clip_ && name.starts_with("post_layernorm.")) return "the classifier reads tokens before it";
      if (!clip_ && name.starts_with("head.")) return "the classifier reads the mean of the tokens";
    }
    const std::string outer = hf_outer_prefix(files_);
    return text_tower_reason(name.starts_with(outer) ? name.substr(outer.size()) : name);
  }

 private:
  ModelConfig read_clip() const {
    const Json& json = *files_.config;
    ModelConfig c = read_hf_sizes(files_, vision_config(json),
                                  {.patch_size = 32, .norm_eps = 1e-5, .activation = "quick_gelu"});
    c.family = "clip";
    c.patch_bias = false;
    c.norm_pre = true;
    c.token_norm = false;  // last_hidden_state is not normalised, pooler_output is
    c.pooled_norm = true;
    add_hf_table(c, 1);
    read_classifier(c);
    if (c.num_classes != 0) {
      c.pooled_norm = false;
    } else if (is_whole_clip(hf_model_type(files_)) || hf_class_contains(json, "WithProjection")) {
      c.projection_dim = json.find_size("projection_dim").value_or(512);
    }
    validate(c);
    return c;
  }

  ModelConfig read_siglip() const {
    const Json json = vision_config(*files_.config);
    ModelConfig c = read_hf_sizes(files_, json, {.norm_eps = 1e-6, .activation = "gelu_pytorch_tanh"});
    c.family = "siglip";
    c.class_token = false;
    add_hf_table(c, 0);
    c.pooling = json.find_bool("vision_use_head").value_or(true) ? Pooling::attention : Pooling::none;
    c.attention_pool = {.num_heads = c.num_heads, .mlp_dim = c.mlp_dim, .activation = c.activation};
    read_classifier(c);
    validate(c);
    return c;
  }

  void read_classifier(ModelConfig& c) const {
    c.num_classes = count_hf_classes(files_, "classifier");
    if (c.num_classes == 0) return;
    c.labels = read_hf_labels(*files_.config, c.num_classes);
    c.pooling = Pooling::patch_mean;
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest,
                                  const Shape& shape) const {
    if (rest.starts_with("qkv.")) {
      const std::string attention = front + "self_attn.";
      return joined_qkv({attention + "q_proj", attention + "k_proj", attention + "v_proj"}, rest.substr(3),
                        config_.embed_dim);
    }
    static const std::map<std::string, std::string> stems = {{"norm1", "layer_norm1"},
                                                             {"norm2", "layer_norm2"},
                                                             {"proj", "self_attn.out_proj"},
                                                             {"fc1", "mlp.fc1"},
                                                             {"fc2", "mlp.fc2"}};
    return {renamed_piece(rest, shape, stems, front)};
  }

  const SourceFiles files_;
  bool clip_;
  ModelConfig config_;
};

}  // namespace

constinit const Family kHfClipFamily{"hf_clip", "embeddings.patch_embedding.weight", matches,
                                     [](const SourceFiles& files) -> std::unique_ptr<Adapter> {
                                       return std::make_unique<HfClipAdapter>(files);
                                     }};

}  // namespace vit::internal
