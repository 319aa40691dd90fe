// Searches an index: exactly, or with FAISS.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/rings/index/index_folder.h"
#include "apps/vit/rings/index/scan.h"
#include "apps/vit/rings/index/vector_index.h"

namespace vit::app {

class IndexSearch {
 public:
  /// Plain types are scanned, as are all types in a build without FAISS. Others are searched by FAISS: in
  /// vectors.faiss if this user wrote it according to index.json, else in an index rebuilt from the vectors,
  /// which note() reports. `parameters`: VectorIndex::set_parameters(), "" = none. Throws UsageError if there
  /// is nothing to set.
  IndexSearch(const std::filesystem::path& folder, const IndexContents& contents,
              const std::string& parameters);

  /// One line for the user, or "".
  const std::string& note() const noexcept { return note_; }
  /// For each query (C), of length 1, the `top` most similar vectors, best first; ties in index order.
  std::vector<std::vector<Hit>> search(std::span<const std::span<const float>> queries, std::size_t top,
                                       int threads) const;

 private:
  const StoredVectors& vectors_;
  std::optional<VectorIndex> faiss_;
  std::string note_;
};

/// The mean of vectors of length 1, of length 1: what is searched for if queries are combined.
std::vector<float> mean_vector(std::span<const std::span<const float>> vectors);

/// Whether the folder has a vectors.faiss that this user wrote for the index.
bool has_own_faiss_file(const std::filesystem::path& folder, const IndexFacts& facts, const IndexSeal& seal);

}  // namespace vit::app
