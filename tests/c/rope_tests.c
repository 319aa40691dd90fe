/* Conventions of rotary positions by name, their normal form, and identification. */
#include <math.h>
#include <string.h>

#include "tests/c/check.h"

enum { ROWS = 3, COLUMNS = 5, PATCHES = ROWS * COLUMNS, DIM = 16 };

static vit_rope_form_options form_options(void) {
  vit_rope_form_options options = {0};
  options.struct_size = sizeof options;
  options.rows = ROWS;
  options.columns = COLUMNS;
  options.head_dim = DIM;
  return options;
}

/* The angles of the normal form are those of the table. */
static void check_normal_form(const vit_rope_form* form) {
  vit_array angles, frequencies, phases;
  const double *angle, *w, *phase;
  size_t n, j;
  OK(vit_rope_form_get(form, VIT_ROPE_ANGLES, &angles));
  OK(vit_rope_form_get(form, VIT_ROPE_FREQUENCIES, &frequencies));
  OK(vit_rope_form_get(form, VIT_ROPE_PHASES, &phases));
  angle = angles.data;
  w = frequencies.data;
  phase = phases.data;
  CHECK(angles.ndim == 2 && angles.shape[0] == PATCHES && frequencies.shape[1] == 3);
  for (n = 0; n < PATCHES; ++n) {
    for (j = 0; j < angles.shape[1]; ++j) {
      const double expected =
          w[3 * j] * (double)(n % COLUMNS) + w[3 * j + 1] * (double)(n / COLUMNS) + phase[j];
      CHECK(fabs(angle[n * angles.shape[1] + j] - expected) < 1e-12);
    }
  }
}

static void test_forms(void) {
  vit_rope_form_options options = form_options();
  vit_rope_form* form = NULL;
  vit_array array, pairs, cosines, sines;
  double x[PATCHES + 1][DIM];
  const size_t shape[] = {1, PATCHES + 1, 1, DIM}, wrong[] = {1, PATCHES, 1, DIM};
  size_t i;
  OK(vit_rope_form_create("DINOv3", &options, &form));
  OK(vit_rope_form_get(form, VIT_ROPE_COORDINATES, &array));
  CHECK(array.dtype == VIT_FLOAT64 && array.shape[1] == 2);
  CHECK(fabs(((const double*)array.data)[0] + 0.8) < 1e-15);
  OK(vit_rope_form_get(form, VIT_ROPE_PAIRS, &pairs));
  CHECK(pairs.dtype == VIT_INT32 && pairs.shape[0] == 8 && ((const int32_t*)pairs.data)[1] == 8);
  FAILS(vit_rope_form_get(form, VIT_ROPE_BASIS, &array), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_form_get(form, 8, &array), VIT_ERROR_ARGUMENT);
  check_normal_form(form);
  OK(vit_rope_form_get(form, VIT_ROPE_COS, &cosines));
  OK(vit_rope_form_get(form, VIT_ROPE_SIN, &sines));
  for (i = 0; i < (PATCHES + 1) * DIM; ++i) x[i / DIM][i % DIM] = i % DIM < 8 ? 1.0 : 0.0;
  OK(vit_rope_form_rotate(form, &x[0][0], shape, 4, 1));
  CHECK(x[0][0] == 1.0 && x[0][8] == 0.0); /* the class token */
  for (i = 0; i < PATCHES; ++i) {
    CHECK(x[i + 1][2] == ((const double*)cosines.data)[8 * i + 2]);
    CHECK(x[i + 1][10] == ((const double*)sines.data)[8 * i + 2]);
  }
  FAILS(vit_rope_form_rotate(form, &x[0][0], wrong, 4, 1), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_form_rotate(form, &x[0][0], shape, 3, 1), VIT_ERROR_ARGUMENT);
  vit_rope_form_free(form);
  OK(vit_rope_form_create("STRING", &options, &form));
  OK(vit_rope_form_get(form, VIT_ROPE_BASIS, &array));
  CHECK(array.shape[0] == DIM && array.shape[1] == DIM);
  check_normal_form(form);
  vit_rope_form_free(form);
  options.num_heads = 3;
  OK(vit_rope_form_create("golden-gate", &options, &form));
  OK(vit_rope_form_get(form, VIT_ROPE_PHASES, &array));
  CHECK(array.ndim == 2 && array.shape[0] == 3 && array.shape[1] == 8);
  vit_rope_form_free(form);
  FAILS(vit_rope_form_create("dinov9", &options, &form), VIT_ERROR_ARGUMENT);
  CHECK(strstr(vit_last_error(), "qwen2-vl") != NULL);
  options.head_dim = 18;
  FAILS(vit_rope_form_create("dinov3", &options, &form), VIT_ERROR_ARGUMENT);
  options.head_dim = DIM;
  options.num_frames = 2;
  FAILS(vit_rope_form_create("dinov3", &options, &form), VIT_ERROR_ARGUMENT);
  options.num_frames = (size_t)-1;
  FAILS(vit_rope_form_create("vjepa2", &options, &form), VIT_ERROR_ARGUMENT);
  options.num_frames = 0;
  options.reference_rows = options.reference_columns = 18;
  FAILS(vit_rope_form_create("dinov3", &options, &form), VIT_ERROR_ARGUMENT);
  OK(vit_rope_form_create("vjepa2.1", &options, &form));
  vit_rope_form_free(form);
}

