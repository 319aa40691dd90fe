// From the logits of an image to named classes: the most probable ones, or all from a threshold on.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vit/base/activation.h"
#include "vit/base/error.h"

namespace vit {

/// A class and how probable it is.
struct Prediction {
  std::size_t index;  // class
  std::string label;
  float probability;  // softmax over all classes, or sigmoid of this one
  float logit;
};

/// The `top` most probable classes of a row of logits (classes), best first; equal logits in index order. A
/// class without a name in `labels` is called by its number.
VIT_API std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top,
                                                std::span<const std::string> labels = {},
                                                ClassActivation activation = ClassActivation::softmax);

/// The classes whose probability is at least their threshold, best first; equal logits in index order.
/// `thresholds` (classes): an infinite one leaves its class out. Throws Error for another number of them.
VIT_API std::vector<Prediction> predictions_above(std::span<const float> logits,
                                                  std::span<const float> thresholds,
                                                  std::span<const std::string> labels = {},
                                                  ClassActivation activation = ClassActivation::softmax);

}  // namespace vit
