// What a checkpoint is: plain data with defaults, filled by an adapter of weights/families, checked once by
// validate(). Letters: C = embed_dim, H = num_heads, d = head_width(), A = H d, P = patch_size, N = patches,
// T = prefix tokens + N.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/activation.h"
#include "vit/base/error.h"
#include "vit/base/rope_pairing.h"
#include "vit/base/rope_scaling.h"

namespace vit {

/// Longest edge, in pixels, of an image that a model takes.
inline constexpr std::size_t kMaxInputEdge = 32768;

// ----------------------------------------------------------------------------------------------- position

/// Rows that are added to the tokens before the first block.
enum class AddedTable {
  none,
  patches,             // (N, C), patches only (rope-vit APE, DeiT-III, SigLIP)
  prefix_and_patches,  // (rows + N, C): rows for the first prefix tokens come first (ViT, EVA-02, CLIP)
};

/// How a learned table is brought to another grid (PyTorch kernels of the reference libraries).
enum class TableResampling {
  bicubic_antialias,  // a = -0.5, widened when shrinking: timm, DINOv2 with registers
  bicubic,  // a = -0.75, four clamped taps: Hugging Face ViT, DeiT, DINOv2, CLIP, SigLIP, I-JEPA; Naver, EVA
  bicubic_plus_tenth,  // the same with sampling scale old / (new + 0.1): Meta DINOv2 without registers
  bilinear,            // two clamped taps: Meta Perception Encoder
  bilinear_antialias,  // SigLIP 2 NaFlex
};

/// When resampling is skipped.
enum class TableReuse { equal_grid, equal_count_and_square };

/// axial: a pair is rotated by the coordinate of one axis; mixed: by both, with learned frequencies of each
/// head.
enum class RopeKind { none, axial, mixed };

/// Coordinate of patch index i of G along one axis.
enum class CoordinateRule {
  index,                // i + offset
  scaled_to_reference,  // (i + offset) / G * G_ref
  centered,             // 2 (i + 0.5 + offset) / G - 1
};

/// Which axis the first half of the pairs belongs to.
enum class AxisOrder { x_then_y, y_then_x };

/// Patches of an image: rows of the grid are patches along the height, columns along the width.
struct GridSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
  bool operator==(const GridSize&) const = default;
};

/// Position encodings of a model: rows added to the tokens, rotations of queries and keys, or both.
struct PositionConfig {
  AddedTable added = AddedTable::none;
  GridSize added_grid;  // grid that the learned table was trained on
  /// Leading rows for class and distillation token; 0 unless prefix_and_patches
  std::size_t added_prefix_rows = 0;
  TableResampling resampling = TableResampling::bicubic_antialias;
  TableReuse reuse = TableReuse::equal_grid;

  RopeKind rope = RopeKind::none;
  CoordinateRule coordinates = CoordinateRule::index;
  double coordinate_offset = 0.0;
  GridSize reference_grid;  // G_ref of scaled_to_reference
  AxisOrder axis_order = AxisOrder::x_then_y;
  RopePairing pairing = RopePairing::neighbours;
  double theta = 100.0;
  double angle_scale = 1.0;  // 2 pi for DINOv3, whose frequencies count turns
  /// The family stores its periods (1 / frequency, before angle_scale) in the file; theta is then unused.
  bool stored_periods = false;
  /// Grids other than the trained one, that of image_height x image_width; nothing = as `coordinates` say.
  std::optional<RopeScaling> rope_scaling{};
};

// -------------------------------------------------------------------------------------------------- model

/// What the MLP of a block computes.
enum class MlpKind {
  plain,  // fc2(act(fc1 x))
  gated,  // fc2(act(gate x) * value x)
};

/// What the image embedding `pooled` is made of.
enum class Pooling {
  none,  // no pooled vector
  class_token,
  class_and_distillation,  // mean of both tokens
  patch_mean,              // mean over patch tokens, prefix excluded
  attention,               // learned query over all tokens, then a residual MLP
};

/// What the classifier reads.
enum class HeadInput {
  pooled,
  class_and_patch_mean,    // concatenation, 2 C wide (DINOv2, Meta DINOv3)
  class_and_distillation,  // two classifiers, logits averaged (distilled DeiT)
};

/// Attention pooling as a head (SigLIP, Perception Encoder): one learned query over all tokens, then an MLP.
struct AttentionPoolConfig {
  std::size_t num_heads = 0;
  std::size_t mlp_dim = 0;
  Activation activation = Activation::gelu;
};

