// Configuration of a checkpoint: the architecture of its image tower and of its text tower, plain data,
// filled by an adapter of weights/families, checked once by validate(); and the report of its files.
// Letters: C = embed_dim, H = num_heads, d = head_width(), A = H d, P = patch_size, N = patches, T = prefix
// tokens + N; of the text tower V = vocabulary_size, T = context_length, D = width, E = embedding_dim().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/position/config.h"

namespace vit {

/// Longest edge, in pixels, of a model input.
inline constexpr std::size_t kMaxInputEdge = 32768;
/// Largest number of channels of a model input.
inline constexpr std::size_t kMaxChannels = 1024;

// ----------------------------------------------------------------------------------------------- image tower

/// The MLP of a block.
enum class MlpKind {
  plain,  // fc2(act(fc1 x))
  gated,  // fc2(act(gate x) * value x)
};

/// A norm over the channels of a token.
enum class NormKind {
  layer,  // (x - mean) / sqrt(variance + eps) * gamma + beta
  rms,    // x / sqrt(mean of squares + eps) * gamma
};

/// How the image embedding `pooled` is computed.
enum class Pooling {
  none,                    // no pooled vector
  class_token,             // after the final norm
  class_and_distillation,  // mean of both tokens
  patch_mean,              // mean over patch tokens, prefix excluded
  attention,               // learned query over all tokens, then a residual MLP
  class_and_patch_mean,    // class token and patch mean side by side, 2 C wide (Virchow)
  first_token,             // the first patch of a model without class token, whose script reads token 0
  prefix_mean,             // mean over the prefix tokens, all of which are class tokens (Pixio)
  prefix_tokens,           // those of pooled_tokens side by side (RADIO)
};

/// The input of the classifier.
enum class HeadInput {
  pooled,                  // C wide
  class_and_patch_mean,    // concatenation, 2 C wide (DINOv2, Meta DINOv3)
  class_and_distillation,  // two classifiers, logits averaged (distilled DeiT)
};

/// What an input of several images is: the frames of a clip, or the tiles of an image. Each patch_frames of
/// them make a step.
enum class StackRule {
  none,      // there are none: an input is one image
  apart,     // each step is computed on its own (Qwen-VL, GLM-4V; the tiles of Llama 4)
  together,  // tokens attend to those of all steps, and have positions in time (V-JEPA 2)
};

/// Attention pooling as a head (SigLIP, Perception Encoder): one learned query over all tokens, then an MLP.
struct AttentionPoolConfig {
  std::size_t num_heads = 0;                 // of the query, over C channels
  std::size_t mlp_dim = 0;                   // hidden width
  Activation activation = Activation::gelu;  // of the MLP
};

/// The normalization at the start of a merger.
enum class MergerNorm {
  none,   // nothing
  token,  // each token, C channels
  cell,   // the concatenated tokens of a cell, m m C channels
};

/// How the tokens of a cell are combined into one vector.
enum class CellRule {
  side_by_side,  // m m C channels: the first row of the cell, then the next
  mean,          // C channels
};

/// The step of a merger whose output a library calls last_hidden_state.
enum class TokenStage {
  encoder,  // before the merger: patch tokens after the final norm
  reduced,  // after `reduced_dim` (GLM-4V)
  merged,   // after fc2 (Llama 4)
};

/// From patch tokens to the visual tokens for a language model. m x m neighbors are a cell; these steps
/// are applied if set, in this order:
///   norm -> cells -> times cell_scale, standardized -> reduced -> gelu(norm(middle)) -> fc2(act(fc1)), with
///   a gate -> LayerNorm -> a second MLP and LayerNorm -> unweighted RMSNorm -> projection -> RMSNorm
struct VIT_API MergerConfig {
  std::size_t size = 0;                          // m: edge of a cell, in tokens; 0 = no merger
  MergerNorm norm = MergerNorm::none;            // the first normalization
  NormKind norm_kind = NormKind::layer;          // of `norm`
  float norm_eps = 1e-6f;                        // of `norm`
  CellRule cells = CellRule::side_by_side;       // how a cell is combined into one vector
  bool pads = false;                             // incomplete cells at the grid's edge are padded with zeros
  float cell_scale = 1.0f;                       // of the vector of a cell
  bool standardize = false;                      // (x - shift) * scale of stored vectors (Gemma 4)
  std::size_t reduced_dim = 0;                   // of a linear map of the cell; 0 = none
  bool reduced_bias = false;                     // of that map
  bool middle = false;                           // gelu(norm(linear without bias)), as wide as reduced_dim
  float middle_norm_eps = 1e-5f;                 // of its LayerNorm
  std::size_t hidden_dim = 0;                    // of the MLP; 0 = none
  std::size_t out_dim = 0;                       // of the MLP
  bool gated = false;                            // fc2(act(gate x) * fc1 x)
  bool mlp_bias = true;                          // of both or all three layers
  Activation activation = Activation::gelu;      // of the MLP
  Activation out_activation = Activation::none;  // of the output of the MLP (Llama 4)
  bool mlp_norm = false;                         // LayerNorm after the MLP (ERNIE-4.5-VL)
  bool second_mlp = false;                       // another MLP and its norm, both out_dim wide
  float mlp_norm_eps = 1e-6f;                    // of both norms
  std::size_t projection_dim = 0;                // of the last linear map; 0 = none
  bool projection_bias = false;                  // of that map
  bool projection_norm = false;                  // RMSNorm without weight before it (Gemma 4)
  float projection_norm_eps = 1e-6f;             // of that norm
  bool out_norm = false;                         // RMSNorm after the projection (ERNIE-4.5-VL)
  float out_norm_eps = 1e-5f;                    // of that norm
  TokenStage tokens = TokenStage::encoder;       // output that the library calls last_hidden_state
  std::vector<std::size_t> deepstack{};  // blocks after which a separate merger reads the tokens (Qwen3-VL)

