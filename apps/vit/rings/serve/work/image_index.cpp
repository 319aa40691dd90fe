#include "apps/vit/rings/serve/work/image_index.h"

#include <array>

#include "apps/vit/rings/index/index_search.h"
#include "vit/outputs.h"

namespace vit::app {

struct ImageIndex::Parts {
  explicit Parts(const std::filesystem::path& folder)
      : contents(read_index_folder(folder)), search(folder, contents, "") {}

  IndexContents contents;
  IndexSearch search;  // of `contents`
};

ImageIndex::ImageIndex(const std::filesystem::path& folder) : parts_(std::make_unique<const Parts>(folder)) {}
ImageIndex::~ImageIndex() = default;

const RunModel& ImageIndex::model() const noexcept {
  return parts_->contents.facts.model;
}

std::string ImageIndex::file(std::size_t number) const {
  return number < parts_->contents.files.size() ? parts_->contents.files[number].file : std::string();
}

std::vector<ImageIndex::Match> ImageIndex::nearest(std::span<const float> vector, std::size_t top) const {
  std::vector<float> query(vector.begin(), vector.end());
  normalize_vector(query);
  std::vector<Match> out;
  const std::array<std::span<const float>, 1> queries{query};
  const std::vector<std::vector<Hit>> found = parts_->search.search(queries, top, 1);
  for (const Hit& hit : found.front())
    out.push_back({hit.index, parts_->contents.files[hit.index].file, hit.score});
  return out;
}

}  // namespace vit::app
