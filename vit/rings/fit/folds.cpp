#include "vit/rings/fit/folds.h"

#include <limits>

namespace vit::internal {

std::vector<std::size_t> stratified_folds(std::span<const std::uint32_t> classes, std::size_t num_classes,
                                          std::size_t num_folds) {
  constexpr std::size_t kUnseen = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> counts(num_classes), rank(num_classes, kUnseen), order;
  for (const std::uint32_t c : classes) {
    if (rank[c] == kUnseen) {
      rank[c] = order.size();
      order.push_back(c);
    }
    ++counts[c];
  }
  // Rows sorted by class, in the order of their first rows, are distributed round robin: fold f takes the
  // positions f, f + num_folds, ... of that list, and from each class as many rows as it got positions.
  std::vector<std::vector<std::size_t>> left(num_classes, std::vector<std::size_t>(num_folds));
  std::size_t place = 0;
  for (const std::size_t c : order) {
    for (std::size_t i = 0; i < counts[c]; ++i) ++left[c][place++ % num_folds];
  }
  std::vector<std::size_t> folds, next(num_classes);
  folds.reserve(classes.size());
  for (const std::uint32_t c : classes) {
    while (left[c][next[c]] == 0) ++next[c];
    --left[c][next[c]];
    folds.push_back(next[c]);
  }
  return folds;
}

}  // namespace vit::internal
