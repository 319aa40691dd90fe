// Hugging Face's DINOv3, plain or gated, under both spellings of the blocks (layer.N and model.layer.N).
// Periods are recomputed, the pooled output is the class token. Source: transformers, models/dinov3_vit.
#include <map>
#include <numbers>

#include "vit/base/error.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr std::string_view kPrefixes[] = {"", "dinov3_vit.", "module."};

bool matches(SourceFiles& files) {
  if (hf_model_type(files) != "dinov3_vit") return false;
  VIT_CHECK(files.find_prefix("embeddings.patch_embeddings.weight", kPrefixes), "hf_dinov3",
            files.weights_name, ": no tensor embeddings.patch_embeddings.weight");
  return true;
}

class HfDinov3Adapter final : public Adapter {
 public:
  explicit HfDinov3Adapter(const SourceFiles& files)
      : files_(files),
        layer_(files.count_blocks("model.layer.") != 0 ? "model.layer." : "layer."),
        biases_{.q_bias = bias("query_bias"), .k_bias = bias("key_bias"), .v_bias = bias("value_bias")},
        config_(read_config()) {}

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    const std::size_t width = config_.embed_dim;
    if (const auto block = split_block(canonical)) {
      return block_pieces(layer_ + std::to_string(block->block) + ".", block->rest, shape);
    }
    if (canonical == "patch.weight") {
      return {{.source = "embeddings.patch_embeddings.weight",
               .shape = {width, 3, config_.patch_size, config_.patch_size}}};
    }
    if (canonical == "class_token") return {{.source = "embeddings.cls_token", .shape = {1, 1, width}}};
    if (canonical == "register_tokens")
      return {{.source = "embeddings.register_tokens", .shape = {1, shape[0], width}}};
    static const std::map<std::string, std::string> stems = {{"patch", "embeddings.patch_embeddings"},
                                                             {"norm", "norm"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (!has_prefix) return "";
    if (name == "embeddings.mask_token") return "used in training only";
    // transformers writes the tensor (1, 0, C) too
    if (name == "embeddings.register_tokens" && config_.num_register_tokens == 0) return "holds no tokens";
    return "";
  }

 private:
  bool bias(const char* key) const {
    return files_.config->find_bool(key).value_or(std::string_view(key) != "key_bias");
  }

  ModelConfig read_config() const {
    const Json& json = *files_.config;
    ModelConfig c = read_hf_sizes(
        files_, json, {.hidden_size = 384, .num_heads = 6, .intermediate_size = 1536, .norm_eps = 1e-5});
    c.family = "dinov3";
    c.num_register_tokens = json.find_size("num_register_tokens").value_or(0);
    c.qkv_bias = biases_.q_bias || biases_.k_bias || biases_.v_bias;
    c.proj_bias = bias("proj_bias");
    c.mlp_bias = bias("mlp_bias");
    c.layer_scale = true;
    if (json.find_bool("use_gated_mlp").value_or(false)) c.mlp = MlpKind::gated;
    PositionConfig& position = c.position;
    position.rope = RopeKind::axial;
    position.coordinates = CoordinateRule::centered;
    position.axis_order = AxisOrder::y_then_x;
    position.pairing = RopePairing::halves;
    position.theta = read_theta(json);
    position.angle_scale = 2.0 * std::numbers::pi;
    validate(c);
    return c;
  }

  /// At the top level so far; other models of the library have moved it into rope_parameters.
  static double read_theta(const Json& json) {
    if (const auto theta = json.find_double("rope_theta")) return *theta;
    const auto parameters = json.find("rope_parameters");
    return parameters && parameters->is_object() ? parameters->find_double("rope_theta").value_or(100.0)
                                                 : 100.0;
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest,
                                  const Shape& shape) const {
    if (rest.starts_with("qkv.")) {
      const std::string attention = front + "attention.";
      return joined_qkv({attention + "q_proj", attention + "k_proj", attention + "v_proj"}, rest.substr(3),
                        config_.embed_dim, biases_);
    }
    if (rest == "scale1") return {{.source = front + "layer_scale1.lambda1", .shape = sizes_of(shape)}};
    if (rest == "scale2") return {{.source = front + "layer_scale2.lambda1", .shape = sizes_of(shape)}};
    static const std::map<std::string, std::string> stems = {
        {"norm1", "norm1"},        {"norm2", "norm2"},     {"proj", "attention.o_proj"},
        {"gate", "mlp.gate_proj"}, {"fc1", "mlp.up_proj"}, {"fc2", "mlp.down_proj"}};
    return {renamed_piece(rest, shape, stems, front)};
  }

  const SourceFiles files_;
  std::string layer_;
  JoinedBias biases_;
  ModelConfig config_;
};

}  // namespace

constinit const Family kHfDinov3Family{"hf_dinov3", "embeddings.patch_embeddings.weight", matches,
                                       [](const SourceFiles& files) -> std::unique_ptr<Adapter> {
                                         return std::make_unique<HfDinov3Adapter>(files);
                                       }};

}  // namespace vit::internal
