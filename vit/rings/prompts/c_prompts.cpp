// Prompts of the C interface.
#include "vit/c_prompts.h"

#include <memory>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/config.h"
#include "vit/prompts.h"

struct vit_prompt_model {
  std::shared_ptr<const vit::PromptModel> model;
};
struct vit_prompt_segmenter {
  vit::PromptSegmenter segmenter;
};
struct vit_prompt_image {
  std::shared_ptr<const vit::PromptFeatures> features;
};

using namespace vit;
using namespace vit::internal;

namespace {

PromptUse use_of(std::uint32_t uses) {
  switch (uses) {
    case VIT_PROMPT_PHRASES: return PromptUse::phrases;
    case VIT_PROMPT_OBJECTS: return PromptUse::objects;
    case VIT_PROMPT_PHRASES | VIT_PROMPT_OBJECTS: return PromptUse::both;
    default: fail(kCall, "uses is ", uses, ", expected VIT_PROMPT_PHRASES, VIT_PROMPT_OBJECTS or both");
  }
}

bool label_of(const std::int32_t* labels, std::size_t index) {
  if (labels == nullptr) return true;
  VIT_CHECK(labels[index] == 0 || labels[index] == 1, kCall, "label ", index, " is ", labels[index],
            ", expected 1 or 0");
  return labels[index] == 1;
}

Prompt prompt_of_caller(const vit_prompt& given) {
  Prompt out{.text = text_or_empty(given.text)};
  const std::span<const vit_box> boxes = span_of(given.boxes, given.num_boxes, "boxes");
  for (std::size_t i = 0; i < boxes.size(); ++i)
    out.boxes.push_back({.box = {boxes[i].x0, boxes[i].y0, boxes[i].x1, boxes[i].y1},
                         .positive = label_of(given.box_labels, i)});
  return out;
}

PromptOptions prompt_options_of_caller(const vit_prompt& given) {
  const auto number = [](double value, double fallback) {
    return value == 0.0 ? fallback : value < 0.0 ? 0.0 : value;
  };
  PromptOptions out;
  out.threshold = number(given.threshold, out.threshold);
  out.mask_threshold = number(given.mask_threshold, out.mask_threshold);
  out.rule = enum_of(given.rule, PromptRule::repository, "rule");
  return out;
}

void put_instances(vit_results& results, const PromptInstances& found, bool has_masks, ImageSize image) {
  const std::size_t count = found.scores.size();
  std::vector<float> boxes;
  for (const Box& box : found.boxes) {
    for (const double edge : {box.x0, box.y0, box.x1, box.y1}) boxes.push_back(static_cast<float>(edge));
  }
  const std::vector<std::int32_t> queries(found.queries.begin(), found.queries.end());
  results.column({VIT_BOXES}, VIT_FLOAT32).put(0, boxes.data(), {count, 4});
  results.column({VIT_SCORES}, VIT_FLOAT32).put(0, found.scores.data(), {count});
  results.column({VIT_QUERIES}, VIT_INT32).put(0, queries.data(), {count});
  if (has_masks)
    results.column({VIT_MASKS}, VIT_UINT8).put(0, found.masks.data(), {count, image.height, image.width});
}

ObjectPrompt object_of_caller(const vit_object_prompt& given) {
  ObjectPrompt out;
  VIT_CHECK(given.num_points <= SIZE_MAX / 2, kCall, "num_points is ", given.num_points);
  const std::span<const double> points = span_of(given.points, 2 * given.num_points, "points");
  for (std::size_t i = 0; i < given.num_points; ++i)
    out.points.push_back(
        {.x = points[2 * i], .y = points[2 * i + 1], .positive = label_of(given.point_labels, i)});
  if (given.box != nullptr) out.box = {given.box->x0, given.box->y0, given.box->x1, given.box->y1};
  if (given.mask != nullptr) {
    VIT_CHECK(given.mask_height != 0 && given.mask_width != 0, kCall, "a mask of ", given.mask_height, " x ",
              given.mask_width, " numbers");
    out.mask = {given.mask, Shape{given.mask_height, given.mask_width}};
  }
  return out;
}

}  // namespace

vit_status vit_prompt_model_load(const char* path, const vit_model_options* options,
                                 const vit_text_options* text_options, vit_prompt_model** model) {
  return guarded([&] {
    const std::string name = &object_at(path, "path");
    vit_prompt_model*& out = object_at(model, "model");
    out = new vit_prompt_model{
        PromptModel::load(name, model_options(options), internal::text_options(text_options))};
  });
}

void vit_prompt_model_free(vit_prompt_model* model) {
  delete model;
}

