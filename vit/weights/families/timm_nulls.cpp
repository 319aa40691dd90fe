// null in timm's model_args: the None that the constructor gets, in place of the architecture's own value.
// Source: timm's classes, tried with None for every argument.
#include <map>
#include <set>
#include <string>

#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

/// Switches of which timm's constructors only ask whether they are true: None is false.
const std::set<std::string>& switches() {
  static const std::set<std::string> keys = {"pool_include_prefix",
                                             "class_token",
                                             "no_embed_class",
                                             "use_abs_pos_emb",
                                             "pos_embed_antialias",
                                             "pos_embed_align_corners",
                                             "pos_embed_ar_preserving",
                                             "qkv_bias",
                                             "qkv_fused",
                                             "proj_bias",
                                             "pre_norm",
                                             "use_pre_transformer_norm",
                                             "final_norm",
                                             "swiglu_mlp",
                                             "qk_norm",
                                             "scale_attn_norm",
                                             "scale_attn_inner",
                                             "scale_attn_inner_norm",
                                             "scale_mlp_norm",
                                             "scale_mlp",
                                             "use_post_norm",
                                             "use_rel_pos_bias",
                                             "use_shared_rel_pos_bias",
                                             "shared_rel_pos",
                                             "attn_only_layer_scale",
                                             "use_rot_pos_emb",
                                             "rope_rotate_half"};
  return keys;
}

/// Arguments of which only None, their default, is implemented.
const std::set<std::string>& null_only_keys() {
  static const std::set<std::string> keys = {"rope_mrope_section", "rope_ref_feat_shape", "input_norm_layer"};
  return keys;
}

/// Sets what the class makes of None.
using Reset = void (*)(TimmArgs&);

void reset_fc_norm(TimmArgs& a) {
  a.fc_norm.reset();
  const bool of_rel_pos = a.timm_class == TimmClass::vision_transformer && (a.rel_pos || a.shared_rel_pos);
  if (of_rel_pos) a.fc_norm = false;  // VisionTransformerRelPos has a switch
}

const std::map<std::string, Reset>& resets() {
  static const std::map<std::string, Reset> table = {
      {"img_size", [](TimmArgs&) {}},  // NaFlexViT has a table of its own size
      {"init_values", [](TimmArgs& a) { a.layer_scale = false, a.no_layer_scale = true; }},
      {"fc_norm", reset_fc_norm},
      {"use_fc_norm", reset_fc_norm},
      {"use_post_transformer_norm", [](TimmArgs& a) { a.post_norm.reset(); }},
      {"norm_layer", [](TimmArgs& a) { a.rms_norm = false, a.norm_eps = 1e-6; }},
      {"embed_norm_layer", [](TimmArgs& a) { a.embed_norm = false; }},
      {"act_layer", [](TimmArgs& a) { a.activation = Activation::gelu, a.act_given = true; }},
      {"mlp_layer", [](TimmArgs& a) { a.swiglu = a.swiglu_split = false; }},
      {"block_fn", [](TimmArgs& a) { a.parallel = a.post_norm_blocks = false; }},
      {"attn_layer", [](TimmArgs& a) { a.differential = false; }},
      {"attn_type", [](TimmArgs& a) { a.attn_type = TimmAttention::eva; }},  // all that is not "rope"
      {"num_kv_heads", [](TimmArgs& a) { a.num_kv_heads = 0; }},
      {"swiglu_align_to", [](TimmArgs& a) { a.swiglu_align_to = 0; }},
      {"rel_pos_dim", [](TimmArgs& a) { a.rel_pos_dim = 128; }},
      {"pos_embed_grid_size", [](TimmArgs& a) { a.pos_embed_grid_size = {}; }},
      {"rope_type", [](TimmArgs& a) { a.rope_type = TimmRope::none; }},
      {"rope_grid_indexing", [](TimmArgs& a) { a.rope_xy = false; }},
      {"rope_temperature", [](TimmArgs& a) { a.rope_temperature.reset(); }},
      {"rope_grid_offset", [](TimmArgs& a) { a.rope_grid_offset.reset(); }},
      {"ref_feat_shape", [](TimmArgs& a) { a.ref_feat_shape = {}; }},
      {"attn_pool_num_heads", [](TimmArgs& a) { a.attn_pool_num_heads = 0; }},
      {"attn_pool_mlp_ratio", [](TimmArgs& a) { a.attn_pool_mlp_ratio = 0.0, a.attn_pool_mlp_dim = 0; }},
  };
  return table;
}

/// Whether the class makes a model of None, or one that is implemented.
bool takes_null(TimmClass timm_class, const std::string& key) {
  static const std::set<std::string> by_naflex = {"img_size", "mlp_layer", "block_fn", "attn_layer"};
  static const std::set<std::string> not_by_eva = {"norm_layer", "act_layer"};
  if (key == "rope_type") return timm_class != TimmClass::naflex;  // which builds other blocks then
  return (timm_class == TimmClass::naflex || !by_naflex.contains(key)) &&
         (timm_class != TimmClass::eva || !not_by_eva.contains(key));
}

}  // namespace

bool apply_timm_null(TimmArgs& args, const std::string& key, const Json& value) {
  if (null_only_keys().contains(key)) return true;
  if (switches().contains(key)) {
    apply_timm_arg(args, key, parse_json("false", value.where()));
    return true;
  }
  const auto reset = resets().find(key);
  if (reset == resets().end() || !takes_null(args.timm_class, key)) return false;
  reset->second(args);
  return true;
}

}  // namespace vit::internal
