/* Position encodings, and NULL in every call. */
#include <math.h>

#include "tests/c/check.h"

void test_positions(void) {
  double frequencies[4] = {0}, t_x[6] = {0}, t_y[6] = {0}, mixed[16] = {0};
  float x[16], rows[24] = {0};
  const size_t shape[] = {1, 1, 16}, wrong[] = {1, 4, 16}, huge[] = {(size_t)-1 / 4, 7, 2, 8};
  vit_rope_options options = {0};
  vit_rope_table* table = NULL;
  vit_array cosines, sines;
  size_t i;

  options.struct_size = sizeof options;
  OK(vit_grid_coordinates(2, 3, &options, t_x, t_y));
  CHECK(t_x[5] == 2.0 && t_y[5] == 1.0);
  FAILS(vit_grid_coordinates(0, 3, &options, t_x, t_y), VIT_ERROR_ARGUMENT);
  OK(vit_rope_frequencies(VIT_FREQUENCIES_THETA, 4, 100.0, 0.0, frequencies));
  CHECK(frequencies[0] == 1.0 && fabs(frequencies[2] - 0.1) < 1e-12);
  FAILS(vit_rope_frequencies(9, 4, 100.0, 0.0, frequencies), VIT_ERROR_ARGUMENT);

  OK(vit_rope_axial(1, 1, frequencies, 4, NULL, &table));
  OK(vit_rope_table_get(table, &cosines, &sines));
  CHECK(cosines.ndim == 2 && cosines.shape[0] == 1 && cosines.shape[1] == 8);
  for (i = 0; i < 16; ++i) x[i] = (float)i;
  OK(vit_rope_rotate(table, x, shape, 3, 0)); /* by angles of 0 */
  for (i = 0; i < 16; ++i) CHECK(x[i] == (float)i);
  FAILS(vit_rope_rotate(table, x, wrong, 3, 0), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_rotate(table, x, huge, 4, 0), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_rotate(table, x, shape, 7, 0), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_rotate(table, NULL, shape, 3, 0), VIT_ERROR_ARGUMENT);
  vit_rope_table_free(table);

  options.dtype = VIT_FLOAT64;
  OK(vit_rope_mixed(2, 3, mixed, 1, 2, 4, 0, &options, &table));
  OK(vit_rope_table_get(table, &cosines, &sines));
  CHECK(cosines.dtype == VIT_FLOAT64 && cosines.ndim == 3 && ((const double*)cosines.data)[0] == 1.0);
  vit_rope_table_free(table);
  FAILS(vit_rope_mixed(2, 3, mixed, 1, 2, 4, 1, &options, &table), VIT_ERROR_ARGUMENT);
  OK(vit_rope_line(t_x, 6, frequencies, 4, &options, &table));
  vit_rope_table_free(table);
  OK(vit_sinusoidal(VIT_SINUSOIDAL_GRID, 2, 3, 4, 10000.0, VIT_FLOAT32, rows));
  CHECK(rows[1] == 1.0f && rows[3] == 1.0f);
  FAILS(vit_sinusoidal(VIT_SINUSOIDAL_GRID, 2, 3, 3, 10000.0, VIT_FLOAT32, rows), VIT_ERROR_ARGUMENT);
  FAILS(vit_sinusoidal(VIT_SINUSOIDAL_LINE, 2, 1, 4, 10000.0, VIT_UINT8, rows), VIT_ERROR_ARGUMENT);
}

