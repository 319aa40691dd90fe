#include "vit/config/page_config.h"

#include <cmath>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kPageWhere{"validate_page_config", ErrorKind::argument};

void check_page_range(const char* field, std::size_t value, std::size_t low, std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kPageWhere, field, " of the encoder of pages must be ", low,
            " to ", high, ", got ", value);
}

}  // namespace

void validate(const PageConfig& c) {
  check_page_range("vocab_size", c.vocabulary_size, 1, std::size_t{1} << 26);
  check_page_range("hidden_size", c.width, 1, 65536);
  check_page_range("num_hidden_layers", c.depth, 1, 1024);
  check_page_range("num_attention_heads", c.num_heads, 1, 1024);
  check_page_range("intermediate_size", c.mlp_dim, 1, 1u << 18);
  check_page_range("embedding_dim", c.dim, 1, 65536);
  check_page_range("local_attention", c.reach, 0, std::size_t{1} << 16);
  VIT_CHECK(c.width % c.num_heads == 0 && c.width / c.num_heads % 2 == 0, kPageWhere, "the width ", c.width,
            " of the encoder of pages cannot be divided into ", c.num_heads, " heads of an even width");
  check_page_range("the width of a head", c.width / c.num_heads, 2, 512);
  VIT_CHECK(c.is_local.size() == c.depth, kPageWhere, "layer_types has ", c.is_local.size(), " entries for ",
            c.depth, " blocks");
  VIT_CHECK(std::isfinite(c.norm_eps) && c.norm_eps >= 0 && c.norm_eps < 1, kPageWhere,
            "norm_eps must be in [0, 1), got ", c.norm_eps);
  for (const double theta : {c.global_theta, c.local_theta})
    VIT_CHECK(std::isfinite(theta) && theta > 0, kPageWhere, "rope_theta must be positive, got ", theta);
  VIT_CHECK(c.image_token >= 0, kPageWhere, "image_token_id must not be negative, got ", c.image_token);
}

}  // namespace vit::internal
