#include "vit/weights/families/timm_args.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json_writer.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"timm_model_args", ErrorKind::format};

[[noreturn]] void refuse(const Json& value, const std::string& wanted) {
  fail(kWhere, value.where(), " must be ", wanted);
}

constexpr SizeRange kCounts{0, 1'000'000'000};

std::size_t count(const Json& value) {
  return value.as_size(kCounts);
}

/// One number for both axes, or [rows, columns].
GridSize pair(const Json& value) {
  return read_edges(value, kCounts);
}

Activation activation_of(const Json& value) {
  return read_choice<Activation>(value, {{"gelu", Activation::gelu},
                                         {"GELU", Activation::gelu},
                                         {"gelu_tanh", Activation::gelu_tanh},
                                         {"GELUTanh", Activation::gelu_tanh},
                                         {"quick_gelu", Activation::quick_gelu},
                                         {"QuickGELU", Activation::quick_gelu},
                                         {"silu", Activation::silu},
                                         {"swish", Activation::silu},
                                         {"SiLU", Activation::silu},
                                         {"relu", Activation::relu},
                                         {"ReLU", Activation::relu}});
}

/// The class that a script names in text: "SwiGLUPacked", "timm.layers.SwiGLUPacked",
/// "<class 'timm.layers.mlp.SwiGLUPacked'>".
std::string_view class_name(const Json& value) {
  std::string_view name = value.as_string();
  if (name.ends_with("'>")) name.remove_suffix(2);
  return name.substr(name.rfind('.') + 1);  // npos + 1 = 0
}

/// A layer for which a script may choose another class: only the usual one is implemented.
void expect_class(const Json& value, std::initializer_list<std::string_view> usual) {
  const std::string_view name = class_name(value);
  if (std::ranges::find(usual, name) == usual.end()) refuse_choice(value, {usual.begin(), usual.end()});
}

bool is_rms_norm(const Json& value) {
  const std::string_view name = class_name(value);
  if (name == "RmsNorm" || name == "rmsnorm" || name == "RMSNorm") return true;
  expect_class(value, {"LayerNorm", "layernorm", "RmsNorm", "rmsnorm"});
  return false;
}

using Setter = std::function<void(TimmArgs&, const Json&)>;

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"img_size",
       [](TimmArgs& a, const Json& v) {
         const GridSize size = pair(v);
         a.image_height = size.rows;
         a.image_width = size.columns;
       }},
      {"patch_size",
       [](TimmArgs& a, const Json& v) {
         const GridSize size = pair(v);
         if (size.rows != size.columns) refuse(v, "square");
         a.patch_size = size.rows;
       }},
      {"in_chans", [](TimmArgs& a, const Json& v) { a.in_chans = count(v); }},
      {"embed_dim", [](TimmArgs& a, const Json& v) { a.embed_dim = count(v); }},
      {"pos_embed_grid_size", [](TimmArgs& a, const Json& v) { a.pos_embed_grid_size = pair(v); }},
      {"pos_embed_interp_mode",
       [](TimmArgs& a, const Json& v) {
         a.pos_embed_interp_mode =
             read_choice<TableResampling>(v, {{"bicubic", TableResampling::bicubic_antialias},
                                              {"bilinear", TableResampling::bilinear_antialias}});
       }},
      {"pos_embed_antialias", [](TimmArgs& a, const Json& v) { a.pos_embed_antialias = v.as_bool(); }},
      {"pos_embed_align_corners", [](TimmArgs& a, const Json& v) { a.pos_embed_align_corners = v.as_bool(); }},
      {"pos_embed_ar_preserving", [](TimmArgs& a, const Json& v) { a.pos_embed_ar_preserving = v.as_bool(); }},
      {"depth", [](TimmArgs& a, const Json& v) { a.depth = count(v); }},
      {"num_heads", [](TimmArgs& a, const Json& v) { a.num_heads = count(v); }},
      {"mlp_ratio",
       [](TimmArgs& a, const Json& v) {
         a.mlp_ratio = v.as_double();
         a.mlp_dim = 0;
       }},
      {"num_classes", [](TimmArgs& a, const Json& v) { a.num_classes = count(v); }},
      {"global_pool", [](TimmArgs& a, const Json& v) { a.global_pool = read_timm_pool(v); }},
      {"pool_include_prefix", [](TimmArgs& a, const Json& v) { a.pool_include_prefix = v.as_bool(); }},
      {"class_token", [](TimmArgs& a, const Json& v) { a.class_token = v.as_bool(); }},
      {"reg_tokens", [](TimmArgs& a, const Json& v) { a.reg_tokens = count(v); }},
      {"num_reg_tokens", [](TimmArgs& a, const Json& v) { a.reg_tokens = count(v); }},
      {"no_embed_class", [](TimmArgs& a, const Json& v) { a.no_embed_class = v.as_bool(); }},
      {"use_abs_pos_emb", [](TimmArgs& a, const Json& v) { a.pos_embed = v.as_bool(); }},
      {"pos_embed",
       [](TimmArgs& a, const Json& v) {
         a.pos_embed_factorized = v.is_string() && v.as_string() == "factorized";
         a.pos_embed = read_choice<bool>(
             v, {{"learn", true}, {"learned", true}, {"factorized", true}, {"none", false}, {"", false}});
       }},
      {"qkv_bias", [](TimmArgs& a, const Json& v) { a.qkv_bias = v.as_bool(); }},
      {"proj_bias", [](TimmArgs& a, const Json& v) { a.proj_bias = v.as_bool(); }},
      {"init_values",
       [](TimmArgs& a, const Json& v) {
         // VisionTransformer and Beit ask for its truth, Eva for None
         const bool is_given = v.as_double() != 0.0;
         a.layer_scale = is_given || (a.timm_class == TimmClass::eva && !a.beit);
         a.no_layer_scale = false;
       }},
      {"pre_norm", [](TimmArgs& a, const Json& v) { a.pre_norm = v.as_bool(); }},
      {"use_pre_transformer_norm", [](TimmArgs& a, const Json& v) { a.pre_norm = v.as_bool(); }},
      {"final_norm", [](TimmArgs& a, const Json& v) { a.post_norm = v.as_bool(); }},
      {"use_post_transformer_norm", [](TimmArgs& a, const Json& v) { a.post_norm = v.as_bool(); }},
      {"fc_norm", [](TimmArgs& a, const Json& v) { a.fc_norm = v.as_bool(); }},
      {"use_fc_norm", [](TimmArgs& a, const Json& v) { a.fc_norm = v.as_bool(); }},
      {"swiglu_mlp", [](TimmArgs& a, const Json& v) { a.swiglu = v.as_bool(); }},
      {"swiglu_align_to", [](TimmArgs& a, const Json& v) { a.swiglu_align_to = count(v); }},
      {"mlp_layer",
       [](TimmArgs& a, const Json& v) {
         a.swiglu_split = class_name(v) == "SwiGLU";
         a.swiglu = a.swiglu_split || class_name(v) == "SwiGLUPacked";
         if (!a.swiglu) expect_class(v, {"Mlp", "SwiGLU", "SwiGLUPacked"});
       }},
      {"norm_layer",
       [](TimmArgs& a, const Json& v) {
         a.rms_norm = is_rms_norm(v);
         a.norm_eps = 1e-6;  // that of the named layer, whatever the architecture's own norm has
       }},
      {"embed_norm_layer",
       [](TimmArgs& a, const Json& v) {
         if (is_rms_norm(v) != a.rms_norm) refuse(v, "the norm of the blocks, norm_layer");
         a.embed_norm = true;
       }},
      {"qk_norm", [](TimmArgs& a, const Json& v) { a.qk_norm = v.as_bool(); }},
      {"scale_attn_norm", [](TimmArgs& a, const Json& v) { a.scale_attn_inner = v.as_bool(); }},
      {"scale_attn_inner_norm", [](TimmArgs& a, const Json& v) { a.scale_attn_inner = v.as_bool(); }},
      {"scale_mlp_norm", [](TimmArgs& a, const Json& v) { a.scale_mlp = v.as_bool(); }},
      {"embed_layer", [](TimmArgs&, const Json& v) { expect_class(v, {"PatchEmbed"}); }},
      {"block_fn",
       [](TimmArgs& a, const Json& v) {
         a.differential = class_name(v) == "DiffParallelScalingBlock";
         a.parallel = a.differential || class_name(v) == "ParallelScalingBlock";
         a.post_norm_blocks = class_name(v) == "ResPostBlock" || class_name(v) == "ResPostRelPosBlock";
         if (a.post_norm_blocks) a.layer_scale = false;
         if (a.parallel || a.post_norm_blocks) return;
         expect_class(v, {"Block", "EvaBlock", "RelPosBlock", "ParallelScalingBlock", "DiffParallelScalingBlock", "ResPostBlock",
                          "ResPostRelPosBlock"});
       }},
      {"use_post_norm",
       [](TimmArgs& a, const Json& v) {
         a.post_norm_blocks = v.as_bool();
         if (a.post_norm_blocks) a.layer_scale = false;
       }},
      {"use_rel_pos_bias", [](TimmArgs& a, const Json& v) { a.rel_pos = v.as_bool(); }},
      {"use_shared_rel_pos_bias", [](TimmArgs& a, const Json& v) { a.shared_rel_pos = v.as_bool(); }},
      {"shared_rel_pos",
       [](TimmArgs& a, const Json& v) {
         a.shared_rel_pos = v.as_bool();
         a.rel_pos = !a.shared_rel_pos;
       }},
      {"rel_pos_type",
       [](TimmArgs& a, const Json& v) {
         a.rel_pos_mlp = read_choice<bool>(v, {{"mlp", true}, {"bias", false}});
       }},
      {"rel_pos_dim", [](TimmArgs& a, const Json& v) { a.rel_pos_dim = count(v); }},
      {"attn_layer",
       [](TimmArgs& a, const Json& v) {
         const std::string_view name = class_name(v);
         a.differential = name == "diff" || name == "DiffAttention";
         if (!a.differential && name != "attn" && !name.empty()) expect_class(v, {"Attention", "DiffAttention"});
       }},
      {"num_kv_heads",
       [](TimmArgs& a, const Json& v) {
         if (!v.is_array()) a.num_kv_heads = count(v);  // a number for each block is seen in the tensors
       }},
      {"attn_only_layer_scale", [](TimmArgs& a, const Json& v) { a.attn_only_layer_scale = v.as_bool(); }},
      {"act_layer",
       [](TimmArgs& a, const Json& v) {
         a.activation = activation_of(v);
         a.act_given = true;
       }},
      {"qkv_fused", [](TimmArgs& a, const Json& v) { a.qkv_fused = v.as_bool(); }},
      {"scale_mlp", [](TimmArgs& a, const Json& v) { a.scale_mlp = v.as_bool(); }},
      {"scale_attn_inner", [](TimmArgs& a, const Json& v) { a.scale_attn_inner = v.as_bool(); }},
      {"attn_type",
       [](TimmArgs& a, const Json& v) {
         a.attn_type =
             read_choice<TimmAttention>(v, {{"eva", TimmAttention::eva}, {"rope", TimmAttention::rope}});
       }},
      {"use_rot_pos_emb", [](TimmArgs& a, const Json& v) { a.rope = v.as_bool(); }},
      {"rope_type",
       [](TimmArgs& a, const Json& v) {
         if (a.timm_class == TimmClass::naflex) {
           const std::string_view type = v.as_string();
           VIT_CHECK(type.empty() || type == "none", kWhere.with(ErrorKind::unsupported), v.where(), " = ",
                     in_quotes(type), ": rotation in a NaFlex model is not implemented");
           return;
         }
         a.rope_type = read_choice<TimmRope>(
             v, {{"cat", TimmRope::cat}, {"mixed", TimmRope::mixed}, {"dinov3", TimmRope::dinov3}});
       }},
      {"rope_temperature", [](TimmArgs& a, const Json& v) { a.rope_temperature = v.as_double(); }},
      {"rope_grid_offset", [](TimmArgs& a, const Json& v) { a.rope_grid_offset = v.as_double(); }},
      {"rope_grid_indexing",
       [](TimmArgs& a, const Json& v) {
         a.rope_xy = read_choice<bool>(v, {{"ij", false}, {"xy", true}});
       }},
      {"rope_rotate_half", [](TimmArgs& a, const Json& v) { a.rope_rotate_half = v.as_bool(); }},
      {"ref_feat_shape", [](TimmArgs& a, const Json& v) { a.ref_feat_shape = pair(v); }},
      {"attn_pool_num_heads", [](TimmArgs& a, const Json& v) { a.attn_pool_num_heads = count(v); }},
      {"attn_pool_mlp_ratio",
       [](TimmArgs& a, const Json& v) {
         a.attn_pool_mlp_ratio = v.as_double();
         a.attn_pool_mlp_dim = 0;
       }},
  };
  return table;
}

