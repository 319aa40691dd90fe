// Cross-validation folds of a training set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vit::internal {

/// The fold, 0 .. num_folds - 1, in which each row is held out: those of scikit-learn's
/// StratifiedKFold(num_folds) without shuffling. A class with fewer rows than folds is missing from some
/// folds. `classes` (n) of 0 .. num_classes - 1.
std::vector<std::size_t> stratified_folds(std::span<const std::uint32_t> classes, std::size_t num_classes,
                                          std::size_t num_folds);

}  // namespace vit::internal
