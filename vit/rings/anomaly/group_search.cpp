#include "vit/rings/anomaly/group_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vit::internal {
namespace {

constexpr std::size_t kQueriesAtOnce = 126;  // that are gathered for one product
constexpr std::size_t kBlocks = RowGroups::kGroup / RowGroups::kBlock;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

double square_of(const float* row, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return sum;
}

/// The rows `chosen` of `from`, one after the other in `to`.
TensorView<const float> gather(TensorView<const float> from, std::span<const std::uint32_t> chosen,
                               TensorView<float> to) {
  for (std::size_t i = 0; i < chosen.size(); ++i)
    std::copy_n(from.row(chosen[i]), from.num_columns(), to.row(i));
  return to.part(0, chosen.size());
}

}  // namespace

GroupSearch::GroupSearch(const RowGroups& groups, const PackedRows& rows, TensorView<const float> queries,
                         std::span<NearestRow> out, RowRange left_out, Arena& memory)
    : groups_(groups), rows_(rows), asked_(queries), out_(out), left_out_(left_out), queries_(out.size()) {
  memory.lay_out([&](Arena::Taker& take) {
    sketches_ = take.take<float>(Shape{out.size(), RowSketch::kWidth});
    centers_ = take.take<float>(Shape{groups.balls().size(), out.size()});
    gathered_ = take.take<float>(Shape{kQueriesAtOnce, queries.num_columns()});
    gathered_sketches_ = take.take<float>(Shape{kQueriesAtOnce, RowSketch::kWidth});
    products_ = take.take<float>(Shape{kQueriesAtOnce, RowGroups::kGroup});
  });
}

void GroupSearch::run() {
  compare_centers();
  compare_sketches();
  compare_most_promising();
  compare(candidates_);
}

void GroupSearch::compare_centers() {
  groups_.sketch().apply(asked_, sketches_);
  // Centers ask and queries are asked, so that what belongs to a center lies together.
  const PackedRows packed(sketches_, {}, rows_.kernels(), 1);
  packed.multiply(groups_.centers(), 0, queries_.size(), centers_.data(), queries_.size());
  const std::span<const RowGroups::Ball> balls = groups_.balls();
  std::vector<float> nearest(queries_.size(), kInfinity);  // squares of distances without that of the query
  for (std::size_t g = 0; g < balls.size(); ++g) {
    const float* const products = centers_.row(g);
    const auto square = static_cast<float>(balls[g].center_square);
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      const float distance = square - 2 * products[q];
      if (distance < nearest[q]) nearest[q] = distance, queries_[q].group = g;
    }
  }
  std::vector<Candidate> first;
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    Query& query = queries_[q];
    query.square = square_of(sketches_.row(q), RowSketch::kWidth);
    query.slack =
        RowSketch::slack(asked_.num_columns(), std::sqrt(std::max(query.square, groups_.largest_square())));
    for (std::size_t b = 0; b < kBlocks; ++b)
      first.push_back({.block = static_cast<std::uint32_t>(query.group * kBlocks + b),
                       .query = static_cast<std::uint32_t>(q),
                       .bound = kInfinity});
  }
  std::ranges::stable_sort(first, {}, &Candidate::block);
  compare(first);
}

void GroupSearch::compare_sketches() {
  // x . r <= (|x|^2 + |r|^2 - |sketch(x) - sketch(r)|^2) / 2, so that a row that reaches a product lies
  // within this distance.
  std::vector<double> reach(queries_.size()), square(queries_.size());
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    const Query& query = queries_[q];
    const double square_within = query.square + groups_.largest_square() - 2 * (query.found - query.slack);
    reach[q] = std::sqrt(std::max(square_within, 0.0));
    square[q] = query.square - 2 * query.slack;
  }
  const std::span<const RowGroups::Ball> balls = groups_.balls();
  std::vector<std::uint32_t> near(queries_.size());
  for (std::size_t g = 0; g < balls.size(); ++g) {
    const float* const products = centers_.row(g);
    std::size_t count = 0;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      const double distance = square[q] + balls[g].center_square - 2 * static_cast<double>(products[q]);
      const double within = reach[q] + balls[g].radius;
      near[count] = static_cast<std::uint32_t>(q);
      count += !(distance > within * within) && g != queries_[q].group ? 1 : 0;
    }
    for (std::size_t first = 0; first < count; first += kQueriesAtOnce)
      compare_sketches_of(g, std::span(near).subspan(first, std::min(kQueriesAtOnce, count - first)));
  }
}