/// Arguments that matter while training only, or that say how the reference allows other sizes (this library
/// always does).
const std::set<std::string>& inert_keys() {
  static const std::set<std::string> keys = {
      "drop_rate",       "pos_drop_rate",     "patch_drop_rate",    "proj_drop_rate",      "attn_drop_rate",
      "drop_path_rate",  "weight_init",       "fix_init",           "head_init_scale",     "dynamic_img_size",
      "strict_img_size", "rope_shift_coords", "rope_jitter_coords", "rope_rescale_coords", "device",
      "dtype",           "drop_block_rate",   "grad_checkpointing", "pretrained"};
  return keys;
}

/// Counts of which no model has none.
const std::set<std::string>& positive_keys() {
  static const std::set<std::string> keys = {"img_size", "patch_size", "embed_dim", "depth", "num_heads"};
  return keys;
}

/// A positive number, or a list of such.
void check_positive(const Json& value) {
  constexpr SizeRange kPositive{.min = 1, .max = 1'000'000'000};
  if (!value.is_array()) value.as_size(kPositive);
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) value[i].as_size(kPositive);
}

/// Switches that change the arithmetic and of which only false and None, which is false, are implemented.
const std::set<std::string>& false_only_keys() {
  static const std::set<std::string> keys = {"dynamic_img_pad", "attn_gated", "use_key_only_attn_mask",
                                             "pos_embed_use_grid_sample", "enable_patch_interpolator"};
  return keys;
}

