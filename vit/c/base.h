/* What all parts of the C interface share: status and message of a call, options, arrays, results.
 *
 * Calls return a vit_status; what they make comes through their last pointers, which stay as they were if the
 * call fails. NULL where an object or an array is needed is VIT_ERROR_ARGUMENT; every *_free takes NULL. No
 * exception leaves a call. Texts and paths are UTF-8 and end with a zero.
 *
 * Option structs start with struct_size, which must be sizeof the struct; zero is the default of every other
 * member, so `vit_model_options options = {0}; options.struct_size = sizeof options;` asks for nothing
 * special. A NULL pointer to options means all defaults. Newer releases add members at the end alone: a
 * program goes on with the struct that it was compiled with.
 *
 * Threads: models, text towers, tokenizers, preprocessors, classifiers and rope tables never change and may
 * be shared between threads; a session, a text encoder or a results object belongs to one thread at a time.
 * What an object was made from may be freed before it. */
#ifndef VIT_C_BASE_H
#define VIT_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "vit/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a call: VIT_OK, or the kind of failure; vit_last_error() tells it in words. */
typedef int32_t vit_status;
enum {
  VIT_OK = 0,
  VIT_ERROR_ARGUMENT = 1,    /* the call is wrong: a value out of range, a shape that does not fit */
  VIT_ERROR_IO = 2,          /* the system refused: a file is missing or unreadable, no more memory */
  VIT_ERROR_FORMAT = 3,      /* a file is damaged, truncated, or not what its name says */
  VIT_ERROR_UNSUPPORTED = 4, /* a well-formed file asks for something that is not implemented */
  VIT_ERROR_MISMATCH = 5,    /* files, or a file and an option, contradict each other */
  VIT_ERROR_INTERNAL = 6     /* a defect of the library */
};

/* "ok", "argument", "io", "format", "unsupported", "mismatch", "internal"; "unknown" for other values. */
VIT_API const char* vit_status_name(vit_status status);

/* Why the last call of this thread that failed did: one line that names the operation, the file or value,
 * what was expected and what was found. "" if none failed. Valid until another call of this thread fails. */
VIT_API const char* vit_last_error(void);

/* "major.minor.patch" of the library. */
VIT_API const char* vit_version(void);

/* Revision of this interface, to be compared by programs that load the library at run time: a program made
 * for revision n runs with every later one that has the same soname. */
#define VIT_C_REVISION 1
VIT_API int32_t vit_c_revision(void);

/* -------------------------------------------------------------------------------------------- arrays */

enum { VIT_FLOAT32 = 0, VIT_FLOAT64 = 1, VIT_UINT8 = 2, VIT_INT32 = 3 };

/* Numbers that the library owns, row-major without gaps. How long they live is told by who hands them out. */
typedef struct vit_array {
  const void* data;
  int32_t dtype; /* VIT_FLOAT32, ... */
  uint32_t ndim; /* 1 to 5 */
  size_t shape[5];
} vit_array;

/* Names of results. Letters: n inputs, h, w patches per column and row, T = prefix + h w tokens, C =
 * embed_dim, E = dimension of the space of images and texts, H, W pixels. They may be joined by | in a
 * request. */
enum {
  VIT_POOLED = 1,      /* (n, C) float32, the vector that the model's own library calls its embedding */
  VIT_PROJECTED = 2,   /* (n, E) float32, in the space of images and texts */
  VIT_CLS = 4,         /* (n, C) float32, class token after the final norm */
  VIT_PATCHES = 8,     /* (n, h, w, C) float32, patch tokens after the final norm */
  VIT_TOKENS = 16,     /* (n, T, C) float32, all tokens after the final norm, prefix first */
  VIT_EMBEDDED = 32,   /* (n, T, C) float32, tokens entering block 0 */
  VIT_LOGITS = 64,     /* (n, classes) float32 */
  VIT_BLOCK = 128,     /* (n, T, C) float32, all tokens after a block, before the final norm */
  VIT_ATTENTION = 256, /* (n, heads, T, T) float32, softmax probabilities of a block, rows are queries */
  VIT_PIXELS = 512,    /* (n, 3, H, W) float32, normalized: what the model sees */
  VIT_CROPPED = 1024,  /* (n, H, W, 3) uint8, before normalization */
  VIT_TEXT = 2048,     /* (n, E) float32, vectors of texts */
  VIT_IDS = 4096       /* (n, T) int32, token ids */
};

/* What a run gives, input by input. Used for another run it keeps its memory. */
typedef struct vit_results vit_results;

VIT_API vit_status vit_results_create(vit_results** results);
VIT_API void vit_results_free(vit_results* results);

/* Inputs of the last run; 0 before one, after a call that was wrong as a whole, and for NULL. */
VIT_API size_t vit_results_size(const vit_results* results);

/* Whether input `index` failed: its status, and in *message (which may be NULL) why; "" if it did not. The
 * message is valid until the results are used for another run or freed. */
VIT_API vit_status vit_results_status(const vit_results* results, size_t index, const char** message);

/* Height and width in pixels of input `index`, as decoded. 0 x 0 if it failed, and for texts. */
VIT_API vit_status vit_results_image_size(const vit_results* results, size_t index, size_t* height,
                                          size_t* width);

/* All inputs as one array, the shapes above; `block` counts for VIT_BLOCK and VIT_ATTENTION alone: the
 * number that the request has. A failed input is a row of NaN (zeros of integers). VIT_ERROR_MISMATCH if the
 * inputs gave different shapes, VIT_ERROR_ARGUMENT if `name` was not asked for or every input failed. Valid
 * until the results are used for another run or freed. */
VIT_API vit_status vit_results_all(const vit_results* results, uint32_t name, int64_t block,
                                   vit_array* array);

/* The array of one input, without the first dimension of the shapes above; valid as that of
 * vit_results_all(). The status of the input if it failed. */
VIT_API vit_status vit_results_one(const vit_results* results, size_t index, uint32_t name, int64_t block,
                                   vit_array* array);

#ifdef __cplusplus
}
#endif

#endif
