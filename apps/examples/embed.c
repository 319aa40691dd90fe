/* Embeds images, in C: prints how alike each is to the first.  embed MODEL IMAGE... */
#include <stdio.h>
#include <stdlib.h>

#include "vit/c.h"

/* Prints the cosines of the vectors, which have length 1, with the first one. */
static void print_cosines(const vit_array* vectors, char** files) {
  const float* first = (const float*)vectors->data;
  const size_t count = vectors->shape[0], width = vectors->shape[1];
  size_t i, c;
  for (i = 0; i < count; ++i) {
    double cosine = 0;
    for (c = 0; c < width; ++c) cosine += (double)first[c] * (double)first[i * width + c];
    printf("%.4f  %s\n", cosine, files[i]);
  }
}

int main(int argc, char** argv) {
  const size_t count = argc > 2 ? (size_t)(argc - 2) : 0;
  vit_model* model = NULL;
  vit_session* session = NULL;
  vit_results* results = NULL;
  vit_input* inputs = (vit_input*)calloc(count + 1, sizeof *inputs);
  vit_request request = {0};
  vit_array vectors;
  int is_done = 0;
  size_t i;

  if (count == 0 || inputs == NULL) {
    fprintf(stderr, "usage: embed MODEL IMAGE...\n");
    free(inputs);
    return 2;
  }
  for (i = 0; i < count; ++i) {
    inputs[i].struct_size = sizeof inputs[i];
    inputs[i].kind = VIT_INPUT_PATH;
    inputs[i].path = argv[i + 2];
  }
  request.struct_size = sizeof request;
  request.normalize = 1; /* and the default features: projected where the model has it, else pooled */
  if (vit_model_load(argv[1], NULL, &model) == VIT_OK &&
      vit_session_create(model, NULL, &session) == VIT_OK && vit_results_create(&results) == VIT_OK &&
      vit_session_run(session, inputs, count, &request, results) == VIT_OK) {
    is_done = vit_results_all(results, VIT_PROJECTED, 0, &vectors) == VIT_OK ||
              vit_results_all(results, VIT_POOLED, 0, &vectors) == VIT_OK;
  }
  if (is_done) {
    print_cosines(&vectors, argv + 2);
  } else {
    fprintf(stderr, "%s\n", vit_last_error());
  }
  vit_results_free(results);
  vit_session_free(session);
  vit_model_free(model);
  free(inputs);
  return is_done ? 0 : 1;
}
