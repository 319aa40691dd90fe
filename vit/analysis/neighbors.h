// Votes of the nearest vectors of a training set, as DINO evaluates features: cosine, and weights exp(cosine
// / 0.07).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::internal {

/// Some rows of a matrix of features with their classes; `rows` may be all. Nothing is copied.
struct LabeledRows {
  TensorView<const float> features;        // (n, C)
  std::span<const std::uint32_t> classes;  // (n)
  std::span<const std::size_t> rows;       // indices of those used
};

inline constexpr double kVoteTemperature = 0.07;

/// Sums of votes for each class: of the `count` rows with the largest products with `vector` (C), earlier
/// ones first for ties. Rows and vector of length 1.
std::vector<double> count_votes(const LabeledRows& data, std::span<const float> vector,
                                std::size_t num_classes, std::size_t count);

/// The class with the most votes, ties: the first, for each of the rows `asked` of data.features.
std::vector<std::uint32_t> vote_of_neighbors(const LabeledRows& data, std::span<const std::size_t> asked,
                                             std::size_t num_classes, std::size_t count, int threads);

}  // namespace vit::internal
