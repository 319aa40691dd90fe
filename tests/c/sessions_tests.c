/* Models, sessions and the kinds of inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

static vit_input pixel_input(const unsigned char* pixels, size_t height, size_t width) {
  vit_input input = {0};
  input.struct_size = sizeof input;
  input.kind = VIT_INPUT_PIXELS;
  input.format = VIT_RGB;
  input.data = pixels;
  input.height = height;
  input.width = width;
  return input;
}

/* The bytes of a file, to be freed; NULL if there is none. */
static unsigned char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  unsigned char* bytes = NULL;
  long end = -1;
  *size = 0;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (end > 0 && fseek(file, 0, SEEK_SET) == 0) bytes = (unsigned char*)malloc((size_t)end);
  if (bytes != NULL) *size = fread(bytes, 1, (size_t)end, file);
  fclose(file);
  return bytes;
}

static int same(const vit_array* a, const vit_array* b) {
  size_t count = a->dtype == VIT_UINT8 ? 1 : 4;
  uint32_t i;
  if (a->ndim != b->ndim || a->dtype != b->dtype) return 0;
  for (i = 0; i < a->ndim; ++i) {
    if (a->shape[i] != b->shape[i]) return 0;
    count *= a->shape[i];
  }
  return memcmp(a->data, b->data, count) == 0;
}

static void test_kinds_of_inputs(const vit_model* model, vit_session* session, const char* image) {
  vit_preprocessor* preprocessor = NULL;
  vit_results *expected = NULL, *results = NULL, *pixels = NULL;
  vit_input input = path_input(image);
  vit_array a, b, planes;
  size_t size = 0, height = 0, width = 0;
  unsigned char* bytes = read_file(image, &size);

  OK(vit_results_create(&expected));
  OK(vit_results_create(&results));
  OK(vit_results_create(&pixels));
  OK(vit_session_run(session, &input, 1, NULL, expected));
  OK(vit_results_all(expected, VIT_POOLED, 0, &a));
  CHECK(a.ndim == 2 && a.shape[0] == 1 && a.dtype == VIT_FLOAT32);
  OK(vit_results_image_size(expected, 0, &height, &width));
  CHECK(height > 0 && width > 0);

  input.kind = VIT_INPUT_ENCODED;
  input.data = bytes;
  input.size = size;
  OK(vit_session_run(session, &input, 1, NULL, results));
  OK(vit_results_all(results, VIT_POOLED, 0, &b));
  CHECK(same(&a, &b));

  OK(vit_preprocessor_create(model, NULL, &preprocessor));
  CHECK(vit_preprocessor_describe(preprocessor)[0] != '\0');
  OK(vit_preprocessor_run(preprocessor, &input, 1, VIT_PIXELS, pixels));
  OK(vit_results_one(pixels, 0, VIT_PIXELS, 0, &planes));
  CHECK(planes.ndim == 3 && planes.shape[0] == 3);
  memset(&input, 0, sizeof input);
  input.struct_size = sizeof input;
  input.kind = VIT_INPUT_PREPROCESSED;
  input.data = planes.data;
  input.height = planes.shape[1];
  input.width = planes.shape[2];
  OK(vit_session_run(session, &input, 1, NULL, results));
  OK(vit_results_all(results, VIT_POOLED, 0, &b));
  CHECK(same(&a, &b));

  input = path_input(image);
  OK(vit_preprocessor_run(preprocessor, &input, 1, VIT_CROPPED, pixels));
  OK(vit_results_one(pixels, 0, VIT_CROPPED, 0, &planes));
  CHECK(planes.ndim == 3 && planes.shape[2] == 3 && planes.dtype == VIT_UINT8);

  vit_preprocessor_free(preprocessor);
  vit_results_free(expected);
  vit_results_free(results);
  vit_results_free(pixels);
  free(bytes);
}

static void test_features(vit_session* session, const vit_model_info* info, const char* image) {
  const int64_t blocks[] = {0, -1};
  const int64_t beyond = (int64_t)info->depth;
  vit_request request = {0};
  vit_results* results = NULL;
  vit_input inputs[2];
  vit_array tokens, cls, patches, last, attention;

  inputs[0] = path_input(image);
  inputs[1] = path_input(image);
  request.struct_size = sizeof request;
  request.features = VIT_TOKENS | VIT_PATCHES | VIT_LOGITS | (info->has_class_token ? VIT_CLS : 0);
  request.blocks = blocks;
  request.num_blocks = 2;
  request.attention = blocks;
  request.num_attention = 1;
  OK(vit_results_create(&results));
  OK(vit_session_run(session, inputs, 2, &request, results));
  CHECK(vit_results_size(results) == 2);
  OK(vit_results_all(results, VIT_TOKENS, 0, &tokens));
  OK(vit_results_all(results, VIT_PATCHES, 0, &patches));
  OK(vit_results_all(results, VIT_BLOCK, -1, &last));
  OK(vit_results_all(results, VIT_ATTENTION, 0, &attention));
  CHECK(tokens.ndim == 3 && tokens.shape[0] == 2 && tokens.shape[2] == info->embed_dim);
  CHECK(patches.ndim == 4 &&
        patches.shape[1] * patches.shape[2] + info->num_prefix_tokens == tokens.shape[1]);
  CHECK(last.ndim == 3 && attention.ndim == 4 && attention.shape[3] == tokens.shape[1]);
  if (info->has_class_token) {
    OK(vit_results_one(results, 1, VIT_CLS, 0, &cls));
    CHECK(cls.ndim == 1 && cls.shape[0] == info->embed_dim);
  }
  FAILS(vit_results_all(results, VIT_POOLED, 0, &tokens), VIT_ERROR_ARGUMENT);
  FAILS(vit_results_one(results, 2, VIT_TOKENS, 0, &tokens), VIT_ERROR_ARGUMENT);

  request.blocks = &beyond;
  request.num_blocks = 1;
  FAILS(vit_session_run(session, inputs, 2, &request, results), VIT_ERROR_ARGUMENT);
  CHECK(vit_results_size(results) == 0);
  request.num_blocks = 0;
  request.features = 1u << 31;
  FAILS(vit_session_run(session, inputs, 2, &request, results), VIT_ERROR_ARGUMENT);
  request.struct_size = 3;
  FAILS(vit_session_run(session, inputs, 2, &request, results), VIT_ERROR_ARGUMENT);
  vit_results_free(results);
}

