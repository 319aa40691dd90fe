#include "vit/text_config.h"

#include <cmath>

#include "vit/base/check.h"

namespace vit {
namespace {

constexpr Where kWhere{"validate_text_config", ErrorKind::argument};

void check_text_range(const char* field, std::size_t value, std::size_t low, std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kWhere, field, " of the text tower must be ", low, " to ", high,
            ", got ", value);
}

}  // namespace

void validate(const TextConfig& c) {
  check_text_range("vocabulary_size", c.vocabulary_size, 1, std::size_t{1} << 26);
  check_text_range("context_length", c.context_length, 1, std::size_t{1} << 16);
  check_text_range("width", c.width, 1, 65536);
  check_text_range("depth", c.depth, 1, 1024);
  check_text_range("num_heads", c.num_heads, 1, 1024);
  check_text_range("mlp_dim", c.mlp_dim, 1, 1u << 18);
  check_text_range("pooler_dim", c.pooler_dim, 0, 65536);
  check_text_range("projection_dim", c.projection_dim, 0, 65536);
  check_text_range("token_types", c.token_types, 0, 1024);
  check_text_range("first_position", c.first_position, 0, 1u << 16);
  check_choice(kWhere, "activation", c.activation, Activation::relu);
  check_choice(kWhere, "mask", c.mask, TextMask::padding);
  check_choice(kWhere, "pooling", c.pooling, TextPooling::none);
  if (c.score) check_choice(kWhere, "score", c.score->kind, ClassActivation::none);
  VIT_CHECK(c.width % c.num_heads == 0, kWhere, "the width ", c.width,
            " of the text tower is not divisible by its ", c.num_heads, " heads");
  check_text_range("head width", c.width / c.num_heads, 1, 512);
  VIT_CHECK(std::isfinite(c.norm_eps) && c.norm_eps >= 0 && c.norm_eps < 1, kWhere,
            "the epsilon of LayerNorm must be in [0, 1), got ", c.norm_eps);
  VIT_CHECK(!c.sinusoidal_positions || c.width >= 4, kWhere, "sinusoidal positions need a width of 4, got ",
            c.width);
  VIT_CHECK(c.pooling != TextPooling::none || (c.projection_dim != 0 && c.mask == TextMask::causal), kWhere,
            "vectors of tokens need a projection and causal attention");
  VIT_CHECK(c.pooling != TextPooling::mean || c.mask == TextMask::padding, kWhere,
            "the mean of a text's tokens needs a mask of its padding");
  VIT_CHECK(c.mask != TextMask::padding || c.pooling == TextPooling::mean || c.pooling == TextPooling::first,
            kWhere, "a padding mask requires pooling by the mean of a text's tokens or the first of them");
  VIT_CHECK(c.pooling != TextPooling::none || (c.final_norm && c.pooler_dim == 0), kWhere,
            "vectors of tokens need a final norm and no pooler");
  VIT_CHECK(c.first_position == 0 || (!c.sinusoidal_positions && c.mask == TextMask::padding), kWhere,
            "positions after those of padding need a table and a mask of the padding");
}

const char* to_string(TextMask mask) {
  switch (mask) {
    case TextMask::none: return "none";
    case TextMask::causal: return "causal";
    case TextMask::padding: return "padding";
  }
  return "unknown";
}

const char* to_string(TextPooling pooling) {
  switch (pooling) {
    case TextPooling::largest_id: return "largest_id";
    case TextPooling::end_token: return "end_token";
    case TextPooling::first: return "first";
    case TextPooling::last: return "last";
    case TextPooling::mean: return "mean";
    case TextPooling::none: return "none";
  }
  return "unknown";
}

const char* to_string(TextScore::Kind kind) {
  return kind == TextScore::Kind::sigmoid ? "sigmoid" : "softmax";
}

}  // namespace vit
