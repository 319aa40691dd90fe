#include "apps/vit/serve/image_index.h"

#include "apps/vit/commands/index/index_search.h"
#include "vit/outputs.h"

namespace vit::app {

struct ImageIndex::Parts {
  explicit Parts(const std::filesystem::path& folder)
      : contents(read_index_folder(folder)), search(folder, contents, "") {}
  IndexContents contents;
  IndexSearch search;
};

ImageIndex::ImageIndex(const std::filesystem::path& folder) : parts_(std::make_unique<const Parts>(folder)) {}
ImageIndex::~ImageIndex() = default;

const RunModel& ImageIndex::model() const noexcept {
  return parts_->contents.facts.model;
}

std::vector<ImageIndex::Match> ImageIndex::nearest(std::span<const float> vector, std::size_t top) const {
  std::vector<float> query(vector.begin(), vector.end());
  normalize(query);
  std::vector<Match> out;
  const std::span<const float> queries[]{query};
  for (const Hit& hit : parts_->search.search(queries, top, /*threads=*/1).front())
    out.push_back({parts_->contents.files[hit.index].file, hit.score});
  return out;
}

}  // namespace vit::app
