// OpenCLIP's folders: open_clip_config.json says what the image tower is, either OpenCLIP's own Vision
// Transformer under the names of OpenAI's code, or one of timm's under visual.trunk. with the projection
// inside or outside. The text tower is not read. Source: mlfoundations/open_clip, src/open_clip/model.py
// (CLIPVisionCfg, _build_vision_tower), transformer.py (VisionTransformer) and timm_model.py.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <span>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/open_clip_config.h"
#include "vit/weights/families/openai_clip.h"
#include "vit/weights/families/published.h"
#include "vit/weights/families/timm_vit.h"

namespace vit::internal {
namespace open_clip {
namespace {

constexpr Where kWhere{"open_clip", ErrorKind::unsupported};
constexpr SizeRange kCount = kOpenClipCount;
constexpr std::string_view kOwnPrefixes[] = {"visual."}, kTimmTrunk[] = {"visual.trunk."};

/// What projects the features of timm's models to the embedding.
enum class TimmProj { outside, classifier, none };

/// vision_cfg with OpenCLIP's defaults. timm_model_name outranks the sizes of OpenCLIP's own tower.
struct VisionCfg {
  std::size_t layers = 12, width = 768, head_width = 64, patch_size = 16;
  double mlp_ratio = 4.0;
  bool layer_scale = false;  // ls_init_value is not None
  bool no_ln_pre = false;
  bool final_ln_after_pool = false;
  bool tanh = false;  // act_kwargs
  double norm_eps = 1e-5;
  TimmPool pool_type = TimmPool::token;

