// What prompts find in an image that was encoded: the results of the commands and of the server alike.
// Letters: n instances, Q queries, (h, w) = a mask as the model gives it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/rings/dense/prompt_masks.h"
#include "vit/boxes.h"
#include "vit/prompts.h"

namespace vit::app {

/// A prompt for each class, and how its queries become results.
struct ClassPrompts {
  std::vector<std::string> labels;  // of the classes
  std::vector<Prompt> prompts;
  PromptOptions options{};
  std::function<void()> before_each{};  // called before each prompt; may throw
};

/// The instances of all classes in falling score.
struct FoundInstances {
  FoundMasks found;                     // whose masks are those of `kept`
  std::vector<PromptInstances> kept{};  // of each class
};
FoundInstances find_instances(PromptSegmenter& segmenter, const PromptFeatures& image,
                              const ClassPrompts& asked);
/// Their boxes, without work on masks.
std::vector<Detection> find_boxes(PromptSegmenter& segmenter, const PromptFeatures& image,
                                  const ClassPrompts& asked);
/// The most probable class of each pixel among those above the threshold of masks.
SegmentMap find_pixels(PromptSegmenter& segmenter, const PromptFeatures& image, const ClassPrompts& asked);
/// class_logits (K, Q), presence_logits (K), boxes (K, Q, 4), mask_logits (K, Q, h, w), semantic_logits
/// (K, h, w) of K classes.
std::vector<NamedArray> find_raw(PromptSegmenter& segmenter, const PromptFeatures& image,
                                 const ClassPrompts& asked);

/// The masks of objects, each object's in falling score, or its best; they remain those of `objects`.
FoundMasks masks_of_objects(std::span<const ObjectMasks> objects, bool all_masks, ImageSize image);
/// mask_logits (n, h, w), scores (n) and object_logits of all masks of objects, one after the other.
std::vector<NamedArray> raw_of_objects(std::span<const ObjectMasks> objects);

}  // namespace vit::app
