// Replacement for builds without dense heads.
#include "apps/vit/rings/show/show_run.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_dense() {
  fail(
      Where{"show", ErrorKind::unsupported},
      "this vit was built without dense heads: depth and segments need -DVIT_RING_DENSE=ON when it is built");
}

}  // namespace

void Show::draw_depth() {
  fail_without_dense();
}
void Show::draw_segments() {
  fail_without_dense();
}

}  // namespace vit::app
