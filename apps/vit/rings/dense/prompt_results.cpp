#include "apps/vit/rings/dense/prompt_results.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "apps/vit/rings/dense/coco_files.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

Box box_of_mask(TensorView<const std::uint8_t> mask) {
  const PixelFrame frame = frame_of(mask);
  const auto x = static_cast<double>(frame.x), y = static_cast<double>(frame.y);
  return {x, y, x + static_cast<double>(frame.width), y + static_cast<double>(frame.height)};
}

void begin(const ClassPrompts& asked) {
  if (asked.before_each) asked.before_each();
}

}  // namespace

FoundInstances find_instances(PromptSegmenter& segmenter, const PromptFeatures& image,
                              const ClassPrompts& asked) {
  FoundInstances out{.found = {.segments = {}, .boxes = {}, .masks = {}, .image = image.image()}};
  PromptOptions options = asked.options;
  for (const Prompt& prompt : asked.prompts) {
    begin(asked);
    out.kept.push_back(segmenter.segment(image, prompt, options));
    if (options.max_mask_bytes == 0) continue;
    const std::size_t used = out.kept.back().masks.num_elements();
    options.max_mask_bytes = std::max(options.max_mask_bytes - used, std::size_t{1});
  }
  for (std::size_t index = 0; index < out.kept.size(); ++index) {
    const PromptInstances& instances = out.kept[index];
    for (std::size_t i = 0; i < instances.scores.size(); ++i) {
      const TensorView<const std::uint8_t> mask = instances.masks.view()[i];
      out.found.segments.push_back({.id = 0,
                                    .index = index,
                                    .label = asked.labels[index],
                                    .score = instances.scores[i],
                                    .area = area_of(mask)});
      out.found.boxes.push_back(instances.boxes[i]);
      out.found.masks.push_back(mask);
    }
  }
  out.found.sort();
  return out;
}

std::vector<Detection> find_boxes(PromptSegmenter& segmenter, const PromptFeatures& image,
                                  const ClassPrompts& asked) {
  std::vector<Detection> found;
  for (std::size_t index = 0; index < asked.prompts.size(); ++index) {
    begin(asked);
    const PromptInstances instances = segmenter.detect(image, asked.prompts[index], asked.options);
    for (std::size_t i = 0; i < instances.scores.size(); ++i)
      found.push_back({.index = index,
                       .label = asked.labels[index],
                       .score = instances.scores[i],
                       .box = instances.boxes[i]});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Detection::score);
  return found;
}

SegmentMap find_pixels(PromptSegmenter& segmenter, const PromptFeatures& image, const ClassPrompts& asked) {
  const ImageSize size = image.image();
  SegmentMap map{.map = Tensor<std::int32_t>(Shape{size.height, size.width}), .segments = {}};
  std::ranges::fill(map.map.flat(), -1);
  Tensor<float> best(Shape{size.height, size.width});
  std::ranges::fill(best.flat(), static_cast<float>(asked.options.mask_threshold));
  for (std::size_t index = 0; index < asked.prompts.size(); ++index) {
    begin(asked);
    const Tensor<float> found = segmenter.pixel_probabilities(image, asked.prompts[index], asked.options);
    for (std::size_t i = 0; i < found.num_elements(); ++i) {
      if (!(found.data()[i] > best.data()[i])) continue;
      best.data()[i] = found.data()[i];
      map.map.data()[i] = static_cast<std::int32_t>(index);
    }
  }
  for (std::size_t index = 0; index < asked.prompts.size(); ++index) {
    const auto id = static_cast<std::int32_t>(index);
    const auto area = static_cast<std::size_t>(std::ranges::count(map.map.flat(), id));
    if (area != 0)
      map.segments.push_back(
          {.id = id, .index = index, .label = asked.labels[index], .score = std::nullopt, .area = area});
  }
  return map;
}

std::vector<NamedArray> find_raw(PromptSegmenter& segmenter, const PromptFeatures& image,
                                 const ClassPrompts& asked) {
  std::vector<PromptLogits> all;
  for (const Prompt& prompt : asked.prompts) {
    begin(asked);
    all.push_back(segmenter.logits(image, prompt, asked.options));
  }
  const std::size_t classes = all.size(), queries = all.front().classes.num_elements(),
                    edge = all.front().masks.dim(1);
  std::vector<NamedArray> arrays;
  const auto join = [&](const char* name, std::vector<std::size_t> shape, const auto& part) {
    NamedArray& out = arrays.emplace_back(NamedArray::of_rows(name, std::move(shape)));
    for (const PromptLogits& logits : all) {
      const auto bytes = std::as_bytes(part(logits));
      out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
    }
  };
  join("class_logits", {classes, queries}, [](const PromptLogits& l) { return l.classes.flat(); });
  join("presence_logits", {classes}, [](const PromptLogits& l) { return std::span(&l.presence, 1); });
  join("boxes", {classes, queries, 4}, [](const PromptLogits& l) { return l.boxes.flat(); });
  join("mask_logits", {classes, queries, edge, edge}, [](const PromptLogits& l) { return l.masks.flat(); });
  join("semantic_logits", {classes, edge, edge}, [](const PromptLogits& l) { return l.semantic.flat(); });
  return arrays;
}

FoundMasks masks_of_objects(std::span<const ObjectMasks> objects, bool all_masks, ImageSize image) {
  FoundMasks found{.segments = {}, .boxes = {}, .masks = {}, .image = image};
  for (std::size_t index = 0; index < objects.size(); ++index) {
    const ObjectMasks& object = objects[index];
    std::vector<std::size_t> order(object.scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return object.scores[i]; });
    if (!all_masks) order.resize(1);
    for (const std::size_t i : order) {
      const TensorView<const std::uint8_t> mask = object.masks.view()[i];
      found.segments.push_back({.id = static_cast<std::int32_t>(found.segments.size()),
                                .index = index,
                                .label = text("object ", index),
                                .score = object.scores[i],
                                .area = area_of(mask)});
      found.boxes.push_back(box_of_mask(mask));
      found.masks.push_back(mask);
    }
  }
  return found;
}

std::vector<NamedArray> raw_of_objects(std::span<const ObjectMasks> objects) {
  std::size_t count = 0;
  for (const ObjectMasks& object : objects) count += object.scores.size();
  const std::size_t edge = objects.front().logits.dim(1);
  NamedArray masks = NamedArray::of_rows("mask_logits", {count, edge, edge}),
             scores = NamedArray::of_rows("scores", {count}),
             logits = NamedArray::of_rows("object_logits", {objects.size()});
  for (const ObjectMasks& object : objects) {
    const auto bytes = std::as_bytes(object.logits.flat());
    masks.bytes.insert(masks.bytes.end(), bytes.begin(), bytes.end());
    for (const float score : object.scores) scores.push(score);
    logits.push(object.object_logit);
  }
  return {std::move(masks), std::move(scores), std::move(logits)};
}

}  // namespace vit::app
