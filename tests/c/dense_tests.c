/* Dense heads: depth, segments, boxes of classes and of words, keypoints. */
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"

static void load(const char* golden, const char* name, vit_model** model, vit_session** session) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", golden, name);
  *model = NULL;
  *session = NULL;
  OK(vit_model_load(path, NULL, model));
  OK(vit_session_create(*model, NULL, session));
}

static void test_depth(const char* golden, const vit_input* input, vit_results* results) {
  vit_model* model;
  vit_session* session;
  vit_array depth;
  size_t height = 0, width = 0;
  int32_t unit = -1;

  load(golden, "dense/hf-depth-anything", &model, &session);
  OK(vit_model_depth_unit(model, &unit));
  CHECK(unit == VIT_DEPTH_METRE);
  OK(vit_session_depth(session, input, 1, results));
  OK(vit_results_one(results, 0, VIT_DEPTH, 0, &depth));
  OK(vit_results_image_size(results, 0, &height, &width));
  CHECK(depth.ndim == 2 && depth.shape[0] == height && depth.shape[1] == width);
  FAILS(vit_session_segment(session, input, 1, NULL, results), VIT_ERROR_MISMATCH);
  FAILS(vit_session_pose(session, input, 1, NULL, NULL, results), VIT_ERROR_MISMATCH);
  FAILS(vit_session_depth(NULL, input, 1, results), VIT_ERROR_ARGUMENT);
  vit_session_free(session);
  vit_model_free(model);
}

static void test_boxes(const char* golden, const vit_input* input, vit_results* results) {
  vit_model* model;
  vit_session* session;
  vit_detector *detector = NULL, *none = NULL;
  vit_array boxes, scores, classes;
  const char* label = NULL;

  load(golden, "boxes/yolos", &model, &session);
  CHECK(vit_model_num_head_labels(model) == 3 && vit_model_num_head_labels(NULL) == 0);
  OK(vit_model_head_label(model, 2, &label));
  CHECK(strcmp(label, "car") == 0);
  OK(vit_detector_create(model, &detector));
  CHECK(vit_detector_size(detector) == 3 && vit_detector_size(NULL) == 0);
  OK(vit_detector_label(detector, 0, &label));
  CHECK(strcmp(label, "person") == 0);
  OK(vit_detector_run(detector, session, input, 1, 0.0f, results));
  OK(vit_results_one(results, 0, VIT_BOXES, 0, &boxes));
  OK(vit_results_one(results, 0, VIT_SCORES, 0, &scores));
  OK(vit_results_one(results, 0, VIT_CLASSES, 0, &classes));
  CHECK(boxes.ndim == 2 && boxes.shape[0] == 5 && boxes.shape[1] == 4 && scores.shape[0] == 5);
  CHECK(classes.dtype == VIT_INT32 && ((const int32_t*)classes.data)[0] < 3);
  OK(vit_detector_run(detector, session, input, 1, 1.0f, results));
  OK(vit_results_one(results, 0, VIT_BOXES, 0, &boxes));
  CHECK(boxes.shape[0] == 0);
  FAILS(vit_detector_run(NULL, session, input, 1, 0.5f, results), VIT_ERROR_ARGUMENT);
  FAILS(vit_detector_label(detector, 3, &label), VIT_ERROR_ARGUMENT);
  FAILS(vit_model_depth_unit(model, NULL), VIT_ERROR_MISMATCH);
  vit_detector_free(NULL);
  vit_detector_free(detector);
  vit_session_free(session);
  vit_model_free(model);

  load(golden, "boxes/owlv2", &model, &session);
  FAILS(vit_detector_create(model, &none), VIT_ERROR_MISMATCH);
  CHECK(none == NULL);
  vit_session_free(session);
  vit_model_free(model);
}

static void test_segments(const char* golden, const vit_input* input, vit_results* results) {
  vit_model* model;
  vit_session* session;
  vit_array map, ids, areas;
  size_t stuff[] = {0, 9}, pixels, i;
  vit_segment_options options;

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threshold = -1.0;
  load(golden, "dense/hf-eomt", &model, &session);
  for (options.task = VIT_SEGMENT_AUTO; options.task <= VIT_SEGMENT_PANOPTIC; ++options.task) {
    OK(vit_session_segment(session, input, 1, &options, results));
    OK(vit_results_one(results, 0, VIT_SEGMENTATION, 0, &map));
    OK(vit_results_one(results, 0, VIT_SEGMENT_IDS, 0, &ids));
    OK(vit_results_one(results, 0, VIT_AREAS, 0, &areas));
    CHECK(map.ndim == 2 && map.dtype == VIT_INT32 && ids.ndim == 1 && ids.shape[0] == areas.shape[0]);
    CHECK(ids.shape[0] != 0);
    for (i = 0, pixels = 0; i < areas.shape[0]; ++i) pixels += (size_t)((const int32_t*)areas.data)[i];
    CHECK(pixels <= map.shape[0] * map.shape[1]);
    CHECK(options.task != VIT_SEGMENT_SEMANTIC || pixels == map.shape[0] * map.shape[1]);
  }
  FAILS(vit_session_segment(session, input, 1, &options, results), VIT_ERROR_ARGUMENT);
  options.task = VIT_SEGMENT_PANOPTIC;
  options.stuff = stuff;
  options.num_stuff = 2;
  CHECK(vit_session_segment(session, input, 1, &options, results) == VIT_ERROR_ARGUMENT);
  options.stuff = NULL;
  FAILS(vit_session_segment(session, input, 1, &options, results), VIT_ERROR_ARGUMENT);
  OK(vit_session_segment(session, input, 1, NULL, results));
  vit_session_free(session);
  vit_model_free(model);
}

