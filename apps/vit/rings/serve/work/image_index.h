// An index of `vit index`: which of its images are most similar to others, or to texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/outputs/run_facts.h"

namespace vit::app {

/// Threads may share it.
class ImageIndex {
 public:
  /// Throws Error as reading an index does.
  explicit ImageIndex(const std::filesystem::path& folder);
  ~ImageIndex();

  struct Match {
    std::size_t number = 0;  // of the image in the index
    std::string file;
    float score = 0;  // cosine
  };
  /// What made its vectors.
  const RunModel& model() const noexcept;
  /// The name of an image; "" for a number that none has.
  std::string file(std::size_t number) const;
  /// Whether a folder is an index.
  static bool is_index(const std::filesystem::path& folder);
  /// Best first. `vector` need not be normalized.
  std::vector<Match> nearest(std::span<const float> vector, std::size_t top) const;
  /// The same for each of several vectors, or for their mean. `parameters`: those of vit search --parameters,
  /// "" = none; a search with some has the index in memory once more. Throws UsageError for those that the
  /// index does not have.
  std::vector<std::vector<Match>> nearest(std::vector<std::vector<float>> vectors, bool each, std::size_t top,
                                          const std::string& parameters = "") const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit::app