void test_null(void) {
  const vit_status wrong = VIT_ERROR_ARGUMENT;
  size_t n = 0;
  vit_array array;

  FAILS(vit_results_create(NULL), wrong);
  FAILS(vit_results_status(NULL, 0, NULL), wrong);
  FAILS(vit_results_image_size(NULL, 0, &n, &n), wrong);
  FAILS(vit_results_all(NULL, VIT_POOLED, 0, &array), wrong);
  FAILS(vit_results_one(NULL, 0, VIT_POOLED, 0, &array), wrong);
  FAILS(vit_model_load(NULL, NULL, NULL), wrong);
  FAILS(vit_model_random(NULL, NULL, NULL), wrong);
  FAILS(vit_model_describe(NULL, NULL), wrong);
  FAILS(vit_model_label(NULL, 0, NULL), wrong);
  FAILS(vit_preprocessor_load(NULL, NULL, NULL, NULL), wrong);
  FAILS(vit_preprocessor_create(NULL, NULL, NULL), wrong);
  FAILS(vit_preprocessor_run(NULL, NULL, 0, VIT_PIXELS, NULL), wrong);
  FAILS(vit_session_create(NULL, NULL, NULL), wrong);
  FAILS(vit_session_run(NULL, NULL, 0, NULL, NULL), wrong);
  FAILS(vit_classifier_create(NULL, NULL), wrong);
  FAILS(vit_classifier_load_head(NULL, NULL, NULL), wrong);
  FAILS(vit_classifier_create_zero_shot(NULL, NULL, NULL, 0, NULL, 0, NULL), wrong);
  FAILS(vit_classifier_load_vectors(NULL, NULL, NULL), wrong);
  FAILS(vit_classifier_save_vectors(NULL, NULL), wrong);
  FAILS(vit_classifier_label(NULL, 0, NULL), wrong);
  FAILS(vit_classifier_run(NULL, NULL, NULL, 0, NULL), wrong);
  FAILS(vit_classifier_top(NULL, NULL, 0, 0, NULL, NULL), wrong);
  FAILS(vit_text_tower_load(NULL, NULL, NULL), wrong);
  FAILS(vit_model_and_text_load(NULL, NULL, NULL, NULL, NULL), wrong);
  FAILS(vit_text_encoder_create(NULL, 0, NULL), wrong);
  FAILS(vit_text_encoder_run(NULL, NULL, NULL, 0, 0, NULL, NULL), wrong);
  FAILS(vit_tokenizer_load(NULL, 0, NULL), wrong);
  FAILS(vit_tokenizer_load_for_model(NULL, NULL, 0, NULL), wrong);
  FAILS(vit_tokenizer_create(NULL, NULL), wrong);
  FAILS(vit_tokenizer_run(NULL, NULL, NULL, 0, 0, NULL), wrong);
  FAILS(vit_tokenizer_token(NULL, 0, NULL, NULL), wrong);
  FAILS(vit_grid_coordinates(1, 1, NULL, NULL, NULL), wrong);
  FAILS(vit_rope_frequencies(0, 1, 1.0, 1.0, NULL), wrong);
  FAILS(vit_rope_axial(1, 1, NULL, 1, NULL, NULL), wrong);
  FAILS(vit_rope_mixed(1, 1, NULL, 1, 1, 1, 0, NULL, NULL), wrong);
  FAILS(vit_rope_line(NULL, 1, NULL, 1, NULL, NULL), wrong);
  FAILS(vit_rope_table_get(NULL, NULL, NULL), wrong);
  FAILS(vit_rope_rotate(NULL, NULL, NULL, 0, 0), wrong);
  FAILS(vit_sinusoidal(0, 1, 1, 2, 10000.0, VIT_FLOAT32, NULL), wrong);
  CHECK(vit_results_size(NULL) == 0 && vit_classifier_size(NULL) == 0);
  CHECK(vit_tokenizer_context_length(NULL) == 0 && vit_preprocessor_describe(NULL) == NULL);
  vit_results_free(NULL);
  vit_model_free(NULL);
  vit_preprocessor_free(NULL);
  vit_session_free(NULL);
  vit_classifier_free(NULL);
  vit_text_tower_free(NULL);
  vit_text_encoder_free(NULL);
  vit_tokenizer_free(NULL);
  vit_rope_table_free(NULL);
}
