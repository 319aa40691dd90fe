#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kPagesRequirement = "it needs -DVIT_RING_PAGES=ON when it is built";

}  // namespace

std::unique_ptr<PageVectors> load_page_vectors(const CommonOptions& /*options*/) {
  fail_absent("vectors of pages", kPagesRequirement);
}
PageVectors::Score page_score(TensorView<const float> /*question*/) {
  fail_absent("vectors of pages", kPagesRequirement);
}
std::unique_ptr<PageVectors> open_page_vectors(const CommonOptions& /*options*/) {
  return nullptr;
}
int embed_pages(const EmbedPages& /*job*/) {
  fail_absent("embed --features page", kPagesRequirement);
}

}  // namespace vit::app