/// Architecture of a model: what its layers are and how large.
struct VIT_API ModelConfig {
  std::string architecture;  // name in the library that wrote the checkpoint, "" where it has none
  std::string family;        // adapter that read it: "rope-vit", "vit", ...
  std::string library;       // whose numbers are reproduced: "timm", "transformers", "Meta", ...

  std::size_t image_height = 224;  // native input, pixels
  std::size_t image_width = 224;
  std::size_t patch_size = 16;
  bool fixed_size = false;  // the reference refuses any other input size

  std::size_t embed_dim = 768;
  std::size_t depth = 12;
  std::size_t num_heads = 12;
  std::size_t head_dim = 0;    // d; 0 = embed_dim / num_heads
  std::size_t mlp_dim = 3072;  // hidden width; of one branch where gated

  bool patch_norm = false;  // LayerNorm on the pixels of a patch, before they are projected
  bool patch_bias = true;
  bool embed_norm = false;  // LayerNorm on the projected patch, before positions are added
  bool class_token = true;
  bool distillation_token = false;
  std::size_t num_register_tokens = 0;  // after class and distillation token, before patches
  PositionConfig position;

  float norm_eps = 1e-6f;
  bool norm_pre = false;  // LayerNorm before block 0
  bool qkv_bias = true;   // a family whose k has none supplies zeros
  bool proj_bias = true;
  bool mlp_bias = true;
  bool attention_norm = false;  // LayerNorm on the concatenated heads before proj (EVA-02 CLIP and base)
  MlpKind mlp = MlpKind::plain;
  Activation activation = Activation::gelu;
  bool mlp_norm = false;  // LayerNorm on the hidden vector (EVA-02 base, large)
  bool layer_scale = false;
  bool token_norm = true;    // final LayerNorm on all tokens
  bool pooled_norm = false;  // LayerNorm after pooling (timm fc_norm; Hugging Face CLIP)

  Pooling pooling = Pooling::class_token;
  bool pooler = false;  // pooled = tanh(W pooled + b) (Hugging Face ViT and DeiT without classifier)
  AttentionPoolConfig attention_pool;
  std::size_t projection_dim = 0;  // joint image-text space; 0 = none
  bool projection_bias = false;
  /// Blocks of a joint head, which make the projected vector of the tokens after the final norm (dino.txt):
  /// nothing is rotated, q, k and v have no bias, the MLP is gated by SiLU, layer scale, a LayerNorm at the
  /// end; then class token and mean of the patches side by side, E = 2 C. 0 = none.
  std::size_t joint_depth = 0;
  std::size_t joint_mlp_dim = 0;  // hidden width of one branch
  float joint_norm_eps = 1e-5f;
  HeadInput head_input = HeadInput::pooled;
  std::size_t num_classes = 0;                // 0 = no classifier
  std::vector<std::string> labels;            // one per class, or empty
  std::vector<std::string> label_categories;  // one per class, or empty: "0" for a tag, "9" for a rating, ...
  /// Classes do not exclude each other: each has a sigmoid, where others share a softmax.
  bool multi_label = false;

  /// d
  std::size_t head_width() const {
    if (head_dim != 0) return head_dim;
    return num_heads == 0 ? 0 : embed_dim / num_heads;
  }
  /// A = H d: all heads side by side; C in most models.
  std::size_t attention_dim() const { return num_heads * head_width(); }
  /// Class, distillation and register tokens, which come before the patches.
  std::size_t num_prefix_tokens() const {
    return (class_token ? 1u : 0u) + (distillation_token ? 1u : 0u) + num_register_tokens;
  }
  /// Patches of the native input.
  GridSize native_grid() const { return {image_height / patch_size, image_width / patch_size}; }
};

/// What makes probabilities of the model's logits.
constexpr ClassActivation class_activation(const ModelConfig& config) {
  return config.multi_label ? ClassActivation::sigmoid : ClassActivation::softmax;
}

/// Throws Error naming the first field that is out of range or contradicts another. Limits are generous
/// (width up to 65536, depth up to 1024, edges up to kMaxInputEdge, 2^20 patches, rotation factors of half a
/// GiB) and exist so that a hostile file cannot ask for absurd amounts of memory.
VIT_API void validate(const ModelConfig& config);
/// validate() for values that were read from `file`: messages name it, and the Error is of the kind format.
VIT_API void validate(const ModelConfig& config, const std::string& file);

// --------------------------------------------------------------------------------------------- preprocess

/// Kernel of the resampling.
enum class ResizeFilter { nearest, lanczos, bilinear, bicubic, box, hamming };  // Pillow's enum order 0..5