  std::string timm_model_name{};
  std::optional<TimmPool> timm_pool = TimmPool::avg;  // nothing: the model's own
  TimmProj timm_proj = TimmProj::outside;
  bool timm_proj_bias = false;
};

using Setter = std::function<void(VisionCfg&, const Json&)>;

const std::map<std::string_view, Setter>& setters() {
  static const std::map<std::string_view, Setter> table = {
      {"layers",
       [](VisionCfg& c, const Json& v) {
         VIT_CHECK(!v.is_array(), kWhere, v.where(), " is a list: a ResNet, not a Vision Transformer");
         c.layers = v.as_size(kCount);
       }},
      {"width", [](VisionCfg& c, const Json& v) { c.width = v.as_size(kCount); }},
      {"head_width", [](VisionCfg& c, const Json& v) { c.head_width = v.as_size(kCount); }},
      {"mlp_ratio", [](VisionCfg& c, const Json& v) { c.mlp_ratio = v.as_double(); }},
      {"patch_size",
       [](VisionCfg& c, const Json& v) {
         const GridSize edges = read_edges(v, kCount);
         VIT_CHECK(edges.rows == edges.columns, kWhere, v.where(), " must be square");
         c.patch_size = edges.rows;
       }},
      {"ls_init_value", [](VisionCfg& c, const Json&) { c.layer_scale = true; }},
      {"no_ln_pre", [](VisionCfg& c, const Json& v) { c.no_ln_pre = v.as_bool(); }},
      {"final_ln_after_pool", [](VisionCfg& c, const Json& v) { c.final_ln_after_pool = v.as_bool(); }},
      {"pool_type",
       [](VisionCfg& c, const Json& v) {
         c.pool_type = read_choice<TimmPool>(v, {{"tok", TimmPool::token}, {"avg", TimmPool::avg}});
       }},
      {"act_kwargs",
       [](VisionCfg& c, const Json& v) {
         const auto value = only_member(v, "approximate");
         c.tanh = value && read_choice<bool>(*value, {{"none", false}, {"tanh", true}});
       }},
      {"norm_kwargs",
       [](VisionCfg& c, const Json& v) {
         if (const auto value = only_member(v, "eps")) c.norm_eps = value->as_double();
       }},
      {"timm_model_name", [](VisionCfg& c, const Json& v) { c.timm_model_name = v.as_string(); }},
      {"timm_pool", [](VisionCfg& c, const Json& v) { c.timm_pool = read_timm_pool(v); }},
      {"timm_proj",
       [](VisionCfg& c, const Json& v) {
         c.timm_proj = read_choice<TimmProj>(
             v, {{"linear", TimmProj::outside}, {"none", TimmProj::none}, {"", TimmProj::classifier}});
       }},
      {"timm_proj_bias", [](VisionCfg& c, const Json& v) { c.timm_proj_bias = v.as_bool(); }},
  };
  return table;
}

/// Fields that matter while training only, or that the tensors decide. Blocks of the "custom" type
/// are the default ones where no switch is on.
constexpr std::string_view kInert[] = {
    "image_size",    "patch_dropout", "attn_pooler_queries",   "attn_pooler_heads", "pos_embed_type",
    "output_tokens", "block_type",    "timm_model_pretrained", "timm_drop",         "timm_drop_path"};

VisionCfg read_vision_cfg(const SourceFiles& files) {
  const Json json = open_clip_model_cfg(files).at("vision_cfg");
  VisionCfg cfg;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Json value = json[i];
    const std::string_view key = value.key();
    if (value.is_null()) {
      if (key == "timm_pool") cfg.timm_pool.reset();
      if (key == "timm_proj") cfg.timm_proj = TimmProj::classifier;
    } else if (is_open_clip_switch(key)) {
      VIT_CHECK(value.is_bool() && !value.as_bool(), kWhere, value.where(),
                " is set, which is not implemented");
    } else if (std::ranges::find(kInert, key) == std::end(kInert)) {
      const auto setter = setters().find(key);
      VIT_CHECK(setter != setters().end(), kWhere, value.where(), ": unknown field");
      setter->second(cfg, value);
    }
  }
  return cfg;
}

std::size_t read_embed_dim(const SourceFiles& files) {
  return open_clip_model_cfg(files).at("embed_dim").as_size(kCount);
}

Architecture own_tower(const SourceFiles& files, const VisionCfg& cfg) {
  const Json json = open_clip_model_cfg(files);
  const bool quick_gelu = json.find_bool("quick_gelu").value_or(false);
  VIT_CHECK(!quick_gelu || !cfg.tanh, kWhere, json.where(), ": quick_gelu has no tanh form");
  const GridSize image = read_open_clip_image_size(json.at("vision_cfg"));
  Architecture tower;
  tower.family = "clip";
  TimmArgs& args = tower.args;
  args.image_height = image.rows;
  args.image_width = image.columns;
  args.patch_size = cfg.patch_size;
  args.embed_dim = cfg.width;
  args.depth = cfg.layers;
  args.num_heads = cfg.width / cfg.head_width;
  args.mlp_ratio = cfg.mlp_ratio;
  args.num_classes = read_embed_dim(files);
  args.global_pool = cfg.pool_type;
  args.fc_norm = cfg.final_ln_after_pool;
  args.layer_scale = cfg.layer_scale;
  args.pre_norm = !cfg.no_ln_pre;
  args.norm_eps = cfg.norm_eps;
  args.activation = quick_gelu ? Activation::quick_gelu : cfg.tanh ? Activation::gelu_tanh : Activation::gelu;
  return tower;
}

/// What timm calls a classifier is the projection into the space that images and texts share.
void set_projection(ModelConfig& config, bool bias) {
  if (config.head.num_classes == 0) return;
  config.head.projection = {.dim = config.head.num_classes, .bias = bias};
  config.head.num_classes = 0;
}

constexpr std::string_view kOwnKeys[] = {"rules"};

ParsedModel read_own_tower(const SourceFiles& files, const VisionCfg& cfg) {
  const Architecture tower = own_tower(files, cfg);
  Published model = read_published(files, tower, tower.args, "OpenCLIP", kOwnKeys);
  model.config.patch.bias = false;
  set_projection(model.config, /*bias=*/false);
  return finish(files, tower, std::move(model), openai_layout(), {},
                {"projected is OpenCLIP's image embedding",
                 "other sizes: the learned table is resampled as OpenCLIP does while loading (bicubic with "
                 "antialias)"});
}

const Architecture& find_timm_tower(const SourceFiles& files, const std::string& name) {
  const Architecture* const known = find_known_architecture(name);
  if (known != nullptr && known->library == "timm") return *known;
  fail(kWhere, files.config->where(), ": timm_model_name ", in_quotes(name),
       " is no Vision Transformer that is known here", near_architectures(name, 3));
}

/// The arguments that OpenCLIP gives to timm's create_model and reset_classifier.
Architecture timm_tower(const SourceFiles& files, const VisionCfg& cfg) {
  Architecture tower = find_timm_tower(files, cfg.timm_model_name);
  TimmArgs& args = tower.args;
  if (args.timm_class == TimmClass::naflex) {  // takes any size; images are made for this one
    const GridSize image = read_open_clip_image_size(open_clip_model_cfg(files).at("vision_cfg"));
    args.image_height = image.rows;
    args.image_width = image.columns;
  }
  args.num_classes = cfg.timm_proj == TimmProj::none ? 0 : read_embed_dim(files);
  if (cfg.timm_proj == TimmProj::outside) {
    // a pooling that is changed after construction leaves the last norm where it was
    if (!args.fc_norm) args.fc_norm = args.global_pool == TimmPool::avg;
    if (cfg.timm_pool && *cfg.timm_pool != TimmPool::none) args.global_pool = *cfg.timm_pool;
  } else if (cfg.timm_pool) {
    args.global_pool = *cfg.timm_pool;
  }
  VIT_CHECK(args.global_pool != TimmPool::none, kWhere, files.config->where(),
            ": timm_pool \"\" keeps all tokens, which makes no embedding of the image");
  return tower;
}

constexpr Row kInnerProjection[] = {{Part::projection_weight, "head.*"}};
constexpr Row kOuterProjection[] = {at(Place::outside, {Part::projection_weight, "visual.head.proj.*"})};
static_assert(is_sound(kInnerProjection) && is_sound(kOuterProjection));

ParsedModel read_timm_tower(const SourceFiles& files, const VisionCfg& cfg) {
  const Architecture tower = timm_tower(files, cfg);
  Published model = read_published(files, tower, tower.args, "OpenCLIP", naflex_overrides(tower));
  const bool outside = cfg.timm_proj == TimmProj::outside;
  set_projection(model.config, !outside || cfg.timm_proj_bias);
  Layout layout = timm_layout(files, tower, model.args);
  if (outside) {
    layout.add(kOuterProjection);
  } else {
    layout.add(kInnerProjection);
  }
  std::vector<std::string> notes = {
      model.config.projection_dim() != 0
          ? "projected is OpenCLIP's image embedding"
          : "pooled is OpenCLIP's image embedding: the tower has no projection"};
  return finish(files, tower, std::move(model), std::move(layout), {}, std::move(notes));
}

std::optional<Match> match(const SourceFiles& files) {
  if (!files.config || !files.config->find("model_cfg")) return std::nullopt;
  const VisionCfg cfg = read_vision_cfg(files);
  const bool own = cfg.timm_model_name.empty();
  const bool naflex =
      !own && find_timm_tower(files, cfg.timm_model_name).args.timm_class == TimmClass::naflex;
  const std::string_view anchor = own ? "conv1.weight" : naflex ? kNaFlexAnchor : "patch_embed.proj.weight";
  const auto found =
      own ? match_anchor(files, anchor, kOwnPrefixes) : match_anchor(files, anchor, kTimmTrunk);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor ",
            own ? kOwnPrefixes[0] : kTimmTrunk[0], anchor, ", which the tower of ", files.config->where(),
            " has; are these weights another library's?");
  return found;
}

ParsedModel read(const SourceFiles& files) {
  const VisionCfg cfg = read_vision_cfg(files);
  return cfg.timm_model_name.empty() ? read_own_tower(files, cfg) : read_timm_tower(files, cfg);
}

}  // namespace
}  // namespace open_clip

constinit const Family kOpenClipFamily{.name = "open_clip",
                                       .anchor = "conv1.weight",
                                       .prefixes = open_clip::kOwnPrefixes,
                                       .library = "",
                                       .match = open_clip::match,
                                       .read = open_clip::read};

}  // namespace vit::internal