/// Whether an argument, which is not None, makes NaFlexViT build the blocks of Eva.
bool asks_for_eva_blocks(const std::string& key, const Json& value) {
  if (key == "attn_type") return value.as_string() != "standard";
  if (key == "swiglu_mlp" || key == "attn_only_layer_scale") return value.as_bool();
  return key == "num_kv_heads";
}

}  // namespace

TimmPool read_timm_pool(const Json& value) {
  return read_choice<TimmPool>(value, {{"token", TimmPool::token},
                                       {"avg", TimmPool::avg},
                                       {"map", TimmPool::map},
                                       {"cls+mean", TimmPool::token_and_avg},
                                       {"first_token", TimmPool::first},
                                       {"", TimmPool::none}});
}

void apply_timm_arg(TimmArgs& args, const std::string& key, const Json& value) {
  if (inert_keys().contains(key)) return;
  if (false_only_keys().contains(key)) {
    VIT_CHECK(value.is_null() || !value.as_bool(), kWhere.with(ErrorKind::unsupported), value.where(),
              " = true is not implemented");
    return;
  }
  if (value.is_null() && apply_timm_null(args, key, value)) return;
  if (args.timm_class == TimmClass::naflex && !value.is_null()) {
    VIT_CHECK(!asks_for_eva_blocks(key, value), kWhere.with(ErrorKind::unsupported), value.where(),
              ": blocks of Eva in a NaFlex model are not implemented");
    if (key == "attn_type") return;
  }
  const auto setter = setters().find(key);
  VIT_CHECK(setter != setters().end(), kWhere.with(ErrorKind::unsupported), value.where(),
            ": unknown model argument");
  VIT_CHECK(!value.is_null(), kWhere, value.where(), " is null, and this model cannot do without it");
  setter->second(args, value);
}

