/* C interface: a checkpoint ready to run, and the preprocessing that belongs to it. What runs it is
 * session.h. */
#ifndef VIT_C_MODEL_H
#define VIT_C_MODEL_H

#include "vit/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VIT_PRECISION_FLOAT32 = 0, VIT_PRECISION_BFLOAT16 = 1, VIT_PRECISION_INT8 = 2 };
enum { VIT_RESAMPLER_AUTO = 0, VIT_RESAMPLER_PILLOW = 1, VIT_RESAMPLER_TORCHVISION = 2 };
enum { VIT_PILLOW_13_0 = 0, VIT_PILLOW_12_2 = 1, VIT_PILLOW_12_1 = 2 }; /* release whose bytes are made */
enum { VIT_EXIF_AUTO = 0, VIT_EXIF_APPLY = 1, VIT_EXIF_IGNORE = 2 };
enum { VIT_CHANNELS_AUTO = 0, VIT_CHANNELS_RGB = 1, VIT_CHANNELS_BGR = 2 };

/* How a model is loaded. 0 and NULL in every member but struct_size are the defaults. */
typedef struct vit_model_options {
  size_t struct_size;
  const char* architecture;     /* timm's or the publisher's name; bare weight files need it */
  const char* const* overrides; /* timm's model_args: key, value, key, value, ... */
  size_t num_overrides;         /* pairs */
  const char* layout;           /* JSON file that says what a checkpoint of no known layout is */
  const char* kernels;          /* a name that `vit info --kernels` lists; NULL: the fastest */
  int32_t precision;            /* VIT_PRECISION_FLOAT32, ...: of the blocks */
  int32_t resampler;            /* VIT_RESAMPLER_AUTO, ...; auto: as the checkpoint's library does */
  int32_t pillow;               /* VIT_PILLOW_13_0, ... */
  int32_t exif;                 /* VIT_EXIF_AUTO, ...: orientation of files; auto as above */
  int32_t channels;       /* VIT_CHANNELS_AUTO, ...: order of the planes that the model sees; auto as above */
  int32_t pads_to_square; /* not 0: images are put into a square of pad_color before the resize */
  uint8_t pad_color[4];   /* R, G, B, and 0 */
  const char* rope_scaling; /* none, linear, ntk or yarn[,key=value...]; NULL: as the checkpoint's library */
} vit_model_options;

/* Weights ready to run. Immutable: sessions of any threads may share one. */
typedef struct vit_model vit_model;

/* Loads a folder as downloaded or a single weight file. Errors: IO if it is missing, FORMAT, UNSUPPORTED or
 * MISMATCH if a file is not as it should be, naming file and tensor. */
VIT_API vit_status vit_model_load(const char* path, const vit_model_options* options, vit_model** model);
/* A model of a known architecture with seeded random weights, for tests and timings. */
VIT_API vit_status vit_model_random(const char* architecture, const vit_model_options* options,
                                    vit_model** model);
VIT_API void vit_model_free(vit_model* model);

/* Facts of a model. Texts live as long as the model. */
typedef struct vit_model_info {
  size_t struct_size;
  size_t image_height; /* native input, pixels */
  size_t image_width;
  size_t patch_size; /* pixels */
  size_t embed_dim;  /* C */
  size_t depth;      /* blocks */
  size_t num_heads;
  size_t num_prefix_tokens; /* class, distillation and register tokens */
  size_t projection_dim;    /* E of VIT_PROJECTED; 0: there is none */
  size_t num_classes;       /* 0: there is no classifier */
  int32_t has_class_token;
  int32_t has_pooled;
  int32_t has_preprocessing; /* whether images can be run; preprocessed pixels always can */
  int32_t precision;         /* VIT_PRECISION_FLOAT32, ... */
  const char* kernels;       /* name */
  const char* path;
  const char* fingerprint; /* 16 hexadecimal digits that tell models apart, whatever the precision */
  const char* config;      /* every value of the configuration as a JSON object */
  const char* preprocess;  /* every value of the preprocessing as a JSON object; NULL if no file tells */
} vit_model_info;

/* The caller sets info->struct_size; nothing beyond it is written. */
VIT_API vit_status vit_model_describe(const vit_model* model, vit_model_info* info);
/* Name of class `index` < num_classes, its number if the checkpoint has no names; lives as long as the model.
 */
VIT_API vit_status vit_model_label(const vit_model* model, size_t index, const char** label);

/* -------------------------------------------------------------------------------------------- inputs */

enum { VIT_INPUT_PATH = 0, VIT_INPUT_ENCODED = 1, VIT_INPUT_PIXELS = 2, VIT_INPUT_PREPROCESSED = 3 };
enum { VIT_RGB = 0, VIT_BGR = 1, VIT_RGBA = 2, VIT_BGRA = 3, VIT_GREY = 4 };

/* One input. Of several in an array all have the same struct_size. What it points at must live until the call
 * returns, and is not copied. */
typedef struct vit_input {
  size_t struct_size;
  int32_t kind;     /* VIT_INPUT_PATH, ... */
  int32_t format;   /* of PIXELS: VIT_RGB, ... */
  const char* path; /* of PATH: an image file */
  const void* data; /* ENCODED: the bytes of an image file; PIXELS: (height, width, 1, 3 or 4) bytes, rows
                       from the top; PREPROCESSED: (3, height, width) float32, normalized */
  size_t size;      /* of ENCODED: bytes */
  size_t height;    /* of PIXELS and PREPROCESSED, in pixels */
  size_t width;
  size_t row_stride; /* of PIXELS: bytes from one row to the next; 0: rows without gaps */
} vit_input;

/* --------------------------------------------------------------------------------------- preprocessing */

enum { VIT_SIZE_MODEL = 0, VIT_SIZE_NATIVE = 1, VIT_SIZE_FIXED = 2 };

/* The size that preprocessing makes. */
typedef struct vit_size_options {
  size_t struct_size;
  int32_t kind; /* VIT_SIZE_MODEL: the checkpoint's own; NATIVE: each image's size, edges floored to the patch
                   size; FIXED: the checkpoint's rules for another target */
  int32_t threads; /* of preprocessing; 0: all cores. Results do not depend on it. */
  size_t height;   /* of FIXED, pixels */
  size_t width;
} vit_size_options;

/* Images to the pixels that a model takes. */
typedef struct vit_preprocessor vit_preprocessor;

/* The preprocessing of a checkpoint; its configuration files suffice. MISMATCH if no file tells it. */
VIT_API vit_status vit_preprocessor_load(const char* path, const vit_model_options* options,
                                         const vit_size_options* size, vit_preprocessor** preprocessor);
/* That of a loaded model. */
VIT_API vit_status vit_preprocessor_create(const vit_model* model, const vit_size_options* size,
                                           vit_preprocessor** preprocessor);
VIT_API void vit_preprocessor_free(vit_preprocessor* preprocessor);

/* The rules in words, a few lines; lives as long as the preprocessor. NULL for NULL. */
VIT_API const char* vit_preprocessor_describe(const vit_preprocessor* preprocessor);

/* Preprocesses inputs of the kinds PATH, ENCODED and PIXELS. `stage` is VIT_PIXELS or VIT_CROPPED
 * (UNSUPPORTED for rules that resize in float and so have no 8-bit stage), and the name of what results hold.
 * Inputs that fail do not stop the others; the status is that of the first one that failed. */
VIT_API vit_status vit_preprocessor_run(const vit_preprocessor* preprocessor, const vit_input* inputs,
                                        size_t num_inputs, uint32_t stage, vit_results* results);

#ifdef __cplusplus
}
#endif

#endif
