// From logits to probabilities and the best classes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/choices.h"

namespace vit::internal {

struct RankedClass {
  std::size_t index;
  float probability;
  float logit;
};

/// softmax(logits) in double, rounded to float; logits (classes) of any size. Not-a-number in gives
/// not-a-number out.
std::vector<float> softmax(std::span<const float> logits);

/// Softmax over all, or sigmoid of each in double, rounded to float.
std::vector<float> probabilities(std::span<const float> logits, ClassActivation activation);

/// The `count` classes (all where fewer) with the largest logits, best first; equal logits in index order,
/// not-a-number last.
std::vector<RankedClass> top_classes(std::span<const float> logits, std::size_t count,
                                     ClassActivation activation = ClassActivation::softmax);

}  // namespace vit::internal