  /// Channels of a cell's vector, for tokens of C channels.
  std::size_t cell_width(std::size_t embed_dim) const {
    return cells == CellRule::mean ? embed_dim : embed_dim * size * size;
  }
  /// Channels of the output selected by `tokens`, if it is not the encoder's.
  std::size_t stage_width(std::size_t embed_dim) const {
    if (tokens == TokenStage::merged && hidden_dim != 0) return out_dim;
    return reduced_dim != 0 ? reduced_dim : cell_width(embed_dim);
  }
  /// E: channels of a visual token.
  std::size_t width(std::size_t embed_dim) const {
    if (projection_dim != 0) return projection_dim;
    if (hidden_dim != 0) return out_dim;
    return reduced_dim != 0 ? reduced_dim : cell_width(embed_dim);
  }
  bool operator==(const MergerConfig&) const = default;
};

/// The images that a model is made for.
struct ImageConfig {
  std::size_t height = 224;           // native input, pixels
  std::size_t width = 224;            // native input, pixels
  std::size_t num_channels = 3;       // planes of the input: red, green, blue, or bands
  StackRule stack = StackRule::none;  // inputs of several images
  bool fixed_size = false;            // the reference refuses any other input size
};

/// From pixels to patches, and their projection to C channels.
struct PatchConfig {
  std::size_t size = 16;    // P: edge of a patch, pixels
  std::size_t frames = 1;   // of a patch; an image is that many equal frames (Qwen-VL, GLM-4V)
  std::size_t padding = 0;  // zeros around the image before it is cut, of the same grid (ViTPose)
  /// The reference drops the remainder of edges that are not multiples of the patch size, as convolutions do;
  /// if false, such inputs are refused, except the native size.
  bool drops_remainder = false;
  bool unit_pixels = false;  // pixels are in [0, 1], and 2 x - 1 is what is projected (Gemma 4)
  bool input_norm = false;   // (x - mean) / std of stored numbers, one each for a channel (RADIO)
  bool norm = false;         // LayerNorm on the pixels of a patch, before they are projected
  bool bias = true;          // of the projection
  bool embed_norm = false;   // LayerNorm on the projected patch, before positions are added
};

/// Learned queries that enter in front of all other tokens before a later block (EoMT).
struct LateTokenConfig {
  std::size_t count = 0;  // Q
  std::size_t block = 0;  // before this block
  /// Blocks, from `block` on, before which the masks that the dense head makes of the tokens so far determine
  /// which patches a late token reads, there and in later blocks.
  std::vector<std::size_t> masked_blocks{};
};

/// The tokens in front of the patches.
struct TokenConfig {
  bool class_token = true;          // first of the prefix tokens
  bool distillation_token = false;  // after the class token (DeiT)
  std::size_t num_registers = 0;    // register tokens: after class and distillation token, before patches
  LateTokenConfig late;             // tokens of later blocks
};

/// Attention within windows of the grid.
struct WindowConfig {
  std::size_t size = 0;                      // edge of a window, in patches; 0 = none
  std::vector<std::size_t> global_blocks{};  // blocks with global attention nevertheless
};

/// The attention of a block: norm -> q, k, v -> rotation of q and k (PositionConfig) -> heads -> proj.
struct AttentionConfig {
  std::size_t num_heads = 12;     // H
  std::size_t head_dim = 0;       // d; 0 = embed_dim / num_heads
  std::size_t num_key_heads = 0;  // of keys and values, each for several of queries (EXAONE-4.5); 0 = H
  std::vector<std::size_t> block_key_heads{};  // the same of each block, where they differ (Sapiens2)
  double scale = 0.0;                          // of the products of queries and keys; 0 = 1 / sqrt(d)
  WindowConfig windows;
  bool qkv_bias = true;                   // a family whose k has none supplies zeros
  bool qk_norm = false;                   // norm on each head of q and k, before they are rotated
  NormKind qk_norm_kind = NormKind::rms;  // of these
  bool value_norm = false;                // RMSNorm without weight on each head of v (Gemma 4)
  bool norm = false;      // LayerNorm on the concatenated heads before proj (EVA-02 CLIP and base)
  bool proj_bias = true;  // of the projection after attention
};

/// The MLP of a block.
struct MlpConfig {
  MlpKind kind = MlpKind::plain;             // two or three matrices
  std::size_t dim = 3072;                    // hidden width; of one branch where gated
  Activation activation = Activation::gelu;  // of the hidden vector, or of its gate
  bool bias = true;                          // of both layers
  bool norm = false;                         // LayerNorm on the hidden vector (EVA-02 base, large)
  float limit = 0.0f;          // most of gates, and most and least of values (GLM-5.3); 0 = none
  std::size_t expert_dim = 0;  // last channels of the MLP, which a layer of their own makes (ViTPose+)
};

/// A norm over channels.
struct NormConfig {
  NormKind kind = NormKind::layer;
  float eps = 1e-6f;
};

/// The blocks: x + attention(norm x), then x + mlp(norm x); norms before, between and after.
struct EncoderConfig {
  std::size_t depth = 12;    // blocks
  NormConfig norm;           // of all norms but those of joint head and merger
  bool norm_pre = false;     // norm before block 0
  bool parallel = false;     // x + attention(norm x) + mlp(norm x), with one norm (ViT-22B)
  bool clipped = false;      // linear layers of blocks clip inputs and outputs (Gemma 4)
  bool branch_norm = false;  // norm on the output of both branches of a block (Gemma 4)
  bool layer_scale = false;  // both branches of a block are multiplied by a vector (C)
  bool token_norm = true;    // final norm on all tokens
};

/// Linear map to a joint image-text space.
struct ProjectionConfig {
  std::size_t dim = 0;  // E; 0 = none
  bool bias = false;
};

/// Blocks of a joint head, which computes the projected vector from the tokens after the final norm
/// (dino.txt): no rotation, q, k and v without bias, an MLP gated by SiLU, layer scale, a LayerNorm at the
/// end; then class token and mean of the patches concatenated, E = 2 C.
struct JointHeadConfig {
  std::size_t depth = 0;    // blocks; 0 = none
  std::size_t mlp_dim = 0;  // hidden width of one branch
  float norm_eps = 1e-5f;   // of its norms
};

/// From tokens to the pooled vector, the joint space and the logits.
struct HeadConfig {
  Pooling pooling = Pooling::class_token;    // what `pooled` is made of
  std::vector<std::size_t> pooled_tokens{};  // of Pooling::prefix_tokens
  AttentionPoolConfig attention_pool;        // of Pooling::attention
  bool pooled_norm = false;                  // LayerNorm after pooling (timm fc_norm; Hugging Face CLIP)
  bool pooler = false;  // pooled = tanh(W pooled + b) (Hugging Face ViT and DeiT without classifier)
  ProjectionConfig projection;
  JointHeadConfig joint;
  HeadInput input = HeadInput::pooled;  // what the classifier reads
  std::size_t num_classes = 0;          // rows of the classifier; 0 = there is none
  /// What the library keeps as a classifier projects to a joint space (timm's CLIP towers): its outputs are
  /// no classes.
  bool projects = false;
  std::vector<std::string> labels;            // one per class, or empty
  std::vector<std::string> label_categories;  // one per class, or empty: "0" for a tag, "9" for a rating, ...
  /// Classes are not mutually exclusive: a sigmoid for each instead of a softmax.
  bool multi_label = false;
  /// The outputs are values, not classes (problem_type "regression" of transformers).
  bool regression = false;
};

/// Architecture of a model, in the order of the data: pixels are cut into patches and projected to tokens;
/// the patches' coordinates and frequencies make the factors that rotate queries and keys in the attention of
/// every block; the head reads the tokens of the last.
struct VIT_API ModelConfig {
  std::string architecture;  // name in the library that wrote the checkpoint, "" if it has none
  std::string family;        // adapter that read it: "rope-vit", "vit", ...
  std::string library;       // library that is reproduced: "timm", "transformers", "Meta", ...

