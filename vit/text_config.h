// Configuration of a text tower: plain data, filled by an adapter of weights/families, checked once by
// validate(). Letters: V = vocabulary_size, T = context_length, D = width, E = embedding_dim().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "vit/base/choices.h"
#include "vit/base/error.h"

namespace vit {

/// Which tokens a token attends to.
enum class TextMask {
  none,     // all positions, including padding tokens (SigLIP, MobileCLIP2)
  causal,   // itself and earlier tokens: nothing after the pooled token is computed (CLIP)
  padding,  // all tokens of the text, no padding (TIPSv2, BERT)
};

/// How the vector of a text is computed from its tokens.
enum class TextPooling {
  largest_id,  // the first with the largest id, which is the end token in CLIP's vocabularies
  end_token,   // the first that is end_token, position 0 if there is none
  first,       // position 0
  last,        // position T - 1, padding or not
  mean,        // the mean of all that are not padding; zeros for a text without tokens
  none,        // a vector of each token instead (SAM 3)
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

  std::size_t token_types = 0;  // rows of a table whose first row is added to each token (BERT); 0 = none
  bool scaled_tokens = false;   // token vectors are multiplied by sqrt(width) (TIPSv2)
  /// Computed sines and cosines (TIPSv2), otherwise a stored table of T rows and those before
  /// the first position.
  bool sinusoidal_positions = false;
  /// Row of the table that the first token has; the row before is that of padding tokens, which are not
  /// counted (RoBERTa). 0: all tokens are counted.
  std::size_t first_position = 0;
  bool token_norm = false;                        // norm before block 0 (BERT)
  bool sum_norm = false;                          // BlockNorms::of_sums
  bool final_norm = true;                         // norm after the last block
  float norm_eps = 1e-5f;                         // of all norms
  Activation activation = Activation::gelu;       // of the MLPs
  bool qkv_bias = true;                           // q, k and v have a bias
  TextMask mask = TextMask::causal;               // which tokens a token attends to
  TextPooling pooling = TextPooling::largest_id;  // how the vector of a text is computed
  std::int32_t end_token = 0;                     // of TextPooling::end_token
  std::size_t pooler_dim = 0;                     // of a layer with bias before the projection; 0 = none
  std::size_t projection_dim = 0;                 // 0 = none: the pooled token is the vector
  bool projection_bias = false;                   // of that projection

  /// Nothing if the checkpoint has only a text tower.
  std::optional<TextScore> score{};

  /// E: size of a text's vector.
  std::size_t embedding_dim() const { return projection_dim != 0 ? projection_dim : pooled_dim(); }
  /// Size of a text's vector before the projection.
  std::size_t pooled_dim() const { return pooler_dim != 0 ? pooler_dim : width; }
};

/// Throws Error naming the first field that is out of range or contradicts another.
VIT_API void validate(const TextConfig& config);

/// "none", "causal", "padding".
VIT_API const char* to_string(TextMask mask);
/// "largest_id", "end_token", "first", "last", "mean", "none".
VIT_API const char* to_string(TextPooling pooling);
/// "softmax", "sigmoid".
VIT_API const char* to_string(TextScore::Kind kind);

}  // namespace vit
