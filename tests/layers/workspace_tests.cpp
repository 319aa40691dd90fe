// Workspace: where the views of a pass lie.
#include "vit/layers/workspace.h"

#include <doctest/doctest.h>

#include <initializer_list>

#include "vit/base/error.h"

namespace vit {
namespace {

const float* end_of(const TensorView<float>& view) {
  return view.row(view.num_rows() - 1) + view.num_columns();
}

TEST_CASE(
    "layers: rows of a workspace never lie a whole number of pages apart, and views keep out of each other") {
  constexpr std::size_t kPageFloats = 1024;
  for (const std::size_t channels : {64, 1024, 2048}) {
    Workspace workspace;
    workspace.reserve({.num_images = 2,
                       .num_tokens = 5,
                       .embed_dim = channels,
                       .num_heads = 4,
                       .hidden_dim = 4 * channels});
    for (const TensorView<float>* view :
         {&workspace.normed, &workspace.qkv, &workspace.heads, &workspace.hidden}) {
      CHECK(view->num_rows() == 10);
      CHECK(view->row_stride() % kPageFloats != 0);
    }
    CHECK(end_of(workspace.qkv) <= workspace.heads.data());
    CHECK(end_of(workspace.normed) <= workspace.qkv.data());
    CHECK(end_of(workspace.heads) <= workspace.packed_heads.data());
    CHECK(end_of(workspace.hidden) <= workspace.packed_heads.data());

    const TensorView<float> fewer = Workspace::view_rows(workspace.hidden, 3, 2 * channels);
    CHECK(fewer.shape() == Shape({3, 2 * channels}));
    CHECK(fewer.row_stride() % kPageFloats != 0);
    CHECK_THROWS_AS(Workspace::view_rows(workspace.heads, 11, channels), Error);
    CHECK_THROWS_AS(Workspace::view_rows(workspace.heads, 10, 2 * channels), Error);
  }
}

}  // namespace
}  // namespace vit
