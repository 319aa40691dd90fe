#include "apps/vit/rings/index/index_search.h"

#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit::app {

using namespace internal;

namespace {

constexpr Where kWhere{"index", ErrorKind::mismatch};

/// Opens the index for types that FAISS stores more of than the vectors.
VectorIndex open_faiss(const std::filesystem::path& folder, const IndexContents& contents,
                       std::string& note) {
  const std::filesystem::path path = faiss_file(folder);
  if (!contents.facts.seal.empty() && std::filesystem::exists(path)) {
    const SourceFile file(path, kWhere);
    if (IndexSeal::of_user().is_own(file, contents.facts.seal)) {
      VectorIndex index = VectorIndex::read(file);
      if (index.size() == contents.vectors.size() && index.dim() == contents.vectors.dim()) return index;
    }
  }
  note = text(
      "vectors.faiss was not written by this user or has changed; the FAISS index is rebuilt from the "
      "vectors; run vit index to store it");
  return VectorIndex::build(contents.facts.type, contents.vectors.read_all());
}

}  // namespace

std::vector<float> mean_vector(std::span<const std::span<const float>> vectors) {
  std::vector<float> mean(vectors.front().size());
  for (const std::span<const float> vector : vectors) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += vector[i];
  }
  normalize_vector(mean);
  return mean;
}

bool has_own_faiss_file(const std::filesystem::path& folder, const IndexFacts& facts, const IndexSeal& seal) {
  const std::filesystem::path path = faiss_file(folder);
  if (!std::filesystem::exists(path)) return false;
  return plain_type(facts.type) || seal.is_own(SourceFile(path, kWhere), facts.seal);
}

IndexSearch::IndexSearch(const std::filesystem::path& folder, const IndexContents& contents,
                         const std::string& parameters)
    : vectors_(contents.vectors) {
  if (!plain_type(contents.facts.type) && VectorIndex::is_available())
    faiss_.emplace(open_faiss(folder, contents, note_));
  if (parameters.empty()) return;
  if (!faiss_)
    fail_usage("--parameters: an index of type ", printable(contents.facts.type),
               plain_type(contents.facts.type) ? " has none"
                                               : " is scanned, because this build of vit has no FAISS");
  faiss_->set_parameters(parameters);
}

std::vector<std::vector<Hit>> IndexSearch::search(std::span<const std::span<const float>> queries,
                                                  std::size_t top, int threads) const {
  if (!faiss_) return scan(vectors_, queries, top, threads);
  std::vector<std::vector<Hit>> found;
  for (const std::span<const float> query : queries) found.push_back(faiss_->search(query, top, threads));
  return found;
}

}  // namespace vit::app
