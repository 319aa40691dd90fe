/* Classifiers, text towers and tokenizers. */
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"

void test_own_classes(const char* path, const char* image) {
  vit_model *model = NULL, *other = NULL;
  vit_session* session = NULL;
  vit_classifier* classifier = NULL;
  vit_results* results = NULL;
  vit_input input = path_input(image);
  vit_prediction top[20];
  size_t count = 0;

  OK(vit_model_load(path, NULL, &model));
  OK(vit_model_load(path, NULL, &other));
  OK(vit_session_create(model, NULL, &session));
  OK(vit_classifier_create(model, &classifier));
  OK(vit_results_create(&results));
  vit_model_free(model); /* the session and the classifier go on */
  CHECK(vit_classifier_size(classifier) == 10);
  OK(vit_classifier_run(classifier, session, &input, 1, results));
  OK(vit_classifier_top(classifier, results, 0, 3, top, &count));
  CHECK(count == 3 && strcmp(top[0].label, "cat") == 0 && top[0].probability >= top[1].probability);
  OK(vit_classifier_top(classifier, results, 0, 20, top, &count));
  CHECK(count == 10);
  FAILS(vit_classifier_top(classifier, results, 1, 3, top, &count), VIT_ERROR_ARGUMENT);
  FAILS(vit_classifier_save_vectors(classifier, "unused.safetensors"), VIT_ERROR_ARGUMENT);
  vit_session_free(session);
  OK(vit_session_create(other, NULL, &session));
  FAILS(vit_classifier_run(classifier, session, &input, 1, results), VIT_ERROR_ARGUMENT);
  CHECK(vit_classifier_load_head(other, image, &classifier) != VIT_OK && vit_last_error()[0] != 0);
  vit_model_free(other);
  vit_session_free(session);
  vit_classifier_free(classifier);
  vit_results_free(results);
}

void test_texts(const char* path, const char* image, const char* file) {
  const char* const texts[] = {"a cat", "two dogs in the snow"};
  const char* const templates[] = {"a photo of a {}.", "{}"};
  const char* const bad[] = {"no braces"};
  const char* const damaged[] = {"\xff", "a cat"};
  const char* token = NULL;
  const size_t sizes[] = {1, 8};
  vit_model* model = NULL;
  vit_text_tower* tower = NULL;
  vit_text_encoder* encoder = NULL;
  vit_tokenizer* tokenizer = NULL;
  vit_classifier *classifier = NULL, *loaded = NULL;
  vit_session* session = NULL;
  vit_results *results = NULL, *again = NULL;
  vit_input input = path_input(image);
  vit_prediction top[2];
  vit_array vectors, ids, a, b;
  size_t count = 0, num_cut = 9, size = 0;

  OK(vit_model_and_text_load(path, NULL, NULL, &model, &tower));
  OK(vit_results_create(&results));
  OK(vit_results_create(&again));
  OK(vit_text_encoder_create(tower, 1, &encoder));
  OK(vit_text_encoder_run(encoder, texts, NULL, 2, 1, results, &num_cut));
  OK(vit_results_all(results, VIT_TEXT, 0, &vectors));
  CHECK(vectors.ndim == 2 && vectors.shape[0] == 2 && num_cut == 0);
  FAILS(vit_text_encoder_run(encoder, NULL, NULL, 2, 1, results, NULL), VIT_ERROR_ARGUMENT);

  OK(vit_tokenizer_create(tower, &tokenizer));
  CHECK(vit_tokenizer_context_length(tokenizer) > 0);
  OK(vit_tokenizer_run(tokenizer, texts, sizes, 2, 0, results));
  OK(vit_results_one(results, 1, VIT_IDS, 0, &ids));
  CHECK(ids.dtype == VIT_INT32 && ids.ndim == 1 && ids.shape[0] >= 1);
  OK(vit_tokenizer_token(tokenizer, ((const int32_t*)ids.data)[0], &token, &size));
  CHECK(size > 0);
  FAILS(vit_tokenizer_run(tokenizer, damaged, NULL, 2, 0, results), VIT_ERROR_ARGUMENT);
  OK(vit_results_status(results, 1, NULL));

  OK(vit_session_create(model, NULL, &session));
  OK(vit_classifier_create_zero_shot(model, encoder, texts, 2, templates, 2, &classifier));
  OK(vit_classifier_run(classifier, session, &input, 1, results));
  OK(vit_classifier_top(classifier, results, 0, 2, top, &count));
  CHECK(count == 2 && top[0].probability >= top[1].probability && top[1].probability > 0);
  OK(vit_classifier_save_vectors(classifier, file));
  OK(vit_classifier_load_vectors(model, file, &loaded));
  OK(vit_classifier_run(loaded, session, &input, 1, again));
  OK(vit_results_all(results, VIT_LOGITS, 0, &a));
  OK(vit_results_all(again, VIT_LOGITS, 0, &b));
  CHECK(a.shape[1] == 2 && b.shape[1] == 2);
  FAILS(vit_classifier_create_zero_shot(model, encoder, texts, 2, bad, 1, &loaded), VIT_ERROR_ARGUMENT);
  FAILS(vit_classifier_create_zero_shot(model, encoder, texts, 0, NULL, 0, &loaded), VIT_ERROR_ARGUMENT);
  remove(file);

  vit_model_free(model);
  vit_text_tower_free(tower);
  vit_text_encoder_free(encoder);
  vit_tokenizer_free(tokenizer);
  vit_classifier_free(classifier);
  vit_classifier_free(loaded);
  vit_session_free(session);
  vit_results_free(results);
  vit_results_free(again);
}
