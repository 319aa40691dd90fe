#include "apps/vit/rings/serve/work/image_index.h"

#include <mutex>
#include <optional>

#include "apps/vit/rings/index/index_search.h"
#include "vit/outputs.h"

namespace vit::app {

struct ImageIndex::Parts {
  explicit Parts(const std::filesystem::path& path)
      : folder(path), contents(read_images(path)), search(path, contents, "") {}

  static IndexContents read_images(const std::filesystem::path& path) {
    IndexContents contents = read_index_folder(path);
    require_images(contents, path, "vit serve");
    return contents;
  }

  /// Searches with parameters, one such search at a time: FAISS keeps them in the index.
  std::vector<std::vector<Hit>> search_with(const std::string& parameters,
                                            std::span<const std::span<const float>> queries,
                                            std::size_t top) const {
    const std::lock_guard lock(mutex);
    if (!tuned || tuned_by != parameters) {
      tuned.reset();
      tuned.emplace(folder, contents, parameters);
      tuned_by = parameters;
    }
    return tuned->search(queries, top, 1);
  }

  std::filesystem::path folder;
  IndexContents contents;
  IndexSearch search;        // of `contents`
  mutable std::mutex mutex;  // guards what follows
  mutable std::optional<IndexSearch> tuned;
  mutable std::string tuned_by;
};

ImageIndex::ImageIndex(const std::filesystem::path& folder) : parts_(std::make_unique<const Parts>(folder)) {}
ImageIndex::~ImageIndex() = default;

const RunModel& ImageIndex::model() const noexcept {
  return parts_->contents.facts.model;
}

std::string ImageIndex::file(std::size_t number) const {
  return number < parts_->contents.files.size() ? parts_->contents.files[number].file : std::string();
}

bool ImageIndex::is_index(const std::filesystem::path& folder) {
  return is_index_folder(folder);
}

std::vector<ImageIndex::Match> ImageIndex::nearest(std::span<const float> vector, std::size_t top) const {
  return nearest({{vector.begin(), vector.end()}}, true, top).front();
}

std::vector<std::vector<ImageIndex::Match>> ImageIndex::nearest(std::vector<std::vector<float>> vectors,
                                                                bool each, std::size_t top,
                                                                const std::string& parameters) const {
  std::vector<std::span<const float>> queries;
  for (std::vector<float>& vector : vectors) {
    normalize_vector(vector);
    queries.emplace_back(vector);
  }
  std::vector<float> mean;
  if (!each && queries.size() > 1) {
    mean = mean_vector(queries);
    queries.assign(1, mean);
  }
  std::vector<std::vector<Match>> out;
  for (const std::vector<Hit>& hits : parameters.empty() ? parts_->search.search(queries, top, 1)
                                                         : parts_->search_with(parameters, queries, top)) {
    std::vector<Match>& matches = out.emplace_back();
    for (const Hit& hit : hits)
      matches.push_back({hit.index, parts_->contents.files[hit.index].file, hit.score});
  }
  return out;
}

}  // namespace vit::app
