// timm's VisionTransformer and Eva classes: rope-vit, ViT, DeiT. One naming scheme serves them all; what differs is which
// tensors exist, and that follows from the constructor arguments. Names: model-by-model state dicts of timm.
#include <cmath>
#include <map>

#include "vit/base/error.h"
#include "vit/weights/family.h"
#include "vit/weights/timm_args.h"

namespace vit {
namespace {

constexpr const char* kWhere = "timm_vit";
constexpr std::string_view kPrefixes[] = {"", "module.", "model.", "timm_model.", "visual.trunk.", "visual.", "module.visual.trunk."};

/// What the tensors of a file without config tell: everything but heads, epsilon, activation, rotation and pooling.
void infer_from_tensors(const SourceFiles& files, TimmArgs& args) {
  const TensorEntry* const patch = files.find("patch_embed.proj.weight");
  VIT_CHECK(patch != nullptr && patch->shape.size() == 4 && patch->shape[2] == patch->shape[3], kWhere,
            files.weights_name, ": patch_embed.proj.weight must have shape (C, 3, P, P)");
  args.embed_dim = patch->shape[0];
  args.patch_size = patch->shape[2];
  args.depth = files.count_blocks("blocks.");
  if (const TensorEntry* const fc2 = files.find("blocks.0.mlp.fc2.weight"); fc2 && fc2->shape.size() == 2) {
    args.mlp_dim = fc2->shape[1];
  }
  const TensorEntry* const head = files.find("head.weight");
  args.num_classes = head != nullptr && !head->shape.empty() ? head->shape[0] : 0;
  if (const TensorEntry* const reg = files.find("reg_token"); reg && reg->shape.size() == 3) {
    args.reg_tokens = reg->shape[1];
  }
  args.layer_scale = files.find("blocks.0.gamma_1") != nullptr || files.find("blocks.0.ls1.gamma") != nullptr;
  const TensorEntry* const table = files.find("pos_embed");
  if (table == nullptr || table->shape.size() != 3) return;
  const std::size_t prefix =
      args.no_embed_class ? 0 : (args.class_token ? 1u : 0u) + (args.distilled ? 1u : 0u) + args.reg_tokens;
  const std::size_t patches = table->shape[1] - std::min(prefix, table->shape[1]);
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (edge * edge == patches) args.image_height = args.image_width = edge * args.patch_size;
}

/// Architecture name: --architecture, else the config's.
std::string architecture_name(const SourceFiles& files) {
  if (!files.options.architecture.empty()) return files.options.architecture;
  return files.config ? files.config->find_string("architecture").value_or("") : "";
}

void apply_config(const Json& config, TimmArgs& args) {
  const Json pretrained = config.find("pretrained_cfg").value_or(config);  // the older form is flat
  if (const auto size = pretrained.find("input_size")) {
    VIT_CHECK(size->size() == 3, kWhere, size->where(), " must be [channels, height, width]");
    args.image_height = (*size)[1].as_size({1, 1'000'000});
    args.image_width = (*size)[2].as_size({1, 1'000'000});
  }
  if (const auto classes = pretrained.find("num_classes")) apply_timm_arg(args, "num_classes", *classes);
  for (const char* key : {"num_classes", "global_pool"}) {
    if (const auto value = config.find(key)) apply_timm_arg(args, key, *value);
  }
  if (const auto model_args = config.find("model_args")) {
    VIT_CHECK(model_args->is_object(), kWhere, model_args->where(), " must be an object");
    for (std::size_t i = 0; i < model_args->size(); ++i) {
      apply_timm_arg(args, std::string((*model_args)[i].key()), (*model_args)[i]);
    }
  }
}

TimmArgs read_args(const SourceFiles& files, const Architecture& architecture) {
  TimmArgs args = architecture.args;
  if (files.config && files.config->find("architecture")) {
    apply_config(*files.config, args);
  } else {
    infer_from_tensors(files, args);
  }
  for (const auto& [key, value] : files.options.overrides) apply_timm_override(args, key, value);
  return args;
}

/// Class names: texts of label_descriptions where given, else label_names, a list or an object keyed by index.
std::vector<std::string> read_labels(const SourceFiles& files, std::size_t num_classes) {
  if (!files.config) return {};
  const auto names = files.config->find("label_names");
  if (!names || names->size() != num_classes) return {};
  const auto descriptions = files.config->find("label_descriptions");
  std::vector<std::string> labels(num_classes);
  for (std::size_t i = 0; i < num_classes; ++i) {
    labels[i] = names->is_array() ? std::string((*names)[i].as_string())
                                  : std::string(names->at(std::to_string(i)).as_string());
    if (descriptions && descriptions->is_object()) labels[i] = descriptions->find_string(labels[i]).value_or(labels[i]);
  }
  return labels;
}

class TimmAdapter final : public Adapter {
 public:
  explicit TimmAdapter(const SourceFiles& files)
      : architecture_(find_architecture(architecture_name(files))),
        args_(read_args(files, architecture_)),
        config_(to_config(args_, architecture_)) {
    config_.labels = read_labels(files, config_.num_classes);
  }

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    if (const auto block = split_block(canonical)) {
      return block_pieces("blocks." + std::to_string(block->block) + ".", block->rest, shape);
    }
    const std::size_t width = config_.embed_dim;
    if (canonical == "patch.weight") {
      return {{.source = "patch_embed.proj.weight", .shape = {width, 3, config_.patch_size, config_.patch_size}}};
    }
    if (canonical == "class_token") return {{.source = "cls_token", .shape = {1, 1, width}}};
    if (canonical == "distillation_token") return {{.source = "dist_token", .shape = {1, 1, width}}};
    if (canonical == "register_tokens") return {{.source = "reg_token", .shape = {1, shape[0], width}}};
    if (canonical == "position_table") return {{.source = "pos_embed", .shape = {1, shape[0], width}}};
    if (canonical == "pool.probe") return {{.source = "attn_pool.latent", .shape = {1, 1, width}}};
    static const std::map<std::string, std::string> stems = {
        {"patch", "patch_embed.proj"}, {"rope_frequencies", "rope.freqs"},    {"norm_pre", "norm_pre"},
        {"norm", "norm"},              {"pooled_norm", "fc_norm"},            {"head", "head"},
        {"head_distillation", "head_dist"}, {"pool.q", "attn_pool.q"},        {"pool.kv", "attn_pool.kv"},
        {"pool.proj", "attn_pool.proj"}, {"pool.norm", "attn_pool.norm"},     {"pool.fc1", "attn_pool.mlp.fc1"},
        {"pool.fc2", "attn_pool.mlp.fc2"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (!has_prefix) return "not part of the image tower";
    if (name == "mask_token") return "used in training only";
    if (name.starts_with("rope.") || name.find(".rope.") != std::string::npos) return "rotation table, recomputed";
    if (config_.num_classes == 0 && name.starts_with("head.")) return "the config asks for no classifier";
    return "";
  }

 private:
  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest, const Shape& shape) const {
    const bool eva = args_.timm_class == TimmClass::eva;
    const std::size_t width = config_.embed_dim;
    if (rest.starts_with("qkv.")) return qkv_pieces(front, rest, shape);
    if (rest == "scale1") return {{.source = front + (eva ? "gamma_1" : "ls1.gamma"), .shape = {width}}};
    if (rest == "scale2") return {{.source = front + (eva ? "gamma_2" : "ls2.gamma"), .shape = {width}}};
    const bool split = eva && (args_.scale_mlp || args_.swiglu_align_to != 0);
    if (config_.mlp == MlpKind::gated && !split && (rest.starts_with("gate.") || rest.starts_with("fc1."))) {
      // one matrix: rows 0 .. M - 1 gate, M .. 2M - 1 value
      const std::size_t hidden = config_.mlp_dim;
      const bool weight = rest.ends_with("weight");
      return {{.source = front + "mlp.fc1." + (weight ? "weight" : "bias"),
               .shape = weight ? std::vector{2 * hidden, width} : std::vector{2 * hidden},
               .first_row = rest.starts_with("gate.") ? 0 : hidden,
               .num_rows = hidden}};
    }
    static const std::map<std::string, std::string> plain = {
        {"norm1", "norm1"}, {"norm2", "norm2"}, {"attention_norm", "attn.norm"}, {"proj", "attn.proj"},
        {"fc1", "mlp.fc1"}, {"fc2", "mlp.fc2"}, {"mlp_norm", "mlp.norm"}};
    static const std::map<std::string, std::string> gated = {
        {"norm1", "norm1"}, {"norm2", "norm2"}, {"attention_norm", "attn.norm"}, {"proj", "attn.proj"},
        {"gate", "mlp.fc1_g"}, {"fc1", "mlp.fc1_x"}, {"fc2", "mlp.fc2"}, {"mlp_norm", "mlp.norm"}};
    return {renamed_piece(rest, shape, split && config_.mlp == MlpKind::gated ? gated : plain, front)};
  }