void GroupSearch::compare_sketches_of(std::size_t group, std::span<const std::uint32_t> queries) {
  const std::size_t begin = group * RowGroups::kGroup,
                    end = std::min(begin + RowGroups::kGroup, rows_.size());
  groups_.sketches().multiply(gather(sketches_, queries, gathered_sketches_), begin, end, products_.data(),
                              RowGroups::kGroup);
  chosen_.clear();
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (may_reach(queries[i], largest_of(products_.row(i), end - begin)))
      chosen_.push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t first = begin; first < end; first += RowGroups::kBlock) {
    const std::size_t count = std::min(RowGroups::kBlock, end - first);
    for (const std::uint32_t i : chosen_) {
      const float bound = largest_of(products_.row(i) + (first - begin), count);
      if (may_reach(queries[i], bound))
        candidates_.push_back({.block = static_cast<std::uint32_t>(first / RowGroups::kBlock),
                               .query = queries[i],
                               .bound = bound});
    }
  }
}

void GroupSearch::compare_most_promising() {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> best(queries_.size(), kNone);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    std::size_t& of_query = best[candidates_[i].query];
    if (of_query == kNone || candidates_[i].bound > candidates_[of_query].bound) of_query = i;
  }
  std::vector<Candidate> first;
  for (const std::size_t i : best) {
    if (i == kNone) continue;
    first.push_back(candidates_[i]);
    candidates_[i].bound = -kInfinity;  // need not be compared again, unless all its rows are left out
  }
  std::ranges::stable_sort(first, {}, &Candidate::block);
  compare(first);
}

/// Not if it is certain that no row of this bound has the product that was found. A bound that is NaN is
/// none.
bool GroupSearch::may_reach(std::uint32_t query, float bound) const {
  return !(static_cast<double>(bound) + queries_[query].slack < queries_[query].found);
}

void GroupSearch::compare(std::span<const Candidate> candidates) {
  for (std::size_t i = 0; i < candidates.size();) {
    const std::uint32_t block = candidates[i].block;
    chosen_.clear();
    for (; i < candidates.size() && candidates[i].block == block && chosen_.size() < kQueriesAtOnce; ++i) {
      if (may_reach(candidates[i].query, candidates[i].bound)) chosen_.push_back(candidates[i].query);
    }
    if (!chosen_.empty()) compare_block(block, chosen_);
  }
}

void GroupSearch::compare_block(std::size_t block, std::span<const std::uint32_t> queries) {
  const std::size_t begin = block * RowGroups::kBlock,
                    end = std::min(begin + RowGroups::kBlock, rows_.size());
  if (begin >= end) return;  // the last group may have fewer blocks
  num_compared_ += queries.size();
  rows_.multiply(gather(asked_, queries, gathered_), begin, end, products_.data(), RowGroups::kGroup);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const float* const products = products_.row(i);
    NearestRow& best = out_[queries[i]];
    if (largest_of(products, end - begin) < best.product) continue;
    for (std::size_t place = begin; place < end; ++place) {
      const float product = products[place - begin];
      const std::size_t row = groups_.order()[place];
      const bool is_nearer = product > best.product || (product == best.product && row < best.row);
      if (is_nearer && !left_out_.contains(row)) best = {.row = row, .product = product};
    }
    queries_[queries[i]].found = static_cast<double>(best.product);
  }
}

}  // namespace vit::internal
