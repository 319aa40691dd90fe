// What a text tower is: plain data with defaults, filled by an adapter of weights/families, checked once by
// validate(). Letters: V = vocabulary_size, T = context_length, D = width, E = embedding_dim().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "vit/base/activation.h"
#include "vit/base/error.h"

namespace vit {

/// Which tokens a token attends to.
enum class TextMask {
  none,     // all places, padding included: its tokens take part (SigLIP, MobileCLIP2)
  causal,   // those before it and itself: nothing behind the pooled token is computed (CLIP)
  padding,  // all tokens of the text, no padding (TIPSv2)
};

/// Which token, or what of the tokens, is the vector of a text.
enum class TextPooling {
  largest_id,  // the first of the largest id, which is the end token in CLIP's vocabularies
  end_token,   // the first that is end_token, place 0 if there is none
  first,       // place 0
  last,        // place T - 1, padding or not
  mean,        // the mean of all that are not padding; zeros for a text without tokens
};

/// How an image is compared with texts: scale * cosine + bias, then a softmax over the texts or a sigmoid of
/// each, as the model was trained.
struct TextScore {
  /// How scores become probabilities.
  using Kind = ClassActivation;
  Kind kind = Kind::softmax;
  float scale = 1.0f;  // exp(logit_scale) of what is stored, or 1 / temperature
  float bias = 0.0f;   // logit_bias
};

/// Architecture of a text tower: what its layers are and how large.
struct VIT_API TextConfig {
  std::string architecture;  // name in the library that wrote the checkpoint, "" where it has none
  std::string family;        // adapter that read it: "clip", "siglip", ...
  std::string library;       // whose numbers are reproduced: "transformers", "OpenCLIP", "Meta", ...

  std::size_t vocabulary_size = 49408;  // rows of the token table
  std::size_t context_length = 77;      // places
  std::size_t width = 512;
  std::size_t depth = 12;
  std::size_t num_heads = 8;
  std::size_t mlp_dim = 2048;

  bool scaled_tokens = false;  // token vectors are multiplied by sqrt(width) (TIPSv2)
  bool sinusoidal_positions =
      false;  // sines and cosines that no file stores (TIPSv2); else a table of T rows
  float norm_eps = 1e-5f;
  Activation activation = Activation::gelu;
  bool qkv_bias = true;
  TextMask mask = TextMask::causal;
  TextPooling pooling = TextPooling::largest_id;
  std::int32_t end_token = 0;      // of TextPooling::end_token
  std::size_t projection_dim = 0;  // 0 = none: the pooled token is the vector
  bool projection_bias = false;

  /// Nothing where the checkpoint holds a text tower alone.
  std::optional<TextScore> score{};

  /// E: numbers of a text's vector.
  std::size_t embedding_dim() const { return projection_dim != 0 ? projection_dim : width; }
};

/// Throws Error naming the first field that is out of range or contradicts another.
VIT_API void validate(const TextConfig& config);
/// validate() for values that were read from `file`: messages name it, and the Error is of the kind format.
VIT_API void validate(const TextConfig& config, const std::string& file);

/// "none", "causal", "padding".
VIT_API const char* to_string(TextMask mask);
/// "largest_id", "end_token", "first", "last", "mean".
VIT_API const char* to_string(TextPooling pooling);
/// "softmax", "sigmoid".
VIT_API const char* to_string(TextScore::Kind kind);

}  // namespace vit
