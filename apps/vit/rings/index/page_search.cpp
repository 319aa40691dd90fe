#include "apps/vit/rings/index/page_search.h"

#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/base/parallel.h"

namespace vit::app {

using namespace internal;

std::vector<Hit> search_pages(const IndexContents& contents, std::span<const float> question, std::size_t top,
                              int threads) {
  const std::size_t dim = contents.vectors.dim();
  const std::vector<std::size_t> starts = vector_starts(contents.files);
  const PageVectors::Score score =
      page_score(TensorView<const float>(question.data(), Shape{question.size() / dim, dim}));
  std::vector<Hit> hits(contents.files.size());
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(hits.size(), threads, [&](std::size_t page, int thread) {
    std::vector<float>& rows = memory[static_cast<std::size_t>(thread)];
    const std::size_t count = starts[page + 1] - starts[page];
    rows.resize(count * dim);
    contents.vectors.read(starts[page], rows);
    VIT_CHECK(are_finite(rows), (Where{"index", ErrorKind::mismatch}), "the vectors of ",
              printable(contents.files[page].file), " are not finite; run vit index again into a new folder");
    hits[page] = {page, score(TensorView<const float>(rows.data(), Shape{count, dim}))};
  });
  keep_best(hits, top);
  return hits;
}

}  // namespace vit::app
