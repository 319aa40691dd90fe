/* Pages of documents and questions to them in the C interface, as many vectors each, with ColModernVBERT:
 *
 *   vit_page_model_load("colmodernvbert", NULL, NULL, &model);
 *   vit_page_encoder_create(model, 0, &encoder);
 *   vit_page_encoder_query(encoder, "revenue by quarter", results);
 *   vit_results_one(results, 0, VIT_PAGE_VECTORS, 0, &question);   (m, E), valid until the next call
 *   vit_page_encoder_page(encoder, &photo, others);
 *   vit_results_one(others, 0, VIT_PAGE_VECTORS, 0, &page);        (t, E)
 *   vit_page_score(question.data, question.shape[0], page.data, page.shape[0], question.shape[1], &score);
 *
 * Rules of vit/c.h about statuses, structs and lifetimes hold. Results are of one input; t and m are the
 * numbers of tokens, E that of the numbers of a vector. */
#ifndef VIT_C_PAGES_H
#define VIT_C_PAGES_H

#include "vit/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of results of pages, besides those of vit/c.h. */
enum {
  VIT_PAGE_VECTORS = (1 << 29) + 20 /* (n, t, E) float32 of length 1, of a page or a question; t differs */
};

/* A checkpoint with its image tower and its encoder of pages. Immutable: threads may share it. */
typedef struct vit_page_model vit_page_model;

/* Loads a folder as downloaded. UNSUPPORTED for a model that gives no vectors of pages, others as
 * vit_model_load(). */
VIT_API vit_status vit_page_model_load(const char* path, const vit_model_options* options,
                                       const vit_text_options* text_options, vit_page_model** model);
/* Frees the model; the weights are freed with the last object created from them. */
VIT_API void vit_page_model_free(vit_page_model* model);
/* E: numbers of a vector; 0 for NULL. */
VIT_API size_t vit_page_model_dim(const vit_page_model* model);

/* Working memory of one thread over a model that several may share. */
typedef struct vit_page_encoder vit_page_encoder;

/* An encoder over a model. `threads`: 0 = all cores; results do not depend on it. */
VIT_API vit_status vit_page_encoder_create(const vit_page_model* model, int32_t threads,
                                           vit_page_encoder** encoder);
/* Frees the encoder. */
VIT_API void vit_page_encoder_free(vit_page_encoder* encoder);

/* VIT_PAGE_VECTORS of an image: of every token of it and of the text around it. */
VIT_API vit_status vit_page_encoder_page(vit_page_encoder* encoder, const vit_input* page,
                                         vit_results* results);
/* VIT_PAGE_VECTORS of a question. ARGUMENT for a text that is not UTF-8, has the token of an image, or more
 * than 65536 tokens. */
VIT_API vit_status vit_page_encoder_query(vit_page_encoder* encoder, const char* text, vit_results* results);

/* The score of a page (num_page, dim) for a question (num_question, dim): the sum over the vectors of the
 * question of the largest inner product with a vector of the page. ARGUMENT if one has no vectors. */
VIT_API vit_status vit_page_score(const float* question, size_t num_question, const float* page,
                                  size_t num_page, size_t dim, float* score);

#ifdef __cplusplus
}
#endif

#endif
