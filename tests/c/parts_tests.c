/* Steps of a model on arrays, attention rollout, and wrong calls by kind: NULL, zero, negative, huge, a wrong
 * shape, not finite. */
#include <math.h>
#include <string.h>

#include "tests/c/check.h"

#define HUGE_COUNT ((size_t)1 << 60)

static void test_patchify(void) {
  const size_t shape[] = {1, 2, 4, 6}, none[] = {1, 2, 0, 6}, huge[] = {HUGE_COUNT, HUGE_COUNT, 4, 4};
  float pixels[48], patches[48];
  size_t i;
  for (i = 0; i < 48; ++i) pixels[i] = (float)i;
  OK(vit_patchify(pixels, shape, 2, 1, patches));
  /* patch 1 of channel 0 starts in column 2; channel 1 follows channel 0 */
  CHECK(patches[0] == 0.0f && patches[1] == 1.0f && patches[2] == 6.0f && patches[4] == 24.0f);
  CHECK(patches[8] == 2.0f && patches[47] == 47.0f);
  FAILS(vit_patchify(NULL, shape, 2, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, NULL, 2, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, shape, 2, 1, NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, none, 2, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, huge, 2, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, shape, 0, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, shape, 5, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, shape, HUGE_COUNT, 1, patches), VIT_ERROR_ARGUMENT);
  FAILS(vit_patchify(pixels, shape, 2, -1, patches), VIT_ERROR_ARGUMENT);
}

/* Two tokens, two heads of width 4; keys that are equal give the mean of the values. */
static void test_attention(void) {
  const size_t shape[] = {1, 2, 2, 4};
  const double frequency = 1.0;
  float q[16] = {0}, k[16] = {0}, v[16], out[16], rotated[16], single[16];
  vit_attention_options options = {0};
  vit_rope_options in_double = {0};
  vit_rope_table *table = NULL, *doubles = NULL;
  size_t i;
  options.struct_size = sizeof options;
  options.num_heads = 2;
  for (i = 0; i < 16; ++i) v[i] = (float)i;
  OK(vit_attention(q, k, v, shape, NULL, &options, out));
  for (i = 0; i < 16; ++i) CHECK(fabsf(out[i] - ((float)(i % 8) + 4.0f)) < 1e-5f);
  options.causal = 1;
  OK(vit_attention(q, k, v, shape, NULL, &options, out));
  for (i = 0; i < 8; ++i) CHECK(fabsf(out[i] - v[i]) < 1e-6f);
  options.causal = 0;
  OK(vit_rope_axial(1, 2, &frequency, 1, NULL, &table));
  for (i = 0; i < 16; ++i) q[i] = k[i] = (float)(i % 3);
  OK(vit_attention(q, k, v, shape, NULL, &options, out));
  OK(vit_attention(q, k, v, shape, table, &options, rotated));
  CHECK(memcmp(out, rotated, sizeof out) != 0);
  options.num_key_heads = 1; /* k and v (1, 2, 1, 4) */
  OK(vit_attention(q, k, v, shape, NULL, &options, single));
  options.num_key_heads = 0;

  FAILS(vit_attention(NULL, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  FAILS(vit_attention(q, NULL, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  FAILS(vit_attention(q, k, NULL, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  FAILS(vit_attention(q, k, v, NULL, NULL, &options, out), VIT_ERROR_ARGUMENT);
  OK(vit_attention(q, k, v, shape, NULL, NULL, out)); /* as many heads as the shape has */
  FAILS(vit_attention(q, k, v, shape, NULL, &options, NULL), VIT_ERROR_ARGUMENT);
  options.num_heads = 3;
  FAILS(vit_attention(q, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  options.num_heads = 2;
  options.num_key_heads = HUGE_COUNT;
  FAILS(vit_attention(q, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  options.num_key_heads = 0;
  options.scale = -1.0;
  FAILS(vit_attention(q, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  options.scale = (double)NAN;
  FAILS(vit_attention(q, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  options.scale = 0.0;
  options.threads = -1;
  FAILS(vit_attention(q, k, v, shape, NULL, &options, out), VIT_ERROR_ARGUMENT);
  options.threads = 0;
  options.num_prefix_tokens = HUGE_COUNT;
  FAILS(vit_attention(q, k, v, shape, table, &options, out), VIT_ERROR_ARGUMENT);
  options.num_prefix_tokens = 0;
  in_double.struct_size = sizeof in_double;
  in_double.dtype = VIT_FLOAT64;
  OK(vit_rope_axial(1, 2, &frequency, 1, &in_double, &doubles));
  FAILS(vit_attention(q, k, v, shape, doubles, &options, out), VIT_ERROR_ARGUMENT);
  vit_rope_table_free(doubles);
  vit_rope_table_free(table);
}

static void test_rollout(const char* path, const char* image) {
  vit_model* model = NULL;
  vit_session* session = NULL;
  vit_results* results = NULL;
  const vit_input input = path_input(image);
  vit_request request = {0};
  vit_array rollout;
  double sum = 0;
  size_t i;
  request.struct_size = sizeof request;
  request.features = VIT_ROLLOUT;
  OK(vit_model_load(path, NULL, &model));
  OK(vit_session_create(model, NULL, &session));
  OK(vit_results_create(&results));
  OK(vit_session_run(session, &input, 1, &request, results));
  OK(vit_results_one(results, 0, VIT_ROLLOUT, 0, &rollout));
  CHECK(rollout.ndim == 1 && rollout.shape[0] == 101);
  for (i = 0; i < rollout.shape[0]; ++i) sum += (double)((const float*)rollout.data)[i];
  CHECK(fabs(sum - 1.0) < 1e-4);
  vit_results_free(results);
  vit_session_free(session);
  vit_model_free(model);
}

static void test_numbers(const char* path) {
  vit_model* model = NULL;
  vit_session* session = NULL;
  vit_results* results = NULL;
  vit_session_options options = {0};
  const vit_input input = path_input("absent.jpg");
  OK(vit_model_load(path, NULL, &model));
  OK(vit_results_create(&results));
  options.struct_size = sizeof options;
  options.threads = -1;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  options.threads = 1 << 30;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  options.threads = 1;
  options.size_kind = VIT_SIZE_FIXED;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  options.height = options.width = HUGE_COUNT;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  OK(vit_session_create(model, NULL, &session));
  FAILS(vit_session_run(session, &input, HUGE_COUNT, NULL, results), VIT_ERROR_ARGUMENT);
  FAILS(vit_results_one(results, 0, VIT_POOLED, 0, NULL), VIT_ERROR_ARGUMENT);
  vit_session_free(session);
  vit_results_free(results);
  vit_model_free(model);
}

void test_parts(const char* path, const char* image) {
  test_patchify();
  test_attention();
  test_rollout(path, image);
  test_numbers(path);
}