static void test_identities(void) {
  vit_rope_form_options options = form_options();
  vit_rope_identify_options known = {0};
  vit_rope_form* form = NULL;
  vit_rope_identity* identity = NULL;
  const char* const names[] = {"cos", "sin"};
  const char* const one_name[] = {"weight"};
  const char* json = NULL;
  vit_array tables[2];
  OK(vit_rope_form_create("rvt", &options, &form));
  OK(vit_rope_form_get(form, VIT_ROPE_COS, &tables[0]));
  OK(vit_rope_form_get(form, VIT_ROPE_SIN, &tables[1]));
  OK(vit_rope_identify_arrays(names, tables, 2, NULL, &identity));
  OK(vit_rope_identity_json(identity, &json));
  CHECK(strstr(json, "\"convention\":\"rvt\"") != NULL && strstr(json, "\"grid\":[3,5]") != NULL);
  vit_rope_identity_free(identity);
  known.struct_size = sizeof known;
  known.rows = 5;
  known.columns = 3;
  known.has_prefix = 1;
  known.against = "DINOv3";
  OK(vit_rope_identify_arrays(names, tables, 2, &known, &identity));
  OK(vit_rope_identity_json(identity, &json));
  CHECK(strstr(json, "\"convention\":null") != NULL);
  vit_rope_identity_free(identity);
  known.columns = 0;
  FAILS(vit_rope_identify_arrays(names, tables, 2, &known, &identity), VIT_ERROR_ARGUMENT);
  known.columns = 3;
  known.against = "nothing";
  FAILS(vit_rope_identify_arrays(names, tables, 2, &known, &identity), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_identify_arrays(one_name, tables, 1, NULL, &identity), VIT_ERROR_FORMAT);
  CHECK(strstr(vit_last_error(), "weight") != NULL);
  tables[1].shape[0] = 14;
  FAILS(vit_rope_identify_arrays(names, tables, 2, NULL, &identity), VIT_ERROR_FORMAT);
  tables[1].shape[0] = (size_t)-1;
  FAILS(vit_rope_identify_arrays(names, tables, 2, NULL, &identity), VIT_ERROR_ARGUMENT);
  tables[1].dtype = VIT_INT32;
  FAILS(vit_rope_identify_arrays(names, tables, 2, NULL, &identity), VIT_ERROR_ARGUMENT);
  vit_rope_form_free(form);
  FAILS(vit_rope_identify("nowhere.npz", NULL, &identity), VIT_ERROR_IO);
  FAILS(vit_rope_identify("nowhere.txt", NULL, &identity), VIT_ERROR_ARGUMENT);
}

void test_conventions(void) {
  const char* list = NULL;
  OK(vit_rope_conventions(&list));
  CHECK(list[0] == '[' && strstr(list, "\"golden-gate-nd\"") != NULL);
  test_forms();
  test_identities();
  FAILS(vit_rope_conventions(NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_form_create(NULL, NULL, NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_form_get(NULL, 0, NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_form_rotate(NULL, NULL, NULL, 4, 0), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_identify(NULL, NULL, NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_identify_arrays(NULL, NULL, 1, NULL, NULL), VIT_ERROR_ARGUMENT);
  FAILS(vit_rope_identity_json(NULL, NULL), VIT_ERROR_ARGUMENT);
  vit_rope_form_free(NULL);
  vit_rope_identity_free(NULL);
}