uint32_t vit_prompt_model_takes(const vit_prompt_model* model) {
  if (model == nullptr) return 0;
  const std::uint32_t phrases = model->model->takes(PromptUse::phrases) ? VIT_PROMPT_PHRASES : 0;
  return phrases | (model->model->takes(PromptUse::objects) ? VIT_PROMPT_OBJECTS : 0);
}

vit_status vit_prompt_segmenter_create(const vit_prompt_model* model, int32_t threads,
                                       vit_prompt_segmenter** segmenter) {
  return guarded([&] {
    const auto& from = object_at(model, "model").model;
    vit_prompt_segmenter*& out = object_at(segmenter, "segmenter");
    out = new vit_prompt_segmenter{PromptSegmenter(from, {.threads = threads})};
  });
}

void vit_prompt_segmenter_free(vit_prompt_segmenter* segmenter) {
  delete segmenter;
}

vit_status vit_prompt_segmenter_encode(vit_prompt_segmenter* segmenter, const vit_input* input, uint32_t uses,
                                       vit_prompt_image** image) {
  return guarded([&] {
    PromptSegmenter& with = object_at(segmenter, "segmenter").segmenter;
    vit_prompt_image*& out = object_at(image, "image");
    const InputList inputs(&object_at(input, "input"), 1, with.model().image()->config().image.num_channels);
    out = new vit_prompt_image{with.encode(inputs[0], use_of(uses))};
  });
}

void vit_prompt_image_free(vit_prompt_image* image) {
  delete image;
}

vit_status vit_prompt_image_size(const vit_prompt_image* image, size_t* height, size_t* width,
                                 size_t* num_bytes) {
  return guarded([&] {
    const PromptFeatures& features = *object_at(image, "image").features;
    if (height != nullptr) *height = features.image().height;
    if (width != nullptr) *width = features.image().width;
    if (num_bytes != nullptr) *num_bytes = features.bytes();
  });
}

vit_status vit_prompt_segmenter_run(vit_prompt_segmenter* segmenter, const vit_prompt_image* image,
                                    const vit_prompt* prompt, vit_results* results) {
  return guarded([&] {
    PromptSegmenter& with = object_at(segmenter, "segmenter").segmenter;
    const PromptFeatures& features = *object_at(image, "image").features;
    vit_results& into = object_at(results, "results");
    into.clear();
    const vit_prompt given = options_of(&object_at(prompt, "prompt"), "vit_prompt");
    const Prompt asked = prompt_of_caller(given);
    const PromptOptions options = prompt_options_of_caller(given);
    VIT_CHECK(given.gives >= VIT_PROMPT_GIVES_MASKS && given.gives <= VIT_PROMPT_GIVES_PIXELS, kCall,
              "gives is ", given.gives, ", an undefined number");
    return into.fill(1, [&] {
      if (given.gives == VIT_PROMPT_GIVES_PIXELS) {
        const Tensor<float> found = with.pixel_probabilities(features, asked, options);
        into.column({VIT_PROBABILITIES}, VIT_FLOAT32)
            .put(0, found.data(), {std::size_t{1}, found.dim(0), found.dim(1)});
      } else {
        const bool has_masks = given.gives == VIT_PROMPT_GIVES_MASKS;
        put_instances(
            into, has_masks ? with.segment(features, asked, options) : with.detect(features, asked, options),
            has_masks, features.image());
      }
      into.set_size(0, features.image());
    });
  });
}

vit_status vit_prompt_segmenter_object(vit_prompt_segmenter* segmenter, const vit_prompt_image* image,
                                       const vit_object_prompt* prompt, vit_results* results) {
  return guarded([&] {
    PromptSegmenter& with = object_at(segmenter, "segmenter").segmenter;
    const PromptFeatures& features = *object_at(image, "image").features;
    vit_results& into = object_at(results, "results");
    into.clear();
    const vit_object_prompt given = options_of(&object_at(prompt, "prompt"), "vit_object_prompt");
    const ObjectPrompt asked = object_of_caller(given);
    const ObjectOptions options{.multimask = given.single_mask == 0,
                                .rule = enum_of(given.rule, PromptRule::repository, "rule")};
    return into.fill(1, [&] {
      const ObjectMasks found = with.segment_object(features, asked, options);
      into.column({VIT_MASKS}, VIT_UINT8).put(0, found.masks.data(), found.masks.shape());
      into.column({VIT_SCORES}, VIT_FLOAT32).put(0, found.scores.data(), {found.scores.size()});
      into.column({VIT_MASK_LOGITS}, VIT_FLOAT32).put(0, found.logits.data(), found.logits.shape());
      into.column({VIT_OBJECT_LOGITS}, VIT_FLOAT32).put(0, &found.object_logit, {std::size_t{1}});
      into.set_size(0, features.image());
    });
  });
}
