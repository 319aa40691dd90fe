// Configuration of an encoder of pages: visual tokens of an image between tokens of a text become one vector
// each, which is compared with those of a query (ColModernVBERT). Plain data, filled by an adapter of
// weights/families, checked once by validate(). Letters: V = vocabulary_size, C = width, E = dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vit/base/choices.h"

namespace vit::internal {

struct PageConfig {
  std::string family;  // "modernvbert"
  std::size_t vocabulary_size = 50368;
  std::size_t width = 768;
  std::size_t depth = 22;
  std::size_t num_heads = 12;
  std::size_t mlp_dim = 1152;  // of one branch of the gated MLP
  float norm_eps = 1e-5f;      // of all norms
  bool qkv_bias = false;       // of all layers of attention
  bool mlp_bias = false;       // of all layers of MLPs
  Activation activation = Activation::gelu;
  std::vector<std::uint8_t> is_local{};  // of each block: not 0 if tokens attend to their neighbors only
  std::size_t reach = 64;                // tokens to either side that those blocks attend to
  double global_theta = 160000.0;        // of the rotation by the place in the text, halves of a head
  double local_theta = 10000.0;          // of local blocks
  std::size_t dim = 128;                 // E: of a vector
  std::int32_t image_token = 50407;      // in place of which visual tokens are taken
};

/// Throws Error naming the first field that is out of range or contradicts another.
void validate(const PageConfig& config);

}  // namespace vit::internal
