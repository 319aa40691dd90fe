/* Pages and questions as many vectors each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"
#include "vit/c_pages.h"

/* The definition of the score. */
static float score_of(const float* question, size_t num_question, const float* page, size_t num_page,
                      size_t dim) {
  double sum = 0;
  size_t i, j, k;
  for (i = 0; i < num_question; ++i) {
    double best = -INFINITY;
    for (j = 0; j < num_page; ++j) {
      double product = 0;
      for (k = 0; k < dim; ++k) product += (double)question[i * dim + k] * (double)page[j * dim + k];
      if (product > best) best = product;
    }
    sum += best;
  }
  return (float)sum;
}

static void test_scores(vit_page_encoder* encoder, const vit_input* input, size_t dim, vit_results* pages) {
  vit_results* questions = NULL;
  vit_array question, page;
  float score = 0;

  OK(vit_results_create(&questions));
  OK(vit_page_encoder_page(encoder, input, pages));
  OK(vit_results_one(pages, 0, VIT_PAGE_VECTORS, 0, &page));
  CHECK(page.ndim == 2 && page.dtype == VIT_FLOAT32 && page.shape[0] > 4 && page.shape[1] == dim);
  OK(vit_page_encoder_query(encoder, "revenue by quarter", questions));
  OK(vit_results_one(questions, 0, VIT_PAGE_VECTORS, 0, &question));
  CHECK(question.ndim == 2 && question.shape[0] > 4 && question.shape[1] == dim);
  OK(vit_page_score(question.data, question.shape[0], page.data, page.shape[0], dim, &score));
  CHECK(fabs(score - score_of(question.data, question.shape[0], page.data, page.shape[0], dim)) < 1e-4);
  FAILS(vit_page_score(question.data, 0, page.data, page.shape[0], dim, &score), VIT_ERROR_ARGUMENT);
  FAILS(vit_page_score(question.data, question.shape[0], page.data, 0, dim, &score), VIT_ERROR_ARGUMENT);
  FAILS(vit_page_score(NULL, 3, page.data, page.shape[0], dim, &score), VIT_ERROR_ARGUMENT);
  FAILS(vit_page_score(question.data, question.shape[0], page.data, page.shape[0], 0, &score),
        VIT_ERROR_ARGUMENT);
  FAILS(vit_page_score(question.data, (size_t)-1, page.data, page.shape[0], dim, &score), VIT_ERROR_ARGUMENT);
  FAILS(vit_page_score(question.data, question.shape[0], page.data, page.shape[0], dim, NULL),
        VIT_ERROR_ARGUMENT);
  FAILS(vit_page_encoder_query(encoder, NULL, questions), VIT_ERROR_ARGUMENT);
  CHECK(vit_page_encoder_query(encoder, "\xff", questions) == VIT_ERROR_ARGUMENT);
  vit_results_free(questions);
}

void test_pages(const char* golden) {
  char path[4096];
  vit_page_model *model = NULL, *none = NULL;
  vit_page_encoder *encoder = NULL, *other = NULL;
  vit_input input;
  vit_results* results = NULL;

  snprintf(path, sizeof path, "%s/models/hf-siglip", golden);
  FAILS(vit_page_model_load(path, NULL, NULL, &none), VIT_ERROR_UNSUPPORTED);
  FAILS(vit_page_model_load(NULL, NULL, NULL, &none), VIT_ERROR_ARGUMENT);
  CHECK(none == NULL && vit_page_model_dim(NULL) == 0);
  snprintf(path, sizeof path, "%s/pages/colmodernvbert", golden);
  OK(vit_page_model_load(path, NULL, NULL, &model));
  CHECK(vit_page_model_dim(model) > 0);
  OK(vit_page_encoder_create(model, 1, &encoder));
  FAILS(vit_page_encoder_create(model, -1, &other), VIT_ERROR_ARGUMENT);
  FAILS(vit_page_encoder_create(NULL, 1, &other), VIT_ERROR_ARGUMENT);
  CHECK(other == NULL);
  OK(vit_results_create(&results));
  snprintf(path, sizeof path, "%s/pages/images/wide.png", golden);
  input = path_input(path);
  test_scores(encoder, &input, vit_page_model_dim(model), results);
  snprintf(path, sizeof path, "%s/pages/images/none.png", golden);
  CHECK(vit_page_encoder_page(encoder, &input, results) != VIT_OK);
  FAILS(vit_page_encoder_page(encoder, NULL, results), VIT_ERROR_ARGUMENT);
  vit_results_free(results);
  vit_page_encoder_free(encoder);
  vit_page_encoder_free(NULL);
  vit_page_model_free(model);
}
