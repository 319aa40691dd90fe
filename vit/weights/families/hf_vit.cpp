// Hugging Face's ViT, DeiT, MAE, MSN and I-JEPA (model_type "vit", "deit", "vit_mae", "vit_msn", "ijepa"),
// bare or with a classification head, distilled or not. A bare ViT or DeiT may end in a pooler. Of models
// that were pretrained on masked pictures the decoder is left out, and the encoder sees every patch. I-JEPA
// has no class token; the mean of its patches is the embedding. Blocks have the published names or those of
// release 5's modules. Source: transformers, models/vit, deit,
// vit_mae, vit_msn, ijepa.
#include <algorithm>
#include <iterator>
#include <map>

#include "vit/base/error.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

constexpr std::string_view kTypes[] = {"vit", "deit", "vit_mae", "vit_msn", "ijepa"};
constexpr std::string_view kPrefixes[] = {"",        "vit.",        "deit.",        "ijepa.",
                                          "module.", "module.vit.", "module.deit.", "module.ijepa."};

bool matches(SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) return false;
  VIT_CHECK(files.find_prefix("embeddings.patch_embeddings.projection.weight", kPrefixes), "hf_vit",
            files.weights_name,
            ": no tensor embeddings.patch_embeddings.projection.weight, with or without the prefix ", type,
            ".");
  return true;
}

class HfVitAdapter final : public Adapter {
 public:
  explicit HfVitAdapter(const SourceFiles& files)
      : files_(files), names_(hf_names(files)), config_(read_config()) {}

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    if (const auto block = split_block(canonical)) {
      const std::string blocks = names_ == HfNames::modules ? "layers." : "encoder.layer.";
      std::vector<Piece> pieces =
          block_pieces(blocks + std::to_string(block->block) + ".", block->rest, shape);
      if (blocks_stand_outside()) {
        for (Piece& piece : pieces) {
          if (piece.source.empty()) continue;  // zeros
          piece.source = hf_outer_prefix(files_) + piece.source;
          piece.absolute = true;
        }
      }
      return pieces;
    }
    if (const auto piece = hf_embedding_piece(config_, canonical, shape)) return {*piece};
    if (canonical.starts_with("head.")) return {hf_head_piece(files_, head_name(), canonical, shape)};
    if (canonical.starts_with("head_distillation.")) {
      return {hf_head_piece(files_, "distillation_classifier", canonical, shape)};
    }
    static const std::map<std::string, std::string> stems = {
        {"patch", "embeddings.patch_embeddings.projection"},
        {"norm", "layernorm"},
        {"pooler", "pooler.dense"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (is_decoder(name)) return "decoder of the pretraining task";
    if (!has_prefix) return "";
    if (name == "pooler.dense.weight" || name == "pooler.dense.bias") {
      return "pooler of the pretraining task, which a classifier does not read";
    }
    if (name == "embeddings.mask_token") return "used in training only";
    return "";
  }

 private:
  /// MAE's decoder is a transformer, that of ViTForMaskedImageModeling and its like in DeiT one convolution.
  bool is_decoder(const std::string& name) const {
    const std::string decoder = hf_outer_prefix(files_) + "decoder.";
    if (config_.family == "vit_mae") return name.starts_with(decoder);
    const bool has_masked_class = config_.family == "vit" || config_.family == "deit";
    return has_masked_class && (name == decoder + "0.weight" || name == decoder + "0.bias");
  }
  /// transformers 5 writes MSN's classifier with "vit." before all names but those of the blocks.
  bool blocks_stand_outside() const {
    constexpr const char* kFirst = "encoder.layer.0.layernorm_before.weight";
    return files_.tensors.find(files_.prefix + kFirst) == nullptr &&
           files_.tensors.find(hf_outer_prefix(files_) + kFirst) != nullptr;
  }
  bool has_pooler(const Json& json, const ModelConfig& config) const {
    const auto has = [&](const char* name) { return files_.tensors.find(files_.prefix + name) != nullptr; };
    const bool is_possible = config.family == "vit" || config.family == "deit";
    if (!is_possible || config.num_classes != 0) return false;
    if (!has("pooler.dense.weight") && !has("pooler.dense.bias")) return false;
    const std::string activation = json.find_string("pooler_act").value_or("tanh");
    VIT_CHECK(activation == "tanh", "hf_vit", json.where(), ".pooler_act ", in_quotes(activation),
              " is unknown, expected \"tanh\"");
    return true;
  }
  bool distilled() const {
    return files_.tensors.find(hf_outer_prefix(files_) + "cls_classifier.weight") != nullptr;
  }
  std::string head_name() const {
    return config_.head_input == HeadInput::class_and_distillation ? "cls_classifier" : "classifier";
  }

  ModelConfig read_config() const {
    const Json& json = *files_.config;
    const std::string type = hf_model_type(files_);
    ModelConfig c = read_hf_sizes(files_, json, {.norm_eps = type == "vit_msn" ? 1e-6 : 1e-12});
    c.family = type;
    c.qkv_bias = json.find_bool("qkv_bias").value_or(true);
    c.class_token = type != "ijepa";
    c.distillation_token = type == "deit";
    if (type == "ijepa") c.pooling = Pooling::patch_mean;
    add_hf_table(c, c.num_prefix_tokens());
    const bool two_heads = distilled() || hf_class_contains(json, "WithTeacher");
    c.num_classes = count_hf_classes(files_, two_heads ? "cls_classifier" : "classifier");
    c.labels = read_hf_labels(json, c.num_classes);
    if (two_heads) c.head_input = HeadInput::class_and_distillation;
    c.pooler = has_pooler(json, c);
    validate(c);
    return c;
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest,
                                  const Shape& shape) const {
    if (rest.starts_with("qkv.")) {
      return joined_qkv(hf_qkv_stems(names_, front), rest.substr(3), config_.embed_dim);
    }
    static const std::map<std::string, std::string> published = {{"norm1", "layernorm_before"},
                                                                 {"norm2", "layernorm_after"},
                                                                 {"proj", "attention.output.dense"},
                                                                 {"fc1", "intermediate.dense"},
                                                                 {"fc2", "output.dense"}};
    static const std::map<std::string, std::string> modules = {{"norm1", "layernorm_before"},
                                                               {"norm2", "layernorm_after"},
                                                               {"proj", "attention.o_proj"},
                                                               {"fc1", "mlp.fc1"},
                                                               {"fc2", "mlp.fc2"}};
    return {renamed_piece(rest, shape, names_ == HfNames::modules ? modules : published, front)};
  }

  const SourceFiles files_;
  HfNames names_;
  ModelConfig config_;
};

}  // namespace

constinit const Family kHfVitFamily{"hf_vit", "embeddings.patch_embeddings.projection.weight", matches,
                                    [](const SourceFiles& files) -> std::unique_ptr<Adapter> {
                                      return std::make_unique<HfVitAdapter>(files);
                                    }};

}  // namespace vit::internal
