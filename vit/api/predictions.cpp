#include "vit/outputs.h"

#include "vit/base/check.h"
#include "vit/head/classifier.h"

namespace vit {
using namespace internal;
namespace {

Prediction named(const RankedClass& ranked, std::span<const std::string> labels) {
  return {.index = ranked.index,
          .label = ranked.index < labels.size() ? labels[ranked.index] : std::to_string(ranked.index),
          .probability = ranked.probability,
          .logit = ranked.logit};
}

}  // namespace

std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top,
                                        std::span<const std::string> labels, ClassActivation activation) {
  std::vector<Prediction> predictions;
  for (const RankedClass& ranked : top_classes(logits, top, activation))
    predictions.push_back(named(ranked, labels));
  return predictions;
}

std::vector<Prediction> predictions_above(std::span<const float> logits, std::span<const float> thresholds,
                                          std::span<const std::string> labels, ClassActivation activation) {
  VIT_CHECK(thresholds.size() == logits.size(), (Where{"predictions_above", ErrorKind::argument}),
            thresholds.size(), " thresholds for ", logits.size(), " classes");
  std::vector<Prediction> predictions;
  for (const RankedClass& ranked : top_classes(logits, logits.size(), activation)) {
    if (ranked.probability >= thresholds[ranked.index]) predictions.push_back(named(ranked, labels));
  }
  return predictions;
}

}  // namespace vit
