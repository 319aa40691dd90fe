#include "vit/head/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vit/base/check.h"
#include "vit/base/rounded.h"

namespace vit::internal {

std::vector<float> softmax(std::span<const float> logits) {
  std::vector<float> out(logits.size());
  if (logits.empty()) return out;
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    out[i] = static_cast<float>(std::exp(static_cast<double>(logits[i]) - largest) / sum);
  }
  return out;
}

std::vector<float> probabilities(std::span<const float> logits, ClassActivation activation) {
  check_choice("probabilities", "activation", activation, ClassActivation::none);
  if (activation == ClassActivation::softmax) return softmax(logits);
  if (activation == ClassActivation::none) return {logits.begin(), logits.end()};
  std::vector<float> out;
  out.reserve(logits.size());
  for (const float logit : logits) out.push_back(rounded_sigmoid(logit));
  return out;
}

std::vector<RankedClass> top_classes(std::span<const float> logits, std::size_t count,
                                     ClassActivation activation) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_before = [&](std::size_t a, std::size_t b) {
    const bool a_is_nan = std::isnan(logits[a]), b_is_nan = std::isnan(logits[b]);
    if (a_is_nan != b_is_nan) return b_is_nan;
    return a_is_nan || logits[a] == logits[b] ? a < b : logits[a] > logits[b];
  };
  const std::size_t kept = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), is_before);
  const std::vector<float> values = probabilities(logits, activation);
  std::vector<RankedClass> top;
  for (std::size_t i = 0; i < kept; ++i) top.push_back({order[i], values[order[i]], logits[order[i]]});
  return top;
}

}  // namespace vit::internal
