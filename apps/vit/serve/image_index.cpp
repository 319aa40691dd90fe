#include "apps/vit/serve/image_index.h"

#include "apps/vit/commands/index/index_folder.h"
#include "vit/outputs.h"

namespace vit::app {

struct ImageIndex::Parts {
  IndexContents contents;
};

ImageIndex::ImageIndex(const std::filesystem::path& folder)
    : parts_(std::make_unique<const Parts>(Parts{read_index_folder(folder)})) {}
ImageIndex::~ImageIndex() = default;

const RunModel& ImageIndex::model() const noexcept {
  return parts_->contents.facts.model;
}

std::vector<ImageIndex::Match> ImageIndex::nearest(std::span<const float> vector, std::size_t top) const {
  std::vector<float> query(vector.begin(), vector.end());
  normalize(query);
  std::vector<Match> out;
  for (const Hit& hit : parts_->contents.index.search(query, top, 1))
    out.push_back({parts_->contents.files[hit.index].file, hit.score});
  return out;
}

}  // namespace vit::app
