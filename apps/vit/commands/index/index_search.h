// Searching an index: exactly, or by what FAISS made of its vectors.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/commands/index/index_folder.h"
#include "apps/vit/commands/index/scan.h"
#include "apps/vit/commands/index/vector_index.h"

namespace vit::app {

class IndexSearch {
 public:
  /// Plain types are scanned, as are all in a build without FAISS. Others are searched by FAISS: in
  /// vectors.faiss if this user wrote it as index.json says, else in what FAISS makes of the vectors anew,
  /// which note() says. `parameters`: VectorIndex::set_parameters(), "" = none. Throws UsageError where there
  /// is nothing to set.
  IndexSearch(const std::filesystem::path& folder, const IndexContents& contents,
              const std::string& parameters);

  /// "" or one line for the user.
  const std::string& note() const noexcept { return note_; }
  /// For each query (C), of length 1, the `top` most similar vectors, best first, of equal ones the first.
  std::vector<std::vector<Hit>> search(std::span<const std::span<const float>> queries, std::size_t top,
                                       int threads) const;

 private:
  const StoredVectors& vectors_;
  std::optional<VectorIndex> faiss_;
  std::string note_;
};

/// Whether the folder holds vectors.faiss as this user wrote it for the index.
bool has_own_faiss_file(const std::filesystem::path& folder, const IndexFacts& facts, const IndexSeal& seal);

}  // namespace vit::app