  std::size_t embed_dim = 768;  // C: channels of a token, from the patches to the head
  ImageConfig image;            // pixels ...
  PatchConfig patch;            // ... -> patches -> rows of C channels
  TokenConfig tokens;           // class, distillation and register tokens in front of them
  PositionConfig position;      // coordinates -> frequencies of x and y -> complex factors; or rows to add
  AttentionConfig attention;    // rotates q and k by these factors
  MlpConfig mlp;
  EncoderConfig encoder;  // blocks of attention and MLP
  HeadConfig head;        // pooled vector, joint space, logits
  MergerConfig merger;    // visual tokens of a language model

  /// d: channels of a head.
  std::size_t head_width() const {
    if (attention.head_dim != 0) return attention.head_dim;
    return attention.num_heads == 0 ? 0 : embed_dim / attention.num_heads;
  }
  /// A = H d: all heads concatenated; C in most models.
  std::size_t attention_dim() const { return attention.num_heads * head_width(); }
  /// Heads of keys and values in a block; H in most models.
  std::size_t key_heads(std::size_t block) const {
    if (block < attention.block_key_heads.size()) return attention.block_key_heads[block];
    return attention.num_key_heads != 0 ? attention.num_key_heads : attention.num_heads;
  }
  /// Channels of the keys of a token in a block; A in most models.
  std::size_t key_dim(std::size_t block) const { return key_heads(block) * head_width(); }
  /// Class, distillation and register tokens, which come before the patches.
  std::size_t num_prefix_tokens() const {
    return (tokens.class_token ? 1u : 0u) + (tokens.distillation_token ? 1u : 0u) + tokens.num_registers;
  }
  /// Whether the logits are those of classes.
  bool has_classes() const { return head.num_classes != 0 && !head.projects; }
  /// Tokens in front of the patches after block `block`.
  std::size_t num_prefix_after(std::size_t block) const {
    return num_prefix_tokens() + (block >= tokens.late.block ? tokens.late.count : 0);
  }
  /// Numbers of the pooled vector: C, or those of several tokens.
  std::size_t pooled_dim() const {
    if (head.pooling == Pooling::prefix_tokens) return head.pooled_tokens.size() * embed_dim;
    return head.pooling == Pooling::class_and_patch_mean ? 2 * embed_dim : embed_dim;
  }
  /// Values of a patch: num_channels P P.
  std::size_t patch_dim() const { return image.num_channels * patch.size * patch.size; }
  /// The edges of an image must be multiples of this, in pixels: whole patches, and whole cells of the
  /// merger.
  std::size_t edge_multiple() const {
    return patch.size * (merger.size != 0 && !merger.pads ? merger.size : 1);
  }
  /// Whether a patch takes the planes of several frames, where an input has more than one image.
  bool has_clips() const { return image.stack != StackRule::none && patch.frames > 1; }
  /// Patches of the native input.
  GridSize native_grid() const { return {image.height / patch.size, image.width / patch.size}; }
};

/// How the model's logits are converted to probabilities.
constexpr ClassActivation class_activation(const ModelConfig& config) {
  if (config.head.regression) return ClassActivation::none;
  return config.head.multi_label ? ClassActivation::sigmoid : ClassActivation::softmax;
}

/// Throws Error naming the first field that is out of range or contradicts another. Limits are generous
/// (width up to 65536, depth up to 1024, edges up to kMaxInputEdge, 2^20 patches, rotation factors of half a
/// GiB) and prevent a hostile file from requesting excessive memory.
VIT_API void validate(const ModelConfig& config);
/// validate() for values read from `file`: messages name it, and the Error has the kind format.
VIT_API void validate(const ModelConfig& config, const std::string& file);

// ------------------------------------------------------------------------------------------------ text tower

/// Which tokens a token attends to.
enum class TextMask {
  none,     // all positions, including padding tokens (SigLIP, MobileCLIP2)
  causal,   // itself and earlier tokens: nothing after the pooled token is computed (CLIP)
  padding,  // all tokens of the text, no padding (TIPSv2)
};

/// How the vector of a text is computed from its tokens.
enum class TextPooling {
  largest_id,  // the first with the largest id, which is the end token in CLIP's vocabularies
  end_token,   // the first that is end_token, position 0 if there is none
  first,       // position 0
  last,        // position T - 1, padding or not
  mean,        // the mean of all that are not padding; zeros for a text without tokens
};

/// How an image is compared with texts: scale * cosine + bias, then a softmax over the texts or a sigmoid of
/// each, as the model was trained.
struct TextScore {
  /// How scores become probabilities.
  using Kind = ClassActivation;
  Kind kind = Kind::softmax;  // over the texts, or of each
  float scale = 1.0f;         // exp(logit_scale) of what is stored, or 1 / temperature
  float bias = 0.0f;          // logit_bias
};

/// Architecture of a text tower: its layers and their sizes.
struct VIT_API TextConfig {
  std::string architecture;  // name in the library that wrote the checkpoint, "" if it has none
  std::string family;        // adapter that read it: "clip", "siglip", ...
  std::string library;       // library that is reproduced: "transformers", "OpenCLIP", "Meta", ...

