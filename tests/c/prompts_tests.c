/* Prompts: phrases, boxes and objects of an image that is looked at once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"
#include "vit/c_prompts.h"

static void test_phrases(vit_prompt_segmenter* segmenter, const vit_prompt_image* image, size_t height,
                         size_t width, vit_results* results) {
  vit_prompt prompt;
  vit_box boxes[2] = {{10, 8, 40, 30}, {50, 5, 70, 20}};
  int32_t labels[2] = {1, 0};
  vit_array masks, found, scores, queries;
  size_t i, count;

  memset(&prompt, 0, sizeof prompt);
  prompt.struct_size = sizeof prompt;
  FAILS(vit_prompt_segmenter_run(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  prompt.text = "a cat";
  prompt.threshold = -1.0;
  OK(vit_prompt_segmenter_run(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_MASKS, 0, &masks));
  OK(vit_results_one(results, 0, VIT_BOXES, 0, &found));
  OK(vit_results_one(results, 0, VIT_SCORES, 0, &scores));
  OK(vit_results_one(results, 0, VIT_QUERIES, 0, &queries));
  count = masks.shape[0];
  CHECK(count > 1 && masks.ndim == 3 && masks.dtype == VIT_UINT8);
  CHECK(masks.shape[1] == height && masks.shape[2] == width);
  CHECK(found.shape[0] == count && found.shape[1] == 4 && scores.shape[0] == count);
  CHECK(queries.dtype == VIT_INT32 && queries.shape[0] == count);
  for (i = 1; i < count; ++i) CHECK(((const float*)scores.data)[i] <= ((const float*)scores.data)[i - 1]);
  prompt.threshold = 1.0;
  OK(vit_prompt_segmenter_run(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_MASKS, 0, &masks));
  CHECK(masks.shape[0] == 0);

  prompt.text = NULL;
  prompt.boxes = boxes;
  prompt.box_labels = labels;
  prompt.num_boxes = 2;
  prompt.threshold = 0.05;
  prompt.gives = VIT_PROMPT_GIVES_BOXES;
  OK(vit_prompt_segmenter_run(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_SCORES, 0, &scores));
  CHECK(scores.shape[0] > 0);
  FAILS(vit_results_one(results, 0, VIT_MASKS, 0, &masks), VIT_ERROR_ARGUMENT);
  prompt.gives = VIT_PROMPT_GIVES_PIXELS;
  OK(vit_prompt_segmenter_run(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_PROBABILITIES, 0, &found));
  CHECK(found.ndim == 3 && found.shape[0] == 1 && found.shape[1] == height && found.shape[2] == width);
  labels[1] = 2;
  FAILS(vit_prompt_segmenter_run(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  labels[1] = 0;
  prompt.gives = 3;
  FAILS(vit_prompt_segmenter_run(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  prompt.gives = 0;
  prompt.rule = 2;
  FAILS(vit_prompt_segmenter_run(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  prompt.rule = VIT_PROMPT_RULE_REPOSITORY;
  boxes[0].x1 = 5;
  FAILS(vit_prompt_segmenter_run(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  FAILS(vit_prompt_segmenter_run(segmenter, image, NULL, results), VIT_ERROR_ARGUMENT);
  FAILS(vit_prompt_segmenter_run(segmenter, NULL, &prompt, results), VIT_ERROR_ARGUMENT);
}

static void test_objects(vit_prompt_segmenter* segmenter, const vit_prompt_image* image, size_t height,
                         size_t width, vit_results* results) {
  vit_object_prompt prompt;
  double points[4] = {20, 15, 60, 40};
  int32_t labels[2] = {1, 0};
  vit_box box = {10, 8, 40, 30};
  vit_array masks, scores, logits, object;
  float mask[24 * 24];

  memset(&prompt, 0, sizeof prompt);
  prompt.struct_size = sizeof prompt;
  FAILS(vit_prompt_segmenter_object(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  prompt.points = points;
  prompt.point_labels = labels;
  prompt.num_points = 2;
  OK(vit_prompt_segmenter_object(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_MASKS, 0, &masks));
  OK(vit_results_one(results, 0, VIT_SCORES, 0, &scores));
  OK(vit_results_one(results, 0, VIT_MASK_LOGITS, 0, &logits));
  OK(vit_results_one(results, 0, VIT_OBJECT_LOGITS, 0, &object));
  CHECK(masks.shape[0] == 3 && masks.shape[1] == height && masks.shape[2] == width);
  CHECK(scores.shape[0] == 3 && logits.shape[1] == 24 && logits.shape[2] == 24);
  CHECK(object.shape[0] == 1 && isfinite(((const float*)object.data)[0]));
  memcpy(mask, logits.data, sizeof mask);
  prompt.mask = mask;
  prompt.mask_height = prompt.mask_width = 24;
  prompt.box = &box;
  prompt.single_mask = 1;
  OK(vit_prompt_segmenter_object(segmenter, image, &prompt, results));
  OK(vit_results_one(results, 0, VIT_MASKS, 0, &masks));
  CHECK(masks.shape[0] == 1);
  prompt.mask_width = 0;
  FAILS(vit_prompt_segmenter_object(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  prompt.mask = NULL;
  points[0] = NAN;
  FAILS(vit_prompt_segmenter_object(segmenter, image, &prompt, results), VIT_ERROR_ARGUMENT);
  FAILS(vit_prompt_segmenter_object(NULL, image, &prompt, results), VIT_ERROR_ARGUMENT);
}

void test_prompts(const char* golden) {
  char path[4096];
  vit_prompt_model *model = NULL, *none = NULL;
  vit_prompt_segmenter *segmenter = NULL, *other = NULL;
  vit_prompt_image *image = NULL, *only = NULL;
  vit_input input;
  vit_results* results = NULL;
  size_t height = 0, width = 0, bytes = 0;
  vit_object_prompt object;
  double point[2] = {3, 4};

  snprintf(path, sizeof path, "%s/dense/hf-eomt", golden);
  FAILS(vit_prompt_model_load(path, NULL, NULL, &none), VIT_ERROR_UNSUPPORTED);
  FAILS(vit_prompt_model_load(NULL, NULL, NULL, &none), VIT_ERROR_ARGUMENT);
  CHECK(none == NULL && vit_prompt_model_takes(NULL) == 0);
  snprintf(path, sizeof path, "%s/prompts/sam3", golden);
  OK(vit_prompt_model_load(path, NULL, NULL, &model));
  CHECK(vit_prompt_model_takes(model) == (VIT_PROMPT_PHRASES | VIT_PROMPT_OBJECTS));
  OK(vit_prompt_segmenter_create(model, 1, &segmenter));
  FAILS(vit_prompt_segmenter_create(model, -1, &other), VIT_ERROR_ARGUMENT);
  CHECK(other == NULL);
  snprintf(path, sizeof path, "%s/prompts/images/drawing.png", golden);
  input = path_input(path);
  OK(vit_prompt_segmenter_encode(segmenter, &input, VIT_PROMPT_PHRASES | VIT_PROMPT_OBJECTS, &image));
  OK(vit_prompt_segmenter_encode(segmenter, &input, VIT_PROMPT_PHRASES, &only));
  OK(vit_prompt_image_size(image, &height, &width, &bytes));
  CHECK(height == 52 && width == 75 && bytes > 0);
  OK(vit_prompt_image_size(image, NULL, NULL, NULL));
  FAILS(vit_prompt_segmenter_encode(segmenter, &input, 4, &only), VIT_ERROR_ARGUMENT);
  OK(vit_results_create(&results));
  test_phrases(segmenter, image, height, width, results);
  test_objects(segmenter, image, height, width, results);
  memset(&object, 0, sizeof object);
  object.struct_size = sizeof object;
  object.points = point;
  object.num_points = 1;
  FAILS(vit_prompt_segmenter_object(segmenter, only, &object, results), VIT_ERROR_ARGUMENT);
  vit_results_free(results);
  vit_prompt_image_free(only);
  vit_prompt_image_free(image);
  vit_prompt_image_free(NULL);
  vit_prompt_segmenter_free(segmenter);
  vit_prompt_model_free(model);
}
