/* The C interface as a program in C99 uses it: each call, each kind of input, and what NULL and wrong numbers
 * give. That the numbers are those of the C++ interface is held by c_interface_tests.cpp. c_tests MODEL
 * TEXT_MODEL IMAGE NEW_FILE GOLDEN: a classifier, a model with a text tower, an image file, data/golden. */
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"

int num_failed = 0;

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: c_tests MODEL TEXT_MODEL IMAGE NEW_FILE GOLDEN\n");
    return 2;
  }
  CHECK(vit_c_revision() == VIT_C_REVISION && vit_version()[0] != '\0' && vit_last_error()[0] == '\0');
  CHECK(strcmp(vit_status_name(VIT_ERROR_FORMAT), "format") == 0);
  CHECK(strcmp(vit_status_name(-1), "unknown") == 0 && strcmp(vit_status_name(99), "unknown") == 0);
  test_null();
  test_struct_sizes(argv[1]);
  test_model(argv[1], argv[3]);
  test_own_classes(argv[1], argv[3]);
  test_texts(argv[2], argv[3], argv[4]);
  test_anomalies(argv[1], argv[4]);
  test_dense(argv[5]);
  test_prompts(argv[5]);
  test_pages(argv[5]);
  test_positions();
  test_conventions();
  test_parts(argv[1], argv[3]);
  if (num_failed == 0) printf("the C interface works\n");
  return num_failed == 0 ? 0 : 1;
}
