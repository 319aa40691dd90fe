// Activations: where the views of a pass lie.
#include "vit/layers/activations.h"

#include <doctest/doctest.h>

#include <initializer_list>

#include "vit/base/error.h"

namespace vit::internal {
namespace {

const float* end_of(const TensorView<float>& view) {
  return view.row(view.num_rows() - 1) + view.num_columns();
}

TEST_CASE(
    "layers: rows of activations never lie a multiple of the page size apart, and views keep out of each "
    "other") {
  constexpr std::size_t kPageFloats = 1024;
  for (const std::size_t channels : {64, 1024, 2048}) {
    Activations a;
    a.reserve({.num_images = 2,
               .num_tokens = 5,
               .embed_dim = channels,
               .attention_dim = channels,
               .num_heads = 4,
               .hidden_dim = 4 * channels},
              *kernels::default_kernels().float32);
    for (const TensorView<float>* view : {&a.normed, &a.qkv, &a.heads, &a.hidden}) {
      CHECK(view->num_rows() == 10);
      CHECK(view->row_stride() % kPageFloats != 0);
    }
    CHECK(end_of(a.qkv) <= a.heads.data());
    CHECK(end_of(a.normed) <= a.qkv.data());
    CHECK(end_of(a.heads) <= a.packed_heads.data());
    CHECK(end_of(a.hidden) <= a.packed_heads.data());

    const TensorView<float> fewer = Activations::view_rows(a.hidden, 3, 2 * channels);
    CHECK(fewer.shape() == Shape({3, 2 * channels}));
    CHECK(fewer.row_stride() % kPageFloats != 0);
    CHECK_THROWS_AS(Activations::view_rows(a.heads, 11, channels), Error);
    CHECK_THROWS_AS(Activations::view_rows(a.heads, 10, 2 * channels), Error);
  }
}

}  // namespace
}  // namespace vit::internal
