#include "vit/kernels/pack.h"

#include <atomic>

#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::internal::kernels {
namespace {

constexpr Where kWhere{"PackedMatrix", ErrorKind::mismatch};

}  // namespace

PackedMatrix::PackedMatrix(TensorView<const float> weight, const LinearKernels& kernels)
    : kernels_(&kernels) {
  VIT_CHECK(weight.rank() == 2, kWhere, "a weight has the shape (out, in), got ", weight.shape().to_string());
  VIT_CHECK(weight.dim(0) > 0 && weight.dim(1) > 0, kWhere, "empty weight ", weight.shape().to_string());
  out_features_ = weight.dim(0);
  in_features_ = weight.dim(1);
  constexpr std::size_t kColumnsPerTask = 256;  // a multiple of every panel width
  panels_ = Tensor<std::byte>(
      Shape{kernels.packed_bytes(round_up(out_features_, kernels.panel_columns), in_features_)});
  std::atomic<bool> is_packed = true;
  parallel_for_parts(out_features_, kColumnsPerTask, 0, [&](std::size_t first, std::size_t count) {
    const bool fits = kernels.pack({.weight = weight.row(first),
                                    .stride = weight.row_stride(),
                                    .out_features = count,
                                    .in_features = in_features_,
                                    .packed = panels_.data() + kernels.packed_bytes(first, in_features_)});
    if (!fits) is_packed = false;
  });
  VIT_CHECK(is_packed, kWhere.with(ErrorKind::format), "a weight that is not finite cannot be quantized");
}

}  // namespace vit::internal::kernels
