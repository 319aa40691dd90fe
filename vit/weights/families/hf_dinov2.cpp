// Hugging Face's DINOv2, plain or gated, with or without registers, bare or with a classifier that reads
// class token and mean of patches. Blocks have the published names or those of release 5's modules. Source:
// transformers, models/dinov2 and dinov2_with_registers.
#include <cmath>
#include <map>

#include "vit/base/error.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "hf_dinov2";
constexpr std::string_view kPrefixes[] = {"", "dinov2.", "dinov2_with_registers.", "module.",
                                          "module.dinov2."};

bool matches(SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "dinov2" && type != "dinov2_with_registers") return false;
  VIT_CHECK(files.find_prefix("embeddings.patch_embeddings.projection.weight", kPrefixes), kWhere,
            files.weights_name,
            ": no tensor embeddings.patch_embeddings.projection.weight, with or without the prefix ", type,
            ".");
  return true;
}

class HfDinov2Adapter final : public Adapter {
 public:
  explicit HfDinov2Adapter(const SourceFiles& files)
      : files_(files), names_(hf_names(files)), config_(read_config()) {}

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    if (const auto block = split_block(canonical)) {
      return block_pieces("encoder.layer." + std::to_string(block->block) + ".", block->rest, shape);
    }
    if (const auto piece = hf_embedding_piece(config_, canonical, shape)) return {*piece};
    if (canonical.starts_with("head.")) return {hf_head_piece(files_, "classifier", canonical, shape)};
    static const std::map<std::string, std::string> stems = {
        {"patch", "embeddings.patch_embeddings.projection"}, {"norm", "layernorm"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (!has_prefix) return "";
    if (name == "embeddings.mask_token") return "used in training only";
    // transformers writes the tensor (1, 0, C) too
    if (name == "embeddings.register_tokens" && has_register_class() && config_.num_register_tokens == 0)
      return "holds no tokens";
    return "";
  }

  std::vector<std::string> notes() const override {
    if (has_register_class()) return {};
    return {
        "other sizes: the learned table is resampled to the exact size, as transformers does today (its "
        "first releases "
        "and Meta shift the scale by 0.1)"};
  }

 private:
  bool has_register_class() const { return hf_model_type(files_) == "dinov2_with_registers"; }

  ModelConfig read_config() const {
    const Json& json = *files_.config;
    const bool registers = has_register_class();
    ModelConfig c = read_hf_sizes(files_, json, {.patch_size = registers ? 16u : 14u, .norm_eps = 1e-6});
    c.family = "dinov2";
    c.qkv_bias = json.find_bool("qkv_bias").value_or(true);
    if (registers) c.num_register_tokens = json.find_size("num_register_tokens").value_or(4);
    c.layer_scale = true;
    set_mlp(json, c);
    // registers come after the table was added and have no row in it
    add_hf_table(c, 1, registers ? TableResampling::bicubic_antialias : TableResampling::bicubic);
    c.num_classes = count_hf_classes(files_, "classifier");
    c.labels = read_hf_labels(json, c.num_classes);
    c.head_input = HeadInput::class_and_patch_mean;
    validate(c);
    return c;
  }

  /// A gated MLP keeps two thirds of the hidden width, rounded up to a multiple of 8.
  static void set_mlp(const Json& json, ModelConfig& c) {
    const double ratio = json.find_double("mlp_ratio").value_or(4.0);
    VIT_CHECK(std::isfinite(ratio) && ratio > 0 && ratio < 1e4, kWhere, json.where(),
              ": mlp_ratio must be positive, got ", ratio);
    const double hidden = std::trunc(static_cast<double>(c.embed_dim) * ratio);
    VIT_CHECK(hidden >= 1 && hidden <= 1e6, kWhere, json.where(), ": mlp_ratio ", ratio,
              " gives a hidden width of ", hidden);
    c.mlp_dim = static_cast<std::size_t>(hidden);
    if (!json.find_bool("use_swiglu_ffn").value_or(false)) return;
    c.mlp = MlpKind::gated;
    c.activation = Activation::silu;
    c.mlp_dim = (static_cast<std::size_t>(std::trunc(hidden * 2.0 / 3.0)) + 7) / 8 * 8;
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest,
                                  const Shape& shape) const {
    if (rest.starts_with("qkv.")) {
      return joined_qkv(hf_qkv_stems(names_, front), rest.substr(3), config_.embed_dim);
    }
    if (rest == "scale1") return {{.source = front + "layer_scale1.lambda1", .shape = sizes_of(shape)}};
    if (rest == "scale2") return {{.source = front + "layer_scale2.lambda1", .shape = sizes_of(shape)}};
    const bool gated = config_.mlp == MlpKind::gated;
    if (names_ == HfNames::modules) {
      static const std::map<std::string, std::string> plain_modules = {{"norm1", "norm1"},
                                                                       {"norm2", "norm2"},
                                                                       {"proj", "attention.o_proj"},
                                                                       {"fc1", "mlp.fc1"},
                                                                       {"fc2", "mlp.fc2"}};
      static const std::map<std::string, std::string> gated_modules = {
          {"norm1", "norm1"},        {"norm2", "norm2"},     {"proj", "attention.o_proj"},
          {"gate", "mlp.gate_proj"}, {"fc1", "mlp.up_proj"}, {"fc2", "mlp.down_proj"}};
      return {renamed_piece(rest, shape, gated ? gated_modules : plain_modules, front)};
    }
    if (gated && (rest.starts_with("gate.") || rest.starts_with("fc1."))) {
      return {half_of_rows(front + "mlp.weights_in", rest, shape)};
    }
    static const std::map<std::string, std::string> plain_stems = {{"norm1", "norm1"},
                                                                   {"norm2", "norm2"},
                                                                   {"proj", "attention.output.dense"},
                                                                   {"fc1", "mlp.fc1"},
                                                                   {"fc2", "mlp.fc2"}};
    static const std::map<std::string, std::string> gated_stems = {{"norm1", "norm1"},
                                                                   {"norm2", "norm2"},
                                                                   {"proj", "attention.output.dense"},
                                                                   {"fc2", "mlp.weights_out"}};
    return {renamed_piece(rest, shape, gated ? gated_stems : plain_stems, front)};
  }

  const SourceFiles files_;
  HfNames names_;
  ModelConfig config_;
};

}  // namespace

constinit const Family kHfDinov2Family{"hf_dinov2", "embeddings.patch_embeddings.projection.weight", matches,
                                       [](const SourceFiles& files) -> std::unique_ptr<Adapter> {
                                         return std::make_unique<HfDinov2Adapter>(files);
                                       }};

}  // namespace vit::internal