/* A missing file, a truncated one and wrong structs fail, and the other inputs do not. */
static void test_failed_inputs(vit_session* session, const char* image) {
  size_t size = 0;
  unsigned char* bytes = read_file(image, &size);
  const unsigned char dot[3] = {1, 2, 3};
  const char* message = NULL;
  vit_results* results = NULL;
  vit_input inputs[6];
  vit_array all, one;
  size_t i;

  for (i = 0; i < 6; ++i) inputs[i] = path_input(image);
  inputs[0].path = "/nonexistent/a.jpg";
  inputs[2].kind = VIT_INPUT_ENCODED;
  inputs[2].data = bytes;
  inputs[2].size = size / 2;
  inputs[3] = pixel_input(dot, 1, 1);
  inputs[3].row_stride = 2;
  inputs[4].path = NULL;
  inputs[5].kind = 17;
  OK(vit_results_create(&results));
  FAILS(vit_session_run(session, inputs, 6, NULL, results), VIT_ERROR_IO);
  CHECK(strstr(vit_last_error(), "/nonexistent/a.jpg") != NULL);
  CHECK(vit_results_size(results) == 6);
  CHECK(vit_results_status(results, 0, &message) == VIT_ERROR_IO && strstr(message, "a.jpg") != NULL);
  CHECK(vit_results_status(results, 1, &message) == VIT_OK && message[0] == '\0');
  CHECK(vit_results_status(results, 2, &message) == VIT_ERROR_FORMAT);
  for (i = 3; i < 6; ++i) CHECK(vit_results_status(results, i, NULL) == VIT_ERROR_ARGUMENT);
  OK(vit_results_all(results, VIT_POOLED, 0, &all));
  CHECK(all.shape[0] == 6);
  CHECK(isnan(((const float*)all.data)[0]) && isnan(((const float*)all.data)[5 * all.shape[1]]));
  CHECK(!isnan(((const float*)all.data)[all.shape[1]]));
  OK(vit_results_one(results, 1, VIT_POOLED, 0, &one));
  FAILS(vit_results_one(results, 2, VIT_POOLED, 0, &one), VIT_ERROR_FORMAT);
  FAILS(vit_session_run(session, inputs, 1, NULL, results), VIT_ERROR_IO);
  FAILS(vit_results_all(results, VIT_POOLED, 0, &all), VIT_ERROR_ARGUMENT); /* all failed */
  OK(vit_session_run(session, inputs, 0, NULL, results));
  CHECK(vit_results_size(results) == 0);
  FAILS(vit_session_run(session, NULL, 1, NULL, results), VIT_ERROR_ARGUMENT);
  vit_results_free(results);
  free(bytes);
}

/* The caller's structs may be those of an older or a newer release. */
void test_struct_sizes(const char* path) {
  struct {
    vit_model_options known;
    size_t of_the_future;
  } newer;
  vit_model* model = NULL;
  vit_model_options older = {0};

  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  OK(vit_model_load(path, &newer.known, &model));
  vit_model_free(model);
  model = NULL;
  newer.of_the_future = 1;
  FAILS(vit_model_load(path, &newer.known, &model), VIT_ERROR_UNSUPPORTED);
  CHECK(model == NULL);
  older.struct_size = offsetof(vit_model_options, layout);
  older.layout = "not read"; /* beyond the size */
  OK(vit_model_load(path, &older, &model));
  vit_model_free(model);
  model = NULL;
  older.struct_size = 0;
  FAILS(vit_model_load(path, &older, &model), VIT_ERROR_ARGUMENT);
}

void test_model(const char* path, const char* image) {
  vit_model* model = NULL;
  vit_session* session = NULL;
  vit_session_options options = {0};
  vit_model_info info = {0};
  const char* label = NULL;

  FAILS(vit_model_load("/nonexistent", NULL, &model), VIT_ERROR_IO);
  CHECK(model == NULL);
  OK(vit_model_load(path, NULL, &model));
  info.struct_size = sizeof info;
  OK(vit_model_describe(model, &info));
  CHECK(info.depth > 0 && info.num_classes == 10 && info.config[0] == '{' && info.preprocess[0] == '{');
  CHECK(strlen(info.fingerprint) == 16 && strcmp(info.path, path) == 0);
  OK(vit_model_label(model, 3, &label));
  CHECK(strcmp(label, "cat") == 0);
  FAILS(vit_model_label(model, 10, &label), VIT_ERROR_ARGUMENT);

  options.struct_size = sizeof options;
  options.threads = 2;
  OK(vit_session_create(model, &options, &session));
  test_kinds_of_inputs(model, session, image);
  test_features(session, &info, image);
  test_failed_inputs(session, image);
  options.threads = -1;
  vit_session_free(session);
  session = NULL;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  options.threads = INT32_MAX;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  options.threads = 1;
  options.size_kind = VIT_SIZE_FIXED;
  FAILS(vit_session_create(model, &options, &session), VIT_ERROR_ARGUMENT);
  CHECK(session == NULL);
  vit_model_free(model);
}
