/* Banks of good patches. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"

enum { kEdge = 64 };

/* A checkered image, darker by `shade`, with a bright square or without. */
static vit_input drawn(unsigned char* pixels, int shade, int has_defect) {
  vit_input input = {0};
  size_t x, y, c;
  for (y = 0; y < kEdge; ++y) {
    for (x = 0; x < kEdge; ++x) {
      for (c = 0; c < 3; ++c) {
        const int hit = has_defect && y >= 16 && y < 32 && x >= 16 && x < 32;
        pixels[3 * (kEdge * y + x) + c] = (unsigned char)(hit ? 255 : (x / 8 + y / 8) % 2 * 60 + 100 - shade);
      }
    }
  }
  input.struct_size = sizeof input;
  input.kind = VIT_INPUT_PIXELS;
  input.format = VIT_RGB;
  input.data = pixels;
  input.size = 3 * kEdge * kEdge;
  input.height = kEdge;
  input.width = kEdge;
  return input;
}

void test_anomalies(const char* path, const char* file) {
  static unsigned char pixels[5][3 * kEdge * kEdge];
  vit_model* model = NULL;
  vit_session* session = NULL;
  vit_anomaly *bank = NULL, *again = NULL;
  vit_results* results = NULL;
  vit_anomaly_options options = {0};
  vit_input good[4], damaged = path_input("no such image");
  vit_array score, distances;
  float threshold = 0, reloaded = 0;
  double confidence = 0;
  int i;

  options.struct_size = sizeof options;
  options.coreset_fraction = 0.5;
  for (i = 0; i < 4; ++i) good[i] = drawn(pixels[i], i, 0);
  OK(vit_model_load(path, NULL, &model));
  OK(vit_session_create(model, NULL, &session));
  OK(vit_results_create(&results));
  OK(vit_anomaly_fit(session, good, 4, &options, &bank));
  OK(vit_anomaly_threshold(bank, &threshold, &confidence));
  CHECK(threshold > 0 && confidence > 0 && confidence < 1);
  OK(vit_anomaly_save(bank, file));
  OK(vit_anomaly_load(model, file, &again));
  OK(vit_anomaly_threshold(again, &reloaded, NULL));
  CHECK(reloaded == threshold);
  good[0] = drawn(pixels[4], 1, 1);
  OK(vit_anomaly_run(again, session, good, 2, results));
  OK(vit_results_all(results, VIT_ANOMALY_SCORE, 0, &score));
  OK(vit_results_one(results, 0, VIT_ANOMALY_DISTANCES, 0, &distances));
  CHECK(score.ndim == 2 && score.shape[0] == 2 && score.shape[1] == 1 && distances.ndim == 2);
  CHECK(((const float*)score.data)[0] > threshold &&
        ((const float*)score.data)[0] > ((const float*)score.data)[1]);
  vit_anomaly_free(again);
  again = NULL;
  CHECK(vit_anomaly_fit(session, &damaged, 1, NULL, &again) == VIT_ERROR_IO && vit_last_error()[0] != 0);
  FAILS(vit_anomaly_fit(session, NULL, 0, NULL, &again), VIT_ERROR_ARGUMENT);
  options.score = 9;
  FAILS(vit_anomaly_fit(session, good, 2, &options, &again), VIT_ERROR_ARGUMENT);
  FAILS(vit_anomaly_load(model, path, &again), VIT_ERROR_IO);
  FAILS(vit_anomaly_run(NULL, session, good, 2, results), VIT_ERROR_ARGUMENT);
  CHECK(again == NULL);
  remove(file);
  vit_anomaly_free(NULL);
  vit_anomaly_free(bank);
  vit_results_free(results);
  vit_session_free(session);
  vit_model_free(model);
}
