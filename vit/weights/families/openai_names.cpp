// Files under the names of OpenAI's CLIP code: CLIP, OpenCLIP, and Meta's Perception Encoder, which grew out
// of it. The text tower beside the image tower is left alone. Source: openai/CLIP, clip/model.py;
// facebookresearch/perception_models, core/vision_encoder/pe.py and rope.py.
#include "vit/weights/families/openai_names.h"

#include <map>

#include "vit/weights/families/timm_layout.h"

namespace vit::internal {

std::string openai_name(const std::string& name) {
  static const std::map<std::string, std::string> stems = {{"cls_token", "class_embedding"},
                                                           {"pos_embed", "positional_embedding"},
                                                           {"patch_embed.proj", "conv1"},
                                                           {"norm_pre", "ln_pre"},
                                                           {"norm", "ln_post"},
                                                           {"fc_norm", "ln_post"},
                                                           {"attn_pool.latent", "attn_pool.probe"},
                                                           {"attn_pool.proj", "attn_pool.attn.out_proj"},
                                                           {"attn_pool.norm", "attn_pool.layernorm"},
                                                           {"attn_pool.mlp.fc1", "attn_pool.mlp.c_fc"},
                                                           {"attn_pool.mlp.fc2", "attn_pool.mlp.c_proj"},
                                                           {"norm1", "ln_1"},
                                                           {"norm2", "ln_2"},
                                                           {"attn.proj", "attn.out_proj"},
                                                           {"mlp.fc1", "mlp.c_fc"},
                                                           {"mlp.fc2", "mlp.c_proj"}};
  static const std::map<std::string, std::string> whole = {{"attn.qkv.weight", "attn.in_proj_weight"},
                                                           {"attn.qkv.bias", "attn.in_proj_bias"},
                                                           {"gamma_1", "ls_1.gamma"},
                                                           {"gamma_2", "ls_2.gamma"},
                                                           {"ls1.gamma", "ls_1.gamma"},
                                                           {"ls2.gamma", "ls_2.gamma"}};
  std::string front, rest = name;
  if (name.starts_with("blocks.")) {
    const std::size_t dot = name.find('.', 7);
    front = "transformer.resblocks." + name.substr(7, dot - 6);
    rest = name.substr(dot + 1);
  }
  if (const auto found = whole.find(rest); found != whole.end()) return front + found->second;
  if (const auto found = stems.find(rest); found != stems.end()) return front + found->second;
  const std::size_t dot = rest.rfind('.');
  const auto stem = dot == std::string::npos ? stems.end() : stems.find(rest.substr(0, dot));
  return stem == stems.end() ? name : front + stem->second + rest.substr(dot);
}

std::vector<Piece> openai_pieces(const SourceFiles&, const ModelConfig& config, const std::string& canonical,
                                 const Shape& shape) {
  const std::size_t width = config.embed_dim;
  if (canonical == "class_token") return {{.source = "class_embedding", .shape = {width}}};
  if (canonical == "position_table") return {{.source = "positional_embedding", .shape = sizes_of(shape)}};
  if (canonical.starts_with("pool.q.") || canonical.starts_with("pool.kv.")) {
    return {pool_rows("attn_pool.attn.in_proj_", canonical, width)};
  }
  if (canonical == "projection.weight" || canonical == "head.weight") {
    return {{.source = "proj", .shape = {width, shape[0]}, .transposed = true}};
  }
  if (canonical == "head.bias") return {{.zeros = shape[0]}};
  return {};
}

namespace {

constexpr std::string_view kPrefixes[] = {"visual.",       "",        "module.visual.",
                                          "model.visual.", "module.", "model."};

/// `proj` (C, E) is applied as x @ proj: timm's classifier, transposed and without bias.
std::size_t projection_width(const SourceFiles& files) {
  const TensorEntry* const proj = files.find("proj");
  return proj != nullptr && proj->shape.size() == 2 ? proj->shape[1] : 0;
}

void adjust_args(const SourceFiles& files, const Architecture& architecture, TimmArgs& args) {
  const std::size_t width = projection_width(files);
  args.num_classes = width != 0 ? width : architecture.args.num_classes;  // who projects must have the tensor
}

void apply_rules(const SourceFiles&, ModelConfig& config) {
  PositionConfig& position = config.position;
  if (position.rope == RopeKind::none) return;   // CLIP itself takes one size only
  position.coordinates = CoordinateRule::index;  // raw indices beyond the native grid too
  position.resampling = TableResampling::bilinear;
}

void adjust_config(const SourceFiles&, ModelConfig& config) {
  config.projection_dim = config.num_classes;
}

constexpr TimmLayout kClipLayout{
    .library = "OpenAI",
    .rename = openai_name,
    .adjust_args = adjust_args,
    .adjust_config = adjust_config,
    .pieces = openai_pieces,
    .notes = [](const SourceFiles&, const ModelConfig&) -> std::vector<std::string> {
      return {"logits and projected are the same embedding; timm calls the projection a classifier",
              "other sizes: the original has no rule, timm's is used (table bicubic with antialias)"};
    }};

constexpr TimmLayout kPeLayout{
    .library = "Meta",
    .rename = openai_name,
    .adjust_args = adjust_args,
    .apply_rules = apply_rules,
    .adjust_config = adjust_config,
    .pieces = openai_pieces,
    .notes = [](const SourceFiles& files, const ModelConfig&) -> std::vector<std::string> {
      std::vector<std::string> lines;
      if (!follows_timm(files)) {
        lines.push_back(
            "other sizes: raw patch indices and a bilinear table, as Meta's code has it; --set rules=timm "
            "chooses timm's way");
      }
      if (projection_width(files) != 0) {
        lines.push_back(
            "logits and projected are the same embedding; timm calls the projection a classifier");
      }
      return lines;
    }};

bool matches(SourceFiles& files) {
  // the other kind of model with a conv1 is a ResNet
  return files.find_prefix("conv1.weight", kPrefixes) && files.count_blocks("transformer.resblocks.") != 0;
}

/// Which of the two: by the architecture's name; rotation leaves no tensors.
bool is_clip(const SourceFiles& files) {
  const Architecture* const known = find_known_architecture(architecture_name(files));
  return known != nullptr && known->family == "clip";
}

}  // namespace

constinit const Family kOpenAiFamily{"openai_names", "conv1.weight", matches, [](const SourceFiles& files) {
                                       return adapt_timm_layout(files,
                                                                is_clip(files) ? kClipLayout : kPeLayout);
                                     }};

}  // namespace vit::internal
