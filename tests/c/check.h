/* What the tests of the C interface share: checks without a test framework. */
#ifndef TESTS_C_CHECK_H
#define TESTS_C_CHECK_H

#include <stdio.h>

#include "vit/c.h"

extern int num_failed;

#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, vit_last_error()); \
      ++num_failed;                                                                                       \
    }                                                                                                     \
  } while (0)
#define OK(call) CHECK((call) == VIT_OK)
#define FAILS(call, expected) CHECK((call) == (expected) && vit_last_error()[0] == '[')

static inline vit_input path_input(const char* path) {
  vit_input input = {0};
  input.struct_size = sizeof input;
  input.kind = VIT_INPUT_PATH;
  input.path = path;
  return input;
}

void test_model(const char* path, const char* image);
void test_struct_sizes(const char* path);
void test_own_classes(const char* path, const char* image);
void test_texts(const char* path, const char* image, const char* file);
void test_anomalies(const char* path, const char* file);
void test_dense(const char* golden);
void test_prompts(const char* golden);
void test_pages(const char* golden);
void test_positions(void);
void test_conventions(void);
void test_parts(const char* path, const char* image);
void test_null(void);

#endif