  /// Eva's own attention has no k bias: it keeps q_bias and v_bias beside a fused matrix, or three separate projections.
  std::vector<Piece> qkv_pieces(const std::string& front, const std::string& rest, const Shape& shape) const {
    const std::size_t width = config_.embed_dim;
    const bool weight = rest == "qkv.weight";
    const bool own_bias = args_.timm_class == TimmClass::eva && args_.attn_type == "eva";
    const std::string attn = front + "attn.";
    if (args_.timm_class == TimmClass::eva && !args_.qkv_fused) {
      std::vector<Piece> parts;
      for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
        const std::string source = attn + name + (weight ? ".weight" : ".bias");
        if (!weight && own_bias && name[0] == 'k') {
          parts.push_back({.zeros = width});
        } else {
          parts.push_back({.source = source, .shape = weight ? std::vector{width, width} : std::vector{width}});
        }
      }
      return parts;
    }
    if (!weight && own_bias) {
      return {{.source = attn + "q_bias", .shape = {width}},
              {.zeros = width},
              {.source = attn + "v_bias", .shape = {width}}};
    }
    return {{.source = attn + rest, .shape = weight ? std::vector{shape[0], shape[1]} : std::vector{shape[0]}}};
  }

  const Architecture& architecture_;
  TimmArgs args_;
  ModelConfig config_;
};

bool matches(SourceFiles& files) {
  if (!files.find_prefix("patch_embed.proj.weight", kPrefixes)) return false;
  const std::string name = architecture_name(files);
  if (name.empty()) {
    fail(kWhere, files.weights_name,
         ": the tensors cannot tell the number of heads, epsilon, activation and rotation; give --architecture, one of timm's "
         "names such as ",
         nearest_architectures("vit_base_patch16_rope_224", 3).front());
  }
  return true;
}

}  // namespace

constinit const Family kTimmFamily{
    "timm", matches, [](const SourceFiles& files) -> std::unique_ptr<Adapter> { return std::make_unique<TimmAdapter>(files); }};

}  // namespace vit
