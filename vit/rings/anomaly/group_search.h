// Finds the nearest rows of a grouped set without most of the products. The products of all pairs are more
// arithmetic than a Vision Transformer needs for the features, so a query is compared with those rows only of
// which bounds do not show that another one is nearer:
//   centers   the group whose center is nearest is compared: the result reaches this product at least
//   groups    left out where even the side of its ball that is nearest would not reach it
//   sketches  of the groups that are left; the largest product in a block of rows bounds theirs
//   rows      of the blocks that are left, the most promising one of each query first
// Bounds count the rounding of what they bound (RowSketch::slack), and a bound equal to the product found so
// far excludes nothing: the result is that of all products, bit by bit, and of equal ones the first.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "vit/base/arena.h"
#include "vit/rings/anomaly/nearest_rows.h"

namespace vit::internal {

/// The search of a few queries, by one thread.
class GroupSearch {
 public:
  static constexpr std::size_t kMostQueries = 512;

  /// `rows` in the order of `groups`; `out` (n) holds no product yet. `memory` is used while the search
  /// lives.
  GroupSearch(const RowGroups& groups, const PackedRows& rows, TensorView<const float> queries,
              std::span<NearestRow> out, RowRange left_out, Arena& memory);
  void run();
  /// Products of a query with a block of rows that were computed.
  std::size_t num_compared() const noexcept { return num_compared_; }

 private:
  /// A block of rows that may hold the nearest one of a query.
  struct Candidate {
    std::uint32_t block = 0;
    std::uint32_t query = 0;
    float bound = 0;
  };

  /// What is known of a query.
  struct Query {
    double square = 0;                                        // its product with itself
    double slack = 0;                                         // RowSketch::slack of it and the rows
    double found = -std::numeric_limits<double>::infinity();  // its largest product so far
    std::size_t group = 0;  // that of the nearest center, which is compared first
  };

  void compare_centers();
  void compare_sketches();
  void compare_sketches_of(std::size_t group, std::span<const std::uint32_t> queries);
  void compare_most_promising();
  /// Candidates of a block follow each other.
  void compare(std::span<const Candidate> candidates);
  void compare_block(std::size_t block, std::span<const std::uint32_t> queries);
  bool may_reach(std::uint32_t query, float bound) const;

  const RowGroups& groups_;
  const PackedRows& rows_;
  TensorView<const float> asked_;  // (n, C)
  std::span<NearestRow> out_;
  RowRange left_out_;
  TensorView<float> sketches_;           // (n, RowSketch::kWidth)
  TensorView<float> centers_;            // (G, n) products with centers
  TensorView<float> gathered_;           // rows of queries that are compared together
  TensorView<float> gathered_sketches_;  // ... or their sketches
  TensorView<float> products_;
  std::vector<Query> queries_;  // (n)
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> chosen_;  // scratch: those that are compared together
  std::size_t num_compared_ = 0;
};

}  // namespace vit::internal