  std::size_t vocabulary_size = 49408;  // rows of the token table
  std::size_t context_length = 77;      // positions
  std::size_t width = 512;              // D: channels of a token
  std::size_t depth = 12;               // blocks
  std::size_t num_heads = 8;            // of D / num_heads channels
  std::size_t mlp_dim = 2048;           // hidden width

  bool scaled_tokens = false;  // token vectors are multiplied by sqrt(width) (TIPSv2)
  /// Computed sines and cosines (TIPSv2), otherwise a stored table of T rows.
  bool sinusoidal_positions = false;
  float norm_eps = 1e-5f;                         // of all norms
  Activation activation = Activation::gelu;       // of the MLPs
  bool qkv_bias = true;                           // q, k and v have a bias
  TextMask mask = TextMask::causal;               // which tokens a token attends to
  TextPooling pooling = TextPooling::largest_id;  // how the vector of a text is computed
  std::int32_t end_token = 0;                     // of TextPooling::end_token
  std::size_t projection_dim = 0;                 // 0 = none: the pooled token is the vector
  bool projection_bias = false;                   // of that projection

  /// Nothing if the checkpoint has only a text tower.
  std::optional<TextScore> score{};

  /// E: size of a text's vector.
  std::size_t embedding_dim() const { return projection_dim != 0 ? projection_dim : width; }
};

/// Throws Error naming the first field that is out of range or contradicts another.
VIT_API void validate(const TextConfig& config);
/// validate() for values read from `file`: messages name it, and the Error has the kind format.
VIT_API void validate(const TextConfig& config, const std::string& file);

/// "none", "causal", "padding".
VIT_API const char* to_string(TextMask mask);
/// "largest_id", "end_token", "first", "last", "mean".
VIT_API const char* to_string(TextPooling pooling);
/// "softmax", "sigmoid".
VIT_API const char* to_string(TextScore::Kind kind);

// ----------------------------------------------------------------------------------------------------- files

/// One tensor of the file and its use.
struct TensorUse {
  std::string name;                // in the file
  std::vector<std::size_t> shape;  // outermost first
  std::string dtype;               // of the elements, as the file names it
  std::string feeds;               // the tensors of the model filled from it; "" if it is ignored
  std::string ignored_because;     // why it is not needed; "" if it is used
};

/// The report of loading.
struct LoadReport {
  std::filesystem::path path;                // as it was given to load
  std::vector<std::filesystem::path> files;  // weight files read
  std::string stored_dtype;                  // of most numbers
  /// 16 hexadecimal digits that identify a model: independent of the location of its files and
  /// of the precision. Computed from a sample of the weights; no protection against forgery.
  std::string fingerprint;
  std::size_t num_parameters = 0;  // elements of the tensors used
  std::vector<TensorUse> tensors;  // in file order
  std::vector<std::string> notes;  // which library's rules apply if they differ, assumed values, ...
};

}  // namespace vit
