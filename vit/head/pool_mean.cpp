// The mean of tokens, vit/pooling.h.
#include "vit/base/check.h"
#include "vit/head/pooling.h"
#include "vit/pooling.h"

namespace vit {

void pool_mean(TensorView<const float> tokens, std::size_t first, TensorView<float> out) {
  VIT_CHECK(
      tokens.rank() == 3 && out.rank() == 2 && out.dim(0) == tokens.dim(0) && out.dim(1) == tokens.dim(2),
      (Where{"pool_mean", ErrorKind::argument}), "tokens (B, T, C) of ", tokens.shape().to_string(), " to ",
      out.shape().to_string());
  internal::pool_mean(tokens, first, tokens.dim(1), out);
}

}  // namespace vit