/// Whose arithmetic resizes the picture.
enum class Resampler {
  pillow,             // 22-bit fixed point, two 8-bit passes
  torchvision_uint8,  // torch antialias kernel on 8-bit data
  torchvision_float,  // torch antialias kernel on float data, after rescaling (DINOv3)
};

/// Order of Pillow's two passes, which changed between releases.
enum class PillowRelease { up_to_12_1, from_12_2, from_13_0 };

/// The size that an image is brought to before it is cropped.
enum class ResizeRule {
  none,
  squash,         // straight to (resize_height, resize_width)
  shortest_edge,  // shortest edge to resize_height, other edge = trunc(S * long / short)
  cover,          // scale so that both edges cover the target, half-even rounding (timm centre, non-square)
  contain,        // scale so that both edges fit the target, half-even rounding (timm border)
  contain_trunc,  // the same, truncated (Hugging Face max_height, max_width)
  patches,  // scale so that max_patches patches are not exceeded, edges rounded up to whole patches (NaFlex)
};

/// Where the crop begins if an odd number of pixels is to be cut off.
enum class CropRounding {
  half_even,  // timm, torchvision
  floor,      // Hugging Face
};

/// Where an odd pixel of padding goes when the picture is smaller than the crop.
enum class PadRounding { extra_bottom_right, extra_top_left };

/// How 8-bit values become normalised floats; each form is bit-exact to its library.
enum class NormalizeRule {
  divide_then_normalize,  // (float(x) / 255 - mean) / std: timm; Hugging Face pil
  fused,          // (float(x) - mean * 255) / (std * 255), products in float32: Hugging Face torchvision
  rescale_first,  // x * float(1 / 255), resize in float, then (x - mean) / std: DINOv3
};

/// In which order the model sees the planes of an image. Mean and standard deviation stay with their color.
enum class ChannelOrder { rgb, bgr };

/// The size that preprocessing makes.
struct InputSize {
  /// Where the size comes from.
  enum class Kind {
    model,   // what the checkpoint's preprocessing makes
    native,  // each picture in its own size, edges floored to a multiple of the patch size by a centre crop
    fixed,   // the checkpoint's resize and crop rules with another target
  };
  Kind kind = Kind::model;
  std::size_t height = 0;  // of fixed
  std::size_t width = 0;
};

/// How an image becomes the pixels (3, H, W) that a model takes.
struct PreprocessConfig {
  Resampler resampler = Resampler::pillow;
  PillowRelease pillow = PillowRelease::from_13_0;
  ResizeFilter filter = ResizeFilter::bicubic;

  ResizeRule resize = ResizeRule::shortest_edge;
  std::size_t resize_height = 256;
  std::size_t resize_width = 256;
  std::size_t longest_edge = 0;  // upper bound for shortest_edge; 0 = none
  std::size_t max_patches = 0;   // of patches
  std::size_t patch_size = 0;    // of patches: their edge in pixels
  /// timm: for another target the resize goes to floor(target / crop_pct). 0: the ratio of resize to crop is
  /// kept.
  double crop_pct = 0.0;

  bool crop = true;
  std::size_t crop_height = 224;
  std::size_t crop_width = 224;
  std::size_t crop_multiple = 0;  // > 0: crop to the largest multiples of it instead
  CropRounding crop_rounding = CropRounding::half_even;
  PadRounding pad_rounding = PadRounding::extra_bottom_right;
  std::array<unsigned char, 3> pad_color{0, 0, 0};

  NormalizeRule normalize = NormalizeRule::divide_then_normalize;
  bool rescale = true;  // false: pixel values stay 0..255
  double rescale_factor = 1.0 / 255.0;
  bool subtract_mean = true;                        // false: no normalisation
  std::array<double, 3> mean{0.485, 0.456, 0.406};  // R, G, B
  std::array<double, 3> std{0.229, 0.224, 0.225};

  bool apply_orientation = false;  // rotate by the EXIF tag before anything else
  bool alpha_on_white = false;     // composite transparency on white instead of dropping it
  /// Before the resize the image is put in the middle of a square of its longer edge, an odd pixel of the
  /// rest at the bottom or right, as published taggers do with Image.paste.
  bool pad_to_square = false;
  std::array<unsigned char, 3> square_color{0, 0, 0};  // R, G, B
  ChannelOrder channels = ChannelOrder::rgb;

  std::string source;  // file and class it was read from, for messages and `vit info`
};

/// Throws Error naming the first field that is out of range or contradicts another.
VIT_API void validate(const PreprocessConfig& config);

}  // namespace vit
