// From logits to probabilities and the best classes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vit {

struct RankedClass {
  std::size_t index;
  float probability;
  float logit;
};

/// softmax(logits) in double, rounded to float; logits (classes) of any size. Not-a-number in gives
/// not-a-number out.
std::vector<float> softmax(std::span<const float> logits);

/// The `count` classes (all where fewer) with the largest logits, best first; equal logits in index order,
/// not-a-number last.
std::vector<RankedClass> top_classes(std::span<const float> logits, std::size_t count);

}  // namespace vit
