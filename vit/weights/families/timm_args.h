// The constructor arguments of timm's two Vision Transformer classes, as data: what an architecture name
// stands for and what a config's model_args or --set override. to_config() turns them into the project's own
// terms. Source of names and meaning: huggingface/pytorch-image-models, models/vision_transformer.py and
// models/eva.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/error.h"
#include "vit/config.h"
#include "vit/weights/files/json.h"

namespace vit::internal {

enum class TimmClass { vision_transformer, eva };

struct TimmArgs {
  TimmClass timm_class = TimmClass::vision_transformer;
  bool distilled = false;  // VisionTransformerDistilled

  std::size_t image_height = 224, image_width = 224;  // img_size
  std::size_t patch_size = 16;
  std::size_t embed_dim = 768, depth = 12, num_heads = 12;
  double mlp_ratio = 4.0;
  std::size_t mlp_dim = 0;  // the hidden width itself where the tensors tell it; 0 = mlp_ratio decides
  std::size_t num_classes = 1000;
  std::string global_pool = "token";
  bool pool_include_prefix = false;  // VisionTransformer: "map" reads prefix tokens too
  bool class_token = true;
  std::size_t reg_tokens = 0;
  bool no_embed_class = false;
  bool pos_embed = true;  // a learned table
  bool qkv_bias = true;
  bool proj_bias = true;          // of the MLP too
  bool layer_scale = false;       // init_values is not None
  bool pre_norm = false;          // use_pre_transformer_norm
  std::optional<bool> post_norm;  // use_post_transformer_norm, final_norm
  std::optional<bool> fc_norm;    // use_fc_norm
  bool swiglu = false;  // Eva: swiglu_mlp; VisionTransformer: SwiGLUPacked (hidden counts both branches)
  std::size_t swiglu_align_to = 0;
  Activation activation = Activation::gelu;
  double norm_eps = 1e-6;

  // Eva alone
  bool qkv_fused = true;
  bool scale_mlp = false;
  bool scale_attn_inner = false;
  std::string attn_type = "eva";  // "rope" keeps one full qkv bias
  bool rope = false;              // use_rot_pos_emb
  std::string rope_type = "cat";  // "cat", "mixed", "dinov3"
  double rope_temperature = 10000.0;
  double rope_grid_offset = 0.0;
  bool rope_xy = false;  // rope_grid_indexing == "xy"
  bool rope_rotate_half = false;
  GridSize ref_feat_shape;              // 0 x 0 = none
  std::size_t attn_pool_num_heads = 0;  // 0 = num_heads
  double attn_pool_mlp_ratio = 0.0;     // 0 = mlp_ratio
  /// The hidden width itself where the tensors tell it; 0 = the ratio decides
  std::size_t attn_pool_mlp_dim = 0;
};

/// One published architecture: constructor arguments, and the preprocessing of its published weights.
struct Architecture {
  std::string name;
  std::string family;            // "rope-vit", "eva02", "vit", ...
  std::string library = "timm";  // who calls it so: "timm", "Naver", "BAAI", "Meta"
  std::string timm_name{};       // timm's name for it, where library is another
  TimmArgs args;
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> std{0.229, 0.224, 0.225};
  double crop_pct = 0.9;
  bool squash = false;
  ResizeFilter filter = ResizeFilter::bicubic;
  Resampler resampler = Resampler::pillow;
  std::size_t evaluated_at = 0;  // edge of the crop; 0 = native size
};

/// All architectures known by name, in the order of weights/architectures_*.cpp.
const std::vector<Architecture>& architectures();
/// The architecture of that name, or null. An owner before a slash is dropped, and so is a tag behind a dot
/// unless a name that timm has given up stands for it. Such names are known here, but not listed above.
const Architecture* find_known_architecture(std::string_view name);
/// The same; throws Error with the nearest names for an unknown one.
const Architecture& find_architecture(std::string_view name);
/// Names close to `name`, nearest first.
std::vector<std::string> nearest_architectures(std::string_view name, std::size_t count);

/// Applies one model_args entry. Keys without effect on inference are accepted; an unknown key, or one whose
/// value asks for something that is not implemented, throws Error naming file and key.
void apply_timm_arg(TimmArgs& args, const std::string& key, const Json& value);

/// Applies timm's config.json: size, classes and model_args.
void apply_timm_config(TimmArgs& args, const Json& config);

/// What the caller of the library overrides makes no sense: an unknown key, or a value that it cannot have.
class OverrideError : public Error {
 public:
  using Error::Error;
};

/// The same for --set KEY=VALUE: the value is JSON, a bare word or HxW. Throws OverrideError.
void apply_timm_override(TimmArgs& args, const std::string& key, const std::string& value);

/// The model that these arguments build.
ModelConfig to_config(const TimmArgs& args, const Architecture& architecture);

}  // namespace vit::internal