static void test_words(const char* golden, const vit_input* input, vit_results* results) {
  vit_model* model;
  vit_session* session;
  vit_text_tower* tower = NULL;
  vit_text_encoder* encoder = NULL;
  vit_detector* detector = NULL;
  vit_array boxes;
  const char* const words[] = {"a cat", "dog"};
  char path[4096];

  snprintf(path, sizeof path, "%s/boxes/owlv2", golden);
  load(golden, "boxes/owlv2", &model, &session);
  OK(vit_text_tower_load(path, NULL, &tower));
  OK(vit_text_encoder_create(tower, 1, &encoder));
  OK(vit_detector_create_zero_shot(model, encoder, words, 2, NULL, 0, &detector));
  OK(vit_detector_run(detector, session, input, 1, -1.0f, results));
  OK(vit_results_one(results, 0, VIT_BOXES, 0, &boxes));
  CHECK(vit_detector_size(detector) == 2 && boxes.ndim == 2);
  FAILS(vit_detector_create_zero_shot(model, NULL, words, 2, NULL, 0, &detector), VIT_ERROR_ARGUMENT);
  vit_detector_free(detector);
  vit_text_encoder_free(encoder);
  vit_text_tower_free(tower);
  vit_session_free(session);
  vit_model_free(model);
}

static void test_poses(const char* golden, const vit_input* input, vit_results* results) {
  vit_model* model;
  vit_session* session;
  vit_array points;
  const vit_box boxes[] = {{3, 2, 23, 28}, {0, 0, 10, 10}, {5, 5, 5, 9}};
  const vit_box outside[] = {{3, 2, 23, 28}, {900, 0, 920, 9}};
  const float* numbers;
  const size_t counts[] = {2, 1}, none[] = {0};
  vit_input both[2];

  both[0] = both[1] = *input;
  load(golden, "boxes/vitpose", &model, &session);
  OK(vit_session_pose(session, input, 1, NULL, NULL, results));
  OK(vit_results_one(results, 0, VIT_KEYPOINTS, 0, &points));
  CHECK(points.ndim == 3 && points.shape[0] == 1 && points.shape[1] == 4 && points.shape[2] == 3);
  OK(vit_session_pose(session, input, 1, boxes, none, results));
  OK(vit_results_one(results, 0, VIT_KEYPOINTS, 0, &points));
  CHECK(points.shape[0] == 0);
  CHECK(vit_session_pose(session, both, 2, boxes, counts, results) == VIT_ERROR_ARGUMENT);
  CHECK(vit_results_status(results, 0, NULL) == VIT_OK && vit_results_status(results, 1, NULL) != VIT_OK);
  OK(vit_results_one(results, 0, VIT_KEYPOINTS, 0, &points));
  CHECK(points.shape[0] == 2);
  FAILS(vit_session_pose(session, input, 1, NULL, counts, results), VIT_ERROR_ARGUMENT);
  OK(vit_session_pose(session, input, 1, outside, counts, results));
  OK(vit_results_one(results, 0, VIT_KEYPOINTS, 0, &points));
  numbers = (const float*)points.data;
  CHECK(points.shape[0] == 2 && numbers[0] == numbers[0]);
  CHECK(numbers[12] != numbers[12] && numbers[13] != numbers[13] && numbers[14] == 0); /* NaN, NaN, 0 */
  vit_session_free(session);
  vit_model_free(model);
}

void test_dense(const char* golden) {
  vit_results* results = NULL;
  vit_input input;
  char path[4096];

  snprintf(path, sizeof path, "%s/boxes/vitpose/high.png", golden);
  input = path_input(path);
  OK(vit_results_create(&results));
  test_depth(golden, &input, results);
  test_boxes(golden, &input, results);
  test_segments(golden, &input, results);
  test_words(golden, &input, results);
  test_poses(golden, &input, results);
  vit_results_free(results);
}