void apply_timm_config(TimmArgs& args, const Json& config) {
  const Json pretrained = config.find("pretrained_cfg").value_or(config);  // the older form is flat
  if (const auto size = pretrained.find("input_size")) {
    size->expect_array(3, "[channels, height, width]");
    args.in_chans = (*size)[0].as_size({1, kMaxChannels});
    args.image_height = (*size)[1].as_size(kEdgeRange);
    args.image_width = (*size)[2].as_size(kEdgeRange);
  }
  // a global_pool next to num_classes is for people: timm reads the one in model_args
  for (const Json& place : {pretrained, config}) {
    if (const auto classes = place.find("num_classes")) apply_timm_arg(args, "num_classes", *classes);
  }
  if (const auto model_args = config.find("model_args")) {
    model_args->expect(Json::Kind::object);
    for (std::size_t i = 0; i < model_args->size(); ++i) {
      apply_timm_arg(args, std::string((*model_args)[i].key()), (*model_args)[i]);
    }
  }
}

std::string override_name(std::string_view key) {
  return "overrides[" + in_quotes(key) + "]";
}

void apply_timm_override(TimmArgs& args, const std::string& key, const std::string& value) {
  const std::string source = override_name(key);
  const auto is_number = [](const std::string& digits) {
    return !digits.empty() && digits.size() < 10 &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::size_t cross = value.find('x');
  std::string json = value;
  if (cross != std::string::npos && is_number(value.substr(0, cross)) && is_number(value.substr(cross + 1))) {
    json = "[" + value.substr(0, cross) + "," + value.substr(cross + 1) + "]";
  } else if (value.find_first_of("[{\"0123456789.-") != 0 && value != "true" && value != "false" &&
             value != "null") {
    json = json_string(value);  // a bare word
  }
  try {
    const Json parsed = parse_json(json, source);
    if (positive_keys().contains(key)) check_positive(parsed);
    apply_timm_arg(args, key, parsed);
  } catch (const Error& error) {
    throw Error(error.where(), error.message());
  }
}

}  // namespace vit::internal
