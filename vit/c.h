/* The C interface of the library, for C99, C++ and other languages. It is kept compatible: newer
 * releases of one soname add functions, constants, and members at the end of option structs, and change
 * nothing else.
 * ```
 * #include <stdio.h>
 * #include <vit/c.h>
 *
 * vit_model* model = NULL;
 * vit_session* session = NULL;
 * vit_results* results = NULL;
 * vit_input input = {0};
 * vit_array array;
 * input.struct_size = sizeof input;
 * input.path = "photo.jpg";
 * if (vit_model_load("model", NULL, &model) || vit_session_create(model, NULL, &session) ||
 *     vit_results_create(&results) || vit_session_run(session, &input, 1, NULL, results) ||
 *     vit_results_all(results, VIT_POOLED, 0, &array))
 *   fprintf(stderr, "%s\n", vit_last_error());
 * vit_results_free(results);
 * vit_session_free(session);
 * vit_model_free(model);
 * ```
 * apps/examples/embed.c is a complete program.
 *
 * Calls return a vit_status; results are stored through their last pointers, which are unchanged if the
 * call fails. NULL for a required object or array is VIT_ERROR_ARGUMENT; every *_free accepts NULL. No
 * exception leaves a call. Texts and paths are UTF-8 and end with a zero.
 *
 * Option structs start with struct_size, which must be sizeof the struct; zero is the default of every other
 * member, so `vit_model_options options = {0}; options.struct_size = sizeof options;` selects the
 * defaults. A NULL pointer to options means all defaults. Newer releases add members only at the end: a
 * program continues to work with the struct that it was compiled with.
 *
 * Threads: models, text towers, tokenizers, preprocessors, classifiers and rope tables never change and may
 * be shared between threads; a session, a text encoder or a results object belongs to one thread at a time.
 * The objects that an object was created from may be freed before it. */
#ifndef VIT_C_H
#define VIT_C_H

#include <stddef.h>
#include <stdint.h>

/* Marks symbols exported from the shared library; empty for Windows, where the library is static. */
#ifndef VIT_API
#if defined(__GNUC__) && !defined(_WIN32)
#define VIT_API __attribute__((visibility("default")))
#else
#define VIT_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------- status */

/* Result of a call: VIT_OK, or the kind of failure; vit_last_error() describes it. */
typedef int32_t vit_status;
enum {
  VIT_OK = 0,                /* done */
  VIT_ERROR_ARGUMENT = 1,    /* the call is wrong: a value out of range, a shape mismatch */
  VIT_ERROR_IO = 2,          /* the system refused: a file is missing or unreadable, no more memory */
  VIT_ERROR_FORMAT = 3,      /* a file is damaged, truncated, or of another format than its name */
  VIT_ERROR_UNSUPPORTED = 4, /* a well-formed file needs something that is not implemented */
  VIT_ERROR_MISMATCH = 5,    /* files, or a file and an option, contradict each other */
  VIT_ERROR_INTERNAL = 6     /* a defect of the library */
};

/* "ok", "argument", "io", "format", "unsupported", "mismatch", "internal"; "unknown" for other values. */
VIT_API const char* vit_status_name(vit_status status);

/* The error message of the last failed call of this thread: one line with the operation, the file or value,
 * what was expected and what was found, 8191 bytes at most. "" if none failed. Valid until another call of
 * this thread fails. */
VIT_API const char* vit_last_error(void);

/* "major.minor.patch" of the library. */
VIT_API const char* vit_version(void);

/* Revision of this interface, to be compared by programs that load the library at run time: a program built
 * for revision n works with every later one that has the same soname. */
#define VIT_C_REVISION 1
/* The revision of the linked library. */
VIT_API int32_t vit_c_revision(void);

/* -------------------------------------------------------------------------------------------- arrays */

/* Types of the numbers in arrays. */
enum {
  VIT_FLOAT32 = 0, /* float */
  VIT_FLOAT64 = 1, /* double */
  VIT_UINT8 = 2,   /* uint8_t */
  VIT_INT32 = 3    /* int32_t */
};

/* Numbers owned by the library, row-major without gaps. Functions that return them document the lifetime. */
typedef struct vit_array {
  const void* data; /* the first number */
  int32_t dtype;    /* VIT_FLOAT32, ... */
  uint32_t ndim;    /* 1 to 5 */
  size_t shape[5];  /* the first ndim are used, outermost first */
} vit_array;

/* Names of results. Letters: n inputs, h, w patches per column and row, T = prefix + h w tokens, C =
 * embed_dim, E = dimension of the joint image-text space, H, W pixels. They may be combined with | in a
 * request. */
enum {
  VIT_POOLED = 1,      /* (n, C) float32, the embedding as defined by the model's own library */
  VIT_PROJECTED = 2,   /* (n, E) float32, in the joint space of images and texts */
  VIT_CLS = 4,         /* (n, C) float32, class token after the final norm */
  VIT_PATCHES = 8,     /* (n, h, w, C) float32, patch tokens after the final norm */
  VIT_TOKENS = 16,     /* (n, T, C) float32, all tokens after the final norm, prefix first */
  VIT_EMBEDDED = 32,   /* (n, T, C) float32, tokens entering block 0 */
  VIT_LOGITS = 64,     /* (n, classes) float32 */
  VIT_BLOCK = 128,     /* (n, T, C) float32, all tokens after a block, before the final norm */
  VIT_ATTENTION = 256, /* (n, heads, T, T) float32, softmax probabilities of a block, rows are queries */
  VIT_PIXELS = 512,    /* (n, 3, H, W) float32, normalized: the model input */
  VIT_CROPPED = 1024,  /* (n, H, W, 3) uint8, before normalization */
  VIT_TEXT = 2048,     /* (n, E) float32, vectors of texts */
  VIT_IDS = 4096,      /* (n, T) int32, token ids */
  /* (n, T) float32, attention rollout from the first token at the last block (Abnar and Zuidema 2020) */
  VIT_ROLLOUT = 1 << 14,
  VIT_MERGED = 1 << 15,            /* (n, h', w', V) float32, visual tokens that a language model gets */
  VIT_ANOMALY_SCORE = 1 << 24,     /* (n, 1) float32, of vit_anomaly_run() */
  VIT_ANOMALY_DISTANCES = 1 << 25, /* (n, h, w) float32, 1 - cosine to the nearest good patch */
  /* of dense heads, at the size of each image; these are no bits to be joined */
  VIT_DEPTH = 1 << 26,        /* (n, H, W) float32, of vit_session_depth() */
  VIT_NORMALS = 1 << 27,      /* (n, 3, H, W) float32, of models that have them */
  VIT_SEGMENTATION = 1 << 28, /* (n, H, W) int32, id of each pixel's segment, -1 = none, of
                                 vit_session_segment() */
  VIT_BOXES = 1 << 29,        /* (n, m, 4) float32, x0, y0, x1, y1 in pixels; m differs from image to image */
  VIT_SCORES = (1 << 29) + 1, /* (n, m) float32, of boxes or segments; NaN where there is none */
  VIT_CLASSES = (1 << 29) + 2,      /* (n, m) int32, of boxes or segments */
  VIT_KEYPOINTS = (1 << 29) + 3,    /* (n, m, K, 3) float32, x, y in pixels and the score */
  VIT_SEGMENT_IDS = (1 << 29) + 4,  /* (n, m) int32, the numbers of segments in VIT_SEGMENTATION */
  VIT_AREAS = (1 << 29) + 5,        /* (n, m) int32, pixels of segments */
  VIT_PROBABILITIES = (1 << 29) + 6 /* (n, K, H, W) float32, of classes of pixels */
};

/* The results of a run, input by input. Reused for another run, it keeps its memory. */
typedef struct vit_results vit_results;

/* Results without inputs, to be filled by a run. */
VIT_API vit_status vit_results_create(vit_results** results);
/* Frees the results and every array obtained from them. */
VIT_API void vit_results_free(vit_results* results);

/* Number of inputs of the last run; 0 before one, after a call with wrong arguments, and for NULL. */
VIT_API size_t vit_results_size(const vit_results* results);

/* Whether input `index` failed: its status, and in *message (may be NULL) the reason; "" if it did not. The
 * message is valid until the results are used for another run or freed. vit_last_error() stays as it is. */
VIT_API vit_status vit_results_status(const vit_results* results, size_t index, const char** message);

/* Height and width in pixels of input `index`, as decoded. 0 x 0 if it failed, and for texts. */
VIT_API vit_status vit_results_image_size(const vit_results* results, size_t index, size_t* height,
                                          size_t* width);

/* All inputs as one array, the shapes above; `block` is used only for VIT_BLOCK and VIT_ATTENTION: the
 * number in the request. A failed input is a row of NaN (zeros for integers). VIT_ERROR_MISMATCH if the
 * inputs have different shapes, VIT_ERROR_ARGUMENT if `name` was not requested or every input failed. Valid
 * until the results are used for another run or freed. */
VIT_API vit_status vit_results_all(const vit_results* results, uint32_t name, int64_t block,
                                   vit_array* array);

/* The array of one input, without the first dimension of the shapes above; valid as long as that of
 * vit_results_all(). Returns the status of the input if it failed. */
VIT_API vit_status vit_results_one(const vit_results* results, size_t index, uint32_t name, int64_t block,
                                   vit_array* array);

/* --------------------------------------------------------------------------------------------- models */

/* A checkpoint ready to run, and its preprocessing. */

/* Precision of the matrix products of the blocks. */
enum {
  VIT_PRECISION_FLOAT32 = 0,  /* as stored, or widened */
  VIT_PRECISION_BFLOAT16 = 1, /* weights rounded to bfloat16 while loading */
  VIT_PRECISION_INT8 = 2      /* weights quantized to 8 bits while loading */
};
/* The library whose resizing is reproduced. */
enum {
  VIT_RESAMPLER_AUTO = 0,       /* that of the checkpoint's library */
  VIT_RESAMPLER_PILLOW = 1,     /* Pillow's 8-bit passes */
  VIT_RESAMPLER_TORCHVISION = 2 /* torch's 8-bit kernel */
};
/* Pillow release whose bytes are reproduced: the order of its passes changed. */
enum {
  VIT_PILLOW_13_0 = 0, /* from 13.0 */
  VIT_PILLOW_12_2 = 1, /* 12.2 */
  VIT_PILLOW_12_1 = 2  /* up to 12.1 */
};
/* Treatment of the EXIF orientation. */
enum {
  VIT_EXIF_AUTO = 0,  /* as the checkpoint's library does */
  VIT_EXIF_APPLY = 1, /* images are rotated upright */
  VIT_EXIF_IGNORE = 2 /* pixels as stored */
};
/* Order of the planes of the model's input. */
enum {
  VIT_CHANNELS_AUTO = 0, /* as the checkpoint says */
  VIT_CHANNELS_RGB = 1,  /* R, G, B */
  VIT_CHANNELS_BGR = 2   /* B, G, R */
};

/* Whose rules say to which size an image is brought for a head that gives maps. */
enum {
  VIT_RESIZE_RULE_AUTO = 0,      /* those of whoever wrote the files */
  VIT_RESIZE_RULE_LIBRARY = 1,   /* transformers' */
  VIT_RESIZE_RULE_REPOSITORY = 2 /* the publisher's code */
};

/* How a model is loaded. 0 and NULL in every member but struct_size are the defaults. */
typedef struct vit_model_options {
  size_t struct_size;           /* sizeof the struct, set by the caller */
  const char* architecture;     /* timm's or the publisher's name; needed for bare weight files */
  const char* const* overrides; /* timm's model_args: key, value, key, value, ... */
  size_t num_overrides;         /* pairs */
  const char* layout;           /* JSON file that describes a checkpoint of a custom layout */
  const char* kernels;          /* a name listed by `vit info --kernels`; NULL: the fastest */
  int32_t precision;            /* VIT_PRECISION_FLOAT32, ...: of the blocks */
  int32_t resampler;            /* VIT_RESAMPLER_AUTO, ...; auto: as the checkpoint's library does */
  int32_t pillow;               /* VIT_PILLOW_13_0, ... */
  int32_t exif;                 /* VIT_EXIF_AUTO, ...: orientation of files; auto as above */
  int32_t channels;             /* VIT_CHANNELS_AUTO, ...: order of the planes of the input; auto as above */
  int32_t pads_to_square;       /* not 0: images are padded to a square with pad_color before resizing */
  uint8_t pad_color[4];         /* R, G, B, and 0 */
  const char* rope_scaling; /* none, linear, ntk or yarn[,key=value...]; NULL: as the checkpoint's library */
  size_t max_pixels;        /* of an image file, larger ones are errors; 0: 178956970 */
  const char* adapter;      /* folder of a LoRA adapter that is joined to the weights; NULL: none */
  const char* prefix; /* which of several models in one file; NULL: the averaged, else the teacher, else the
                         only one */
  size_t min_area; /* limits of the area of an image in pixels, instead of the processor's (Qwen-VL, ...) */
  size_t max_area; /* 0 both: as the checkpoint says */
  const double*
      mean; /* of pixels in [0, 1], one for each channel or one for all; NULL: as the checkpoint says */
  size_t num_means;  /* numbers at mean */
  const double* std; /* as mean */
  size_t num_stds;   /* numbers at std */
  const char*
      dense_head; /* a publisher's file of a head that gives maps, joined to the backbone; NULL: none */
  const size_t* dense_taps;   /* blocks that this head reads, from 0; NULL: as published */
  size_t num_dense_taps;      /* numbers at dense_taps */
  float dense_depth_range[2]; /* least and most of bins of depth, metres; 0 both: as published */
  float dense_max_depth;      /* of metric depth, metres; 0: as published */
  int32_t dense_resize_rule;  /* VIT_RESIZE_RULE_AUTO, ...: whose sizes images of such a head have */
  size_t dense_expert;        /* of models with experts: index of the data set (ViTPose+: 0 = COCO) */
  size_t clip_frames;         /* not 0: preprocessing is that of clips of so many frames (VIT_INPUT_CLIP) */
} vit_model_options;

/* Weights ready to run. Immutable: sessions of any threads may share it. */
typedef struct vit_model vit_model;

/* Loads a folder as downloaded or a single weight file. Errors: IO if it is missing, FORMAT, UNSUPPORTED or
 * MISMATCH if a file is invalid, naming file and tensor. */
VIT_API vit_status vit_model_load(const char* path, const vit_model_options* options, vit_model** model);
/* A model of a known architecture with seeded random weights, for tests and timings. */
VIT_API vit_status vit_model_random(const char* architecture, const vit_model_options* options,
                                    vit_model** model);
/* Frees the model; the weights are freed with the last object created from them. */
VIT_API void vit_model_free(vit_model* model);

/* Properties of a model. Strings live as long as the model. */
typedef struct vit_model_info {
  size_t struct_size;        /* sizeof the struct, set by the caller */
  size_t image_height;       /* native input, pixels */
  size_t image_width;        /* native input, pixels */
  size_t patch_size;         /* pixels */
  size_t embed_dim;          /* C: channels of a token */
  size_t depth;              /* blocks */
  size_t num_heads;          /* of each block */
  size_t num_prefix_tokens;  /* class, distillation and register tokens */
  size_t projection_dim;     /* E of VIT_PROJECTED; 0: there is none */
  size_t num_classes;        /* 0: there is no classifier */
  int32_t has_class_token;   /* not 0: VIT_CLS can be requested */
  int32_t has_pooled;        /* not 0: VIT_POOLED can be requested */
  int32_t has_preprocessing; /* whether images can be run; preprocessed pixels always can */
  int32_t precision;         /* VIT_PRECISION_FLOAT32, ... */
  const char* kernels;       /* name */
  const char* path;          /* as it was given to load */
  const char* fingerprint;   /* 16 hexadecimal digits that identify the model, independent of the precision */
  const char* config;        /* every value of the configuration as a JSON object */
  const char* preprocess;    /* all values of the preprocessing as a JSON object; NULL if undefined */
} vit_model_info;

/* Gets the properties of a model. The caller sets info->struct_size; nothing beyond it is written. */
VIT_API vit_status vit_model_describe(const vit_model* model, vit_model_info* info);
/* Name of class `index` < num_classes, its number if the checkpoint has no names; lives as long as the model.
 */
VIT_API vit_status vit_model_label(const vit_model* model, size_t index, const char** label);

/* -------------------------------------------------------------------------------------------- inputs */

/* Kinds of inputs. */
enum {
  VIT_INPUT_PATH = 0,         /* an image file */
  VIT_INPUT_ENCODED = 1,      /* an image file in memory */
  VIT_INPUT_PIXELS = 2,       /* 8-bit pixels */
  VIT_INPUT_PREPROCESSED = 3, /* normalized planes, float32 */
  VIT_INPUT_CLIP = 4          /* the frames of a clip, for models loaded with clip_frames */
};
/* Order of the bytes of a pixel. */
enum {
  VIT_RGB = 0,        /* R, G, B */
  VIT_BGR = 1,        /* B, G, R */
  VIT_RGBA = 2,       /* R, G, B, alpha */
  VIT_BGRA = 3,       /* B, G, R, alpha */
  VIT_GRAY = 4,       /* one byte */
  VIT_GREY = VIT_GRAY /* its name up to 0.2 */
};

/* One input. All inputs of an array have one struct_size. The memory it points to must live until the call
 * returns, and is not copied. */
typedef struct vit_input {
  size_t struct_size; /* sizeof the struct, set by the caller */
  int32_t kind;       /* VIT_INPUT_PATH, ... */
  int32_t format;     /* of PIXELS: VIT_RGB, ... */
  const char* path;   /* of PATH: an image file */
  const void* data;   /* ENCODED: the bytes of an image file; PIXELS: (height, width, 1, 3 or 4) bytes, rows
                         from the top; PREPROCESSED: (3, height, width) float32, normalized (num_channels
                         of the model's config for 3) */
  size_t size;        /* of ENCODED: bytes */
  size_t height;      /* of PIXELS and PREPROCESSED, in pixels */
  size_t width;       /* the same */
  size_t row_stride;  /* of PIXELS: bytes from one row to the next; 0: rows without gaps */
  const struct vit_input* frames; /* of CLIP: images in order, of which clip_frames are taken as the model's
                                     video processor takes them; of one size */
  size_t num_frames;              /* of CLIP; of PREPROCESSED: images at data, one after the other (0: 1) */
} vit_input;

/* --------------------------------------------------------------------------------------- preprocessing */

/* Rules for the size of preprocessed images. */
enum {
  VIT_SIZE_MODEL = 0,  /* the checkpoint's own */
  VIT_SIZE_NATIVE = 1, /* each image's own, edges floored to the patch size */
  VIT_SIZE_FIXED = 2   /* the checkpoint's rules for another target */
};

/* The size of preprocessed images. */
typedef struct vit_size_options {
  size_t struct_size; /* sizeof the struct, set by the caller */
  int32_t kind;       /* VIT_SIZE_MODEL, ... */
  int32_t threads;    /* of preprocessing; 0: all cores. Results do not depend on it. */
  size_t height;      /* of FIXED, pixels */
  size_t width;       /* of FIXED, pixels */
} vit_size_options;

/* Converts images to the input of a model. */
typedef struct vit_preprocessor vit_preprocessor;

/* The preprocessing of a checkpoint; its configuration files suffice. MISMATCH if no file defines it. */
VIT_API vit_status vit_preprocessor_load(const char* path, const vit_model_options* options,
                                         const vit_size_options* size, vit_preprocessor** preprocessor);
/* The preprocessing of a loaded model. */
VIT_API vit_status vit_preprocessor_create(const vit_model* model, const vit_size_options* size,
                                           vit_preprocessor** preprocessor);
/* Frees the preprocessor and its description. */
VIT_API void vit_preprocessor_free(vit_preprocessor* preprocessor);

/* The rules in words, a few lines; lives as long as the preprocessor. NULL for NULL. */
VIT_API const char* vit_preprocessor_describe(const vit_preprocessor* preprocessor);

/* Preprocesses inputs of the kinds PATH, ENCODED, PIXELS and CLIP. `stage` is VIT_PIXELS or VIT_CROPPED
 * (UNSUPPORTED for rules that resize in float and so have no 8-bit stage), and the name of the results.
 * Inputs that fail do not stop the others; the status is that of the first one that failed. */
VIT_API vit_status vit_preprocessor_run(const vit_preprocessor* preprocessor, const vit_input* inputs,
                                        size_t num_inputs, uint32_t stage, vit_results* results);

/* ---------------------------------------------------------------------------------------------- texts */

/* Converts texts to token ids and to vectors in the joint space of images and texts. */

/* Library whose text cleaning applies; auto: the library of the folder. */
enum {
  VIT_TEXT_LIBRARY_AUTO = 0,         /* open_clip if its configuration exists, else transformers */
  VIT_TEXT_LIBRARY_TRANSFORMERS = 1, /* transformers 5 */
  VIT_TEXT_LIBRARY_OPEN_CLIP = 2,    /* open_clip 3, perception_models */
  VIT_TEXT_LIBRARY_OPENAI = 3        /* openai/CLIP, dino.txt */
};

/* How a text tower is loaded. 0 and NULL in every member except struct_size are the defaults. */
typedef struct vit_text_options {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  const char* architecture; /* as in vit_model_options */
  const char* tokenizer;    /* supplies the vocabulary if a model has none: a folder, or a file with
                               CLIP's merges */
  const char* kernels;      /* as in vit_model_options */
  int32_t library;          /* VIT_TEXT_LIBRARY_AUTO, ... */
  int32_t precision;        /* VIT_PRECISION_FLOAT32, ... */
} vit_text_options;

/* A checkpoint's text tower with its tokenizer. */
typedef struct vit_text_tower vit_text_tower;

/* Loads the text tower of a checkpoint. UNSUPPORTED if it has none, IO if its tokenizer is missing, others as
 * vit_model_load(). */
VIT_API vit_status vit_text_tower_load(const char* path, const vit_text_options* options,
                                       vit_text_tower** tower);
/* Both towers of a checkpoint, whose files are opened once. */
VIT_API vit_status vit_model_and_text_load(const char* path, const vit_model_options* options,
                                           const vit_text_options* text_options, vit_model** model,
                                           vit_text_tower** tower);
/* Frees the tower; the weights are freed with the last object created from them. */
VIT_API void vit_text_tower_free(vit_text_tower* tower);

/* Working memory and settings of one thread over a text tower that several may share. */
typedef struct vit_text_encoder vit_text_encoder;

/* An encoder over a tower. `threads`: 0 = all cores; vectors do not depend on it. */
VIT_API vit_status vit_text_encoder_create(const vit_text_tower* tower, int32_t threads,
                                           vit_text_encoder** encoder);
/* Frees the encoder. */
VIT_API void vit_text_encoder_free(vit_text_encoder* encoder);

/* Vectors of texts as VIT_TEXT (n, E). `sizes`: bytes of each text, NULL if all end with a zero. `normalize`:
 * not 0 divides them by their length. ARGUMENT for a text that is not UTF-8. Texts longer than the context
 * are truncated as in the model's library; *num_cut (may be NULL) is their number. */
VIT_API vit_status vit_text_encoder_run(vit_text_encoder* encoder, const char* const* texts,
                                        const size_t* sizes, size_t num_texts, int32_t normalize,
                                        vit_results* results, size_t* num_cut);

/* --------------------------------------------------------------------------------------------- tokens */

/* Converts texts to token ids. */
typedef struct vit_tokenizer vit_tokenizer;

/* Loads a folder as published, or a file with CLIP's merges. `library`: VIT_TEXT_LIBRARY_AUTO, ... */
VIT_API vit_status vit_tokenizer_load(const char* path, int32_t library, vit_tokenizer** tokenizer);
/* The tokenizer of a model, with its context length. `path` supplies the vocabulary if the model
 * has none; NULL otherwise. */
VIT_API vit_status vit_tokenizer_load_for_model(const char* model, const char* path, int32_t library,
                                                vit_tokenizer** tokenizer);
/* The tokenizer of a loaded text tower. */
VIT_API vit_status vit_tokenizer_create(const vit_text_tower* tower, vit_tokenizer** tokenizer);
/* Frees the tokenizer and the tokens obtained from it. */
VIT_API void vit_tokenizer_free(vit_tokenizer* tokenizer);

/* Context length of the model; 0 if unknown, and for NULL. */
VIT_API size_t vit_tokenizer_context_length(const vit_tokenizer* tokenizer);

/* Ids as VIT_IDS: padded and truncated to `context_length`; 0: neither, each text has its own length.
 * Texts as in vit_text_encoder_run(); one that is not UTF-8 does not stop the others. */
VIT_API vit_status vit_tokenizer_run(const vit_tokenizer* tokenizer, const char* const* texts,
                                     const size_t* sizes, size_t num_texts, size_t context_length,
                                     vit_results* results);

/* The token of an id as spelled in the vocabulary, not zero-terminated: *token, of *size bytes, 0 if
 * there is none. Lives as long as the tokenizer. */
VIT_API vit_status vit_tokenizer_token(const vit_tokenizer* tokenizer, int32_t id, const char** token,
                                       size_t* size);

/* ------------------------------------------------------------------------------------------- sessions */

/* Runs images through a model. */

/* Settings of a session. */
typedef struct vit_session_options {
  size_t struct_size; /* sizeof the struct, set by the caller */
  int32_t threads;    /* that decode or compute, at most 1024; 0: all cores. Results do not depend on it. */
  int32_t size_kind;  /* size of preprocessed images: VIT_SIZE_MODEL, ... of vit_size_options */
  size_t height;      /* of VIT_SIZE_FIXED, pixels */
  size_t width;       /* of VIT_SIZE_FIXED, pixels */
  size_t batch;       /* images of a forward pass; 0: chosen from their size. Results do not depend on it. */
} vit_session_options;

/* Working memory and settings of one thread over a model that several may share. */
typedef struct vit_session vit_session;

/* A session over a model. ARGUMENT for a number of threads or a size out of range. */
VIT_API vit_status vit_session_create(const vit_model* model, const vit_session_options* options,
                                      vit_session** session);
/* Frees the session. */
VIT_API void vit_session_free(vit_session* session);

/* The outputs of a run. An empty request means VIT_MERGED if the model has it, else VIT_PROJECTED, else
 * VIT_POOLED, else VIT_PATCHES, as `vit embed` does. */
typedef struct vit_request {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  uint32_t features;        /* VIT_POOLED | VIT_CLS | ...: all but VIT_BLOCK and VIT_ATTENTION */
  int32_t normalize;        /* not 0: vectors (all of shape (n, C)) are divided by their length */
  const int64_t* blocks;    /* numbers of blocks for VIT_BLOCK, negative ones from the end */
  size_t num_blocks;        /* of blocks */
  const int64_t* attention; /* numbers of blocks for VIT_ATTENTION */
  size_t num_attention;     /* of attention */
} vit_request;

/* Runs inputs of any kinds and sizes; results are in input order. Failed inputs (a missing or damaged
 * file, numbers that are not finite) do not stop the others; the status is that of the first one that failed,
 * and vit_results_status() gives each. Requesting an output that the model lacks is VIT_ERROR_ARGUMENT or
 * VIT_ERROR_MISMATCH, and nothing is run. */
VIT_API vit_status vit_session_run(vit_session* session, const vit_input* inputs, size_t num_inputs,
                                   const vit_request* request, vit_results* results);

/* -------------------------------------------------------------------------------------------- classes */

/* Classes for the images of one model: its own, a fitted head's, or texts. */
typedef struct vit_classifier vit_classifier;

/* The classes of the checkpoint. MISMATCH if it has no classifier. */
VIT_API vit_status vit_classifier_create(const vit_model* model, vit_classifier** classifier);
/* A head from `vit fit`. MISMATCH if it was fitted on features of another model. */
VIT_API vit_status vit_classifier_load_head(const vit_model* model, const char* path,
                                            vit_classifier** classifier);
/* Texts as classes. `templates` contain {} for the name of a class; the normalized vectors of several are
 * averaged and normalized again, as open_clip does. No templates: "This is a photo of {}.". ARGUMENT for no
 * names, an empty or duplicate name, and a template without {}. */
VIT_API vit_status vit_classifier_create_zero_shot(const vit_model* model, vit_text_encoder* encoder,
                                                   const char* const* names, size_t num_names,
                                                   const char* const* templates, size_t num_templates,
                                                   vit_classifier** classifier);
/* Vectors of texts from a file: vit_classifier_save_vectors() or `vit embed --text-file --template`. */
VIT_API vit_status vit_classifier_load_vectors(const vit_model* model, const char* path,
                                               vit_classifier** classifier);
/* Writes the vectors of a zero-shot classifier, atomically: safetensors with the tensor `text` (K, E) and the
 * names in the metadata. */
VIT_API vit_status vit_classifier_save_vectors(const vit_classifier* classifier, const char* path);
/* Frees the classifier and the names obtained from it. */
VIT_API void vit_classifier_free(vit_classifier* classifier);

/* Number of classes K; 0 for NULL. */
VIT_API size_t vit_classifier_size(const vit_classifier* classifier);
/* Name of class `index`; lives as long as the classifier. */
VIT_API vit_status vit_classifier_label(const vit_classifier* classifier, size_t index, const char** label);

/* A value for each class as VIT_LOGITS (n, K), by a session over the same model. See vit_session_run(). */
VIT_API vit_status vit_classifier_run(const vit_classifier* classifier, vit_session* session,
                                      const vit_input* inputs, size_t num_inputs, vit_results* results);

/* A class and its probability. */
typedef struct vit_prediction {
  size_t index;      /* of the class */
  const char* label; /* name, or the index if there is none */
  float probability; /* softmax over all classes; the sigmoid or the value itself for models trained so */
  float logit;       /* output of the model */
} vit_prediction;

/* The most probable classes of input `index` of a run of this classifier, best first, ties in class
 * order. Writes at most `top` predictions, and their number to *count. Labels live like the classifier. */
VIT_API vit_status vit_classifier_top(const vit_classifier* classifier, const vit_results* results,
                                      size_t index, size_t top, vit_prediction* predictions, size_t* count);

/* ------------------------------------------------------------------------------------------ anomalies */

/* How the distances of patches are combined into the score of an image. */
enum {
  VIT_SCORE_TOP_PERCENT = 0, /* mean of the largest 1 % of the distances (AnomalyDINO) */
  VIT_SCORE_MAXIMUM = 1,     /* the largest distance */
  VIT_SCORE_REWEIGHTED = 2   /* PatchCore, equation 7 */
};

/* Settings of a bank of good patches. Zeros mean the defaults of `vit anomaly fit`. */
typedef struct vit_anomaly_options {
  size_t struct_size;      /* sizeof the struct, set by the caller */
  const int64_t* layers;   /* blocks whose tokens are the features, negative ones from the end; none: the
                            * patches after the final norm */
  size_t num_layers;       /* of layers */
  size_t neighborhood;     /* edge of the square of patches that are averaged, odd; 0: 1 */
  double coreset_fraction; /* of the patches that are kept, above 0 and at most 1; 0: all */
  size_t coreset_count;    /* patches that are kept; 0: by the fraction */
  double quantile;         /* of held-out scores, the threshold; 0: 0.95 */
  int32_t score;           /* VIT_SCORE_TOP_PERCENT, ... */
  int32_t foreground;      /* not 0: the background by the first principal component is excluded */
} vit_anomaly_options;

/* Patch features of good images, with which others are compared. */
typedef struct vit_anomaly vit_anomaly;

/* A bank built from good images by the session. The status is that of the first failed input; then there is
 * no bank. */
VIT_API vit_status vit_anomaly_fit(vit_session* session, const vit_input* good, size_t num_good,
                                   const vit_anomaly_options* options, vit_anomaly** anomaly);
/* A bank from vit_anomaly_save() or `vit anomaly fit`. MISMATCH if it belongs to another model. */
VIT_API vit_status vit_anomaly_load(const vit_model* model, const char* path, vit_anomaly** anomaly);
/* Writes the bank to a safetensors file, atomically. */
VIT_API vit_status vit_anomaly_save(const vit_anomaly* anomaly, const char* path);
/* Frees the bank. */
VIT_API void vit_anomaly_free(vit_anomaly* anomaly);

/* The score above which an image is anomalous, and the confidence that the share `quantile` of good images
 * is at or below it; NaN and 0 if no image could be held out. Either pointer may be NULL. */
VIT_API vit_status vit_anomaly_threshold(const vit_anomaly* anomaly, float* threshold, double* confidence);

/* VIT_ANOMALY_SCORE and VIT_ANOMALY_DISTANCES of inputs, by a session over the bank's model with the size of
 * its images. Otherwise as vit_session_run(). */
VIT_API vit_status vit_anomaly_run(const vit_anomaly* anomaly, vit_session* session, const vit_input* inputs,
                                   size_t num_inputs, vit_results* results);

/* ------------------------------------------------------------------------------------ classes of pixels */

/* How labels are predicted from features. */
enum {
  VIT_FIT_LOGISTIC = 0, /* multinomial logistic regression */
  VIT_FIT_KNN = 1,      /* nearest neighbors by cosine */
  VIT_FIT_CENTROID = 2  /* nearest centroid */
};
/* How the features of patches become those of pixels. */
enum {
  VIT_UPSAMPLE_BILINEAR = 0, /* between the centers of patches */
  VIT_UPSAMPLE_SHIFT = 1,    /* of several passes, for which the image is moved by parts of a patch */
  VIT_UPSAMPLE_GUIDED = 2,   /* along the edges of the image */
  VIT_UPSAMPLE_LEARNED = 3   /* by the network in the file `upsampler` */
};

/* Settings of a classifier of pixels. Zeros mean the defaults of `vit fit --truth`. */
typedef struct vit_pixel_options {
  size_t struct_size;    /* sizeof the struct, set by the caller */
  const int64_t* layers; /* blocks whose features are joined, negative ones from the end; none: the patches
                            after the final norm */
  size_t num_layers;     /* of layers */
  const double* scales;  /* features at these multiples of the size are joined; none: 1 */
  size_t num_scales;     /* of scales */
  int32_t size_kind;     /* VIT_SIZE_MODEL, ...; but for NATIVE the whole image is shown, without crop */
  int32_t upsampling;    /* VIT_UPSAMPLE_BILINEAR, ... */
  size_t height;         /* of FIXED, pixels */
  size_t width;          /* of FIXED, pixels */
  size_t shifts;         /* of SHIFT: passes along each axis; 0: 2 */
  int32_t color;         /* not 0: red, green and blue of the pixel are features, too */
  int32_t method;        /* VIT_FIT_LOGISTIC, ... */
  size_t neighbors;      /* of KNN; 0: 20 */
  double strength;       /* of LOGISTIC: C of scikit-learn; 0: by cross-validation */
  int32_t threads;       /* 0: all cores. Results do not depend on it. */
  const char* upsampler; /* of LEARNED: the published file of NAF, AnyUp or JAFAR; else NULL */
} vit_pixel_options;

/* Classes of pixels, and the working memory for them: for one thread at a time. */
typedef struct vit_pixels vit_pixels;

/* Learns from the labeled pixels of images: labels[i] is VIT_INT32 (height, width) of image i as decoded, a
 * class from 0, or -1 = not labeled. `names` of the classes, or NULL with 0: their numbers. Preprocessed
 * pixels and clips are refused. */
VIT_API vit_status vit_pixels_fit(const vit_model* model, const vit_input* images, const vit_array* labels,
                                  size_t num_images, const char* const* names, size_t num_names,
                                  const vit_pixel_options* options, vit_pixels** pixels);
/* Those of vit_pixels_save() or `vit fit --truth`. MISMATCH if they belong to another model. `threads`: 0:
 * all cores. */
VIT_API vit_status vit_pixels_load(const vit_model* model, const char* path, int32_t threads,
                                   vit_pixels** pixels);
/* The same, with the file of the learned upsampler that they belong to, if it is no longer where it was;
 * another one is a MISMATCH. */
VIT_API vit_status vit_pixels_load_upsampled(const vit_model* model, const char* path, const char* upsampler,
                                             int32_t threads, vit_pixels** pixels);
/* Writes them to a safetensors file, atomically. */
VIT_API vit_status vit_pixels_save(const vit_pixels* pixels, const char* path);
/* Frees them. */
VIT_API void vit_pixels_free(vit_pixels* pixels);

/* Number of classes; 0 for NULL. */
VIT_API size_t vit_pixels_size(const vit_pixels* pixels);
/* Name of class `index`, valid as long as the classes. */
VIT_API vit_status vit_pixels_label(const vit_pixels* pixels, size_t index, const char** label);
/* Mean IoU of the cross-validation; NaN if there was none. *held_out (may be NULL): 0 nothing, 1 strokes, 2
 * images. */
VIT_API vit_status vit_pixels_iou(const vit_pixels* pixels, double* iou, int32_t* held_out);

/* VIT_SEGMENTATION of images, and VIT_PROBABILITIES if `probabilities` is not 0. A failed image does not stop
 * the others; the status is that of the first one. */
VIT_API vit_status vit_pixels_run(vit_pixels* pixels, const vit_input* inputs, size_t num_inputs,
                                  int32_t probabilities, vit_results* results);

/* ------------------------------------------------------------------------------------------ dense heads */

/* What the head of a model gives for each image, at the size of the image: depth, classes of pixels, boxes,
 * keypoints. Each call is as vit_session_run(), and MISMATCH for a model whose head does not give it. */

/* What depths are. */
enum {
  VIT_DEPTH_METRE = 0,   /* distances, larger is farther */
  VIT_DEPTH_INVERSE = 1, /* affine-invariant inverse depth: larger is nearer */
  VIT_DEPTH_RELATIVE = 2 /* affine-invariant depth: larger is farther */
};

/* What the depths of a model are: VIT_DEPTH_METRE, ... */
VIT_API vit_status vit_model_depth_unit(const vit_model* model, int32_t* unit);
/* Names that the head of a model has, of classes of pixels or boxes, or of keypoints: how many; 0 for heads
 * without names, and for NULL. */
VIT_API size_t vit_model_num_head_labels(const vit_model* model);
/* One of them; lives as long as the model. */
VIT_API vit_status vit_model_head_label(const vit_model* model, size_t index, const char** label);

/* VIT_DEPTH, and VIT_NORMALS where the model has them. */
VIT_API vit_status vit_session_depth(vit_session* session, const vit_input* inputs, size_t num_inputs,
                                     vit_results* results);

/* What segments are. */
enum {
  VIT_SEGMENT_AUTO = 0,     /* what the model's files are made for */
  VIT_SEGMENT_SEMANTIC = 1, /* a class of each pixel; ids are classes, and segments have no score */
  VIT_SEGMENT_INSTANCE = 2, /* things, each with its class; pixels may belong to none */
  VIT_SEGMENT_PANOPTIC = 3  /* things and stuff; each pixel belongs to one segment or none */
};

/* How masks of queries become segments, as transformers' post-processing has it (EoMT). In a number below, 0
 * is the default and a negative number stands for 0. */
typedef struct vit_segment_options {
  size_t struct_size;    /* sizeof the struct, set by the caller */
  double threshold;      /* of a segment's score (instance, panoptic); 0: 0.8 */
  double mask_threshold; /* of a pixel's probability (panoptic); 0: 0.5 */
  double overlap;        /* share of a mask that must be left to its segment (panoptic); 0: 0.8 */
  const size_t* stuff;   /* classes whose segments are one (panoptic); NULL: none */
  size_t num_stuff;      /* numbers at stuff */
  int32_t task;          /* VIT_SEGMENT_AUTO, ... */
  int32_t reserved;      /* 0 */
} vit_segment_options;

/* VIT_SEGMENTATION, and of each segment in it VIT_SEGMENT_IDS, VIT_CLASSES, VIT_SCORES and VIT_AREAS. NULL
 * options: the defaults. MISMATCH for instances and panoptic segments of a head without masks. */
VIT_API vit_status vit_session_segment(vit_session* session, const vit_input* inputs, size_t num_inputs,
                                       const vit_segment_options* options, vit_results* results);

/* A box in an image, in pixels from its upper left corner. */
typedef struct vit_box {
  double x0; /* left edge, pixels */
  double y0; /* upper edge */
  double x1; /* right edge, x0 < x1 */
  double y1; /* lower edge, y0 < y1 */
} vit_box;

/* VIT_KEYPOINTS and VIT_BOXES: input i has counts[i] of the boxes, which are one array for all inputs. NULL
 * for counts: each image is one box. Keypoints of a box outside of the image are NaN with score 0; a box that
 * is empty or not finite is ARGUMENT for its input. So is VIT_INPUT_PREPROCESSED: boxes are cut from images.
 */
VIT_API vit_status vit_session_pose(vit_session* session, const vit_input* inputs, size_t num_inputs,
                                    const vit_box* boxes, const size_t* counts, vit_results* results);

/* Targets of detection: classes of its own, or texts. */
typedef struct vit_detector vit_detector;

/* The classes that the model was trained for (YOLOS, RF-DETR). MISMATCH for a model without boxes, or whose
 * boxes are compared with texts. */
VIT_API vit_status vit_detector_create(const vit_model* model, vit_detector** detector);
/* Texts (OWL-ViT, OWLv2), as vit_classifier_create_zero_shot() takes them; no templates: the texts as they
 * are. */
VIT_API vit_status vit_detector_create_zero_shot(const vit_model* model, vit_text_encoder* encoder,
                                                 const char* const* names, size_t num_names,
                                                 const char* const* templates, size_t num_templates,
                                                 vit_detector** detector);
/* Frees the detector and the names that it gave. */
VIT_API void vit_detector_free(vit_detector* detector);
/* Classes; 0 for NULL. */
VIT_API size_t vit_detector_size(const vit_detector* detector);
/* Name of class `index`; lives as long as the detector. */
VIT_API vit_status vit_detector_label(const vit_detector* detector, size_t index, const char** label);
/* VIT_BOXES, VIT_SCORES and VIT_CLASSES, by a session over the same model: boxes with a score above
 * `threshold`; below 0: that of the model's library. */
VIT_API vit_status vit_detector_run(const vit_detector* detector, vit_session* session,
                                    const vit_input* inputs, size_t num_inputs, float threshold,
                                    vit_results* results);

/* ------------------------------------------------------------------------------------------ positions */

/* Position encodings, independent of models. Letters: N patches of a grid of rows x columns,
 * row-major, L tokens, H heads, d channels of a head, F frequencies: d / 4 per axis in 2D, d / 2 in 1D.
 * Values are computed in double and rounded once. */

/* Rules of coordinates; vit_rope_options has the formulas. */
enum {
  VIT_COORDINATES_INDEX = 0,   /* rope-vit, SAM 2 */
  VIT_COORDINATES_SCALED = 1,  /* EVA-02 */
  VIT_COORDINATES_CENTERED = 2 /* DINOv3 */
};
/* The length by which centered coordinates divide an axis. */
enum {
  VIT_CENTERED_BY_EACH_AXIS = 0,    /* its own */
  VIT_CENTERED_BY_SHORTER_SIDE = 1, /* the shorter one for both */
  VIT_CENTERED_BY_LONGER_SIDE = 2   /* the longer one for both */
};
/* The axis of the first half of the pairs. */
enum {
  VIT_X_THEN_Y = 0, /* columns first */
  VIT_Y_THEN_X = 1  /* rows first */
};
/* Channels of pair i. */
enum {
  VIT_PAIR_NEIGHBORS = 0, /* (2i, 2i + 1) */
  VIT_PAIR_HALVES = 1     /* (i, i + d / 2) */
};

/* Options of a rotary encoding of a grid. Coordinate of patch index i of G along an axis:
 *   INDEX     i + offset                      rope-vit, SAM 2
 *   SCALED    (i + offset) / G * reference    EVA-02
 *   CENTERED  2 (i + 0.5 + offset) / G - 1    DINOv3 */
typedef struct vit_rope_options {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  int32_t coordinates;      /* VIT_COORDINATES_INDEX, ... */
  int32_t centered_by;      /* of CENTERED: VIT_CENTERED_BY_EACH_AXIS, ... */
  int32_t axis_order;       /* VIT_X_THEN_Y, ... */
  int32_t pairing;          /* VIT_PAIR_NEIGHBORS, ... */
  double offset;            /* added to the index of a patch */
  size_t reference_rows;    /* of SCALED */
  size_t reference_columns; /* of SCALED */
  int32_t dtype;            /* of the table: VIT_FLOAT32 or VIT_FLOAT64 */
  int32_t reserved;         /* 0 */
} vit_rope_options;

/* Coordinates t_x, t_y (N each), written to the caller's memory. ARGUMENT for an empty grid. */
VIT_API vit_status vit_grid_coordinates(size_t rows, size_t columns, const vit_rope_options* options,
                                        double* t_x, double* t_y);

/* Formulas of frequencies; a and b are parameters of vit_rope_frequencies(). */
enum {
  VIT_FREQUENCIES_THETA = 0,   /* a^(-k / F), a = theta */
  VIT_FREQUENCIES_EXP_PI = 1,  /* exp(-pi k / F) */
  VIT_FREQUENCIES_PERIODS = 2, /* 1 / period, F periods spaced geometrically from a to b */
  VIT_FREQUENCIES_PIXELS = 3   /* pi linspace(1, a / 2, F) */
};
/* `count` = F frequencies in radians per unit of coordinate, written to the caller's memory. */
VIT_API vit_status vit_rope_frequencies(int32_t rule, size_t count, double a, double b, double* frequencies);

/* Rotary factors cos + i sin. */
typedef struct vit_rope_table vit_rope_table;

/* Axial: (N, 2F) factors, `count` = F frequencies for both axes. */
VIT_API vit_status vit_rope_axial(size_t rows, size_t columns, const double* frequencies, size_t count,
                                  const vit_rope_options* options, vit_rope_table** table);
/* Learned frequencies that mix both axes: (H, N, d / 2) factors of layer `layer`; `frequencies`
 * (2, depth, H, num_pairs), x first. */
VIT_API vit_status vit_rope_mixed(size_t rows, size_t columns, const double* frequencies, size_t depth,
                                  size_t num_heads, size_t num_pairs, size_t layer,
                                  const vit_rope_options* options, vit_rope_table** table);
/* One-dimensional: (L, F) factors of `num_positions` = L positions; of the options pairing and dtype count.
 */
VIT_API vit_status vit_rope_line(const double* positions, size_t num_positions, const double* frequencies,
                                 size_t count, const vit_rope_options* options, vit_rope_table** table);
/* Frees the table and the arrays obtained from it. */
VIT_API void vit_rope_table_free(vit_rope_table* table);

/* Cosines and sines, in the shapes above; they live as long as the table. */
VIT_API vit_status vit_rope_table_get(const vit_rope_table* table, vit_array* cos, vit_array* sin);

/* Rotates x in place: (B, L, d) or (B, L, H, d) row-major numbers of the table's dtype. The first
 * `num_prefix_tokens` of the L tokens are not rotated, the others must be the patches of the table. */
VIT_API vit_status vit_rope_rotate(const vit_rope_table* table, void* x, const size_t* shape, uint32_t ndim,
                                   size_t num_prefix_tokens);

/* Published conventions by name, as `vit rope` lists them, in double. A = angles of a head: d / 2 or those
 * that are rotated, with an angle per channel (V-JEPA 2) d. */

/* The list as JSON: [{"name", "families", "coordinates", "offset", "order", "pairing", "frequencies",
 * "formula"}, ...]. Lives as long as the library. */
VIT_API vit_status vit_rope_conventions(const char** json);

/* Of vit_rope_form_create(); rows, columns and head_dim are required. */
typedef struct vit_rope_form_options {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  size_t rows;              /* patches; 1 for conventions of a sequence */
  size_t columns;           /* patches, or tokens of a sequence */
  size_t head_dim;          /* d */
  size_t num_frames;        /* of a clip, for conventions with time; 0: 1 */
  size_t num_heads;         /* H, for conventions whose heads differ; 0: 1 */
  size_t reference_rows;    /* native grid, for conventions that have one for each model; 0: an example */
  size_t reference_columns; /* the same */
} vit_rope_form_options;

/* A convention on a grid. Threads may share it. */
typedef struct vit_rope_form vit_rope_form;
/* By the name of a convention or family; ARGUMENT with the known names if there is none, or if it fits
 * neither the grid nor the head. */
VIT_API vit_status vit_rope_form_create(const char* convention, const vit_rope_form_options* options,
                                        vit_rope_form** form);
/* Frees the form and its arrays. */
VIT_API void vit_rope_form_free(vit_rope_form* form);

/* Arrays of a form, float64 unless stated. N patches, frame by frame; FREQUENCIES, PHASES, PAIRS and BASIS
 * are its normal form: in the basis B of q and k, the channels p, q of pair j become p cos a - q sin a and
 * q cos a + p sin a, a = w_x column + w_y row + w_t frame + phase. */
enum {
  VIT_ROPE_COORDINATES = 0, /* (N, 2) x, y or (N, 3) x, y, t */
  VIT_ROPE_ANGLES = 1,      /* (N, A), or (H, N, A) if heads differ */
  VIT_ROPE_COS = 2,         /* the same shape */
  VIT_ROPE_SIN = 3,         /* the same shape */
  VIT_ROPE_FREQUENCIES = 4, /* (A, 3) or (H, A, 3): w_x, w_y, w_t in radians per patch and frame */
  VIT_ROPE_PHASES = 5,      /* (A) or (H, A) */
  VIT_ROPE_PAIRS = 6,       /* (pairs, 2) int32 */
  VIT_ROPE_BASIS = 7        /* (d, d); ARGUMENT if it is that of the channels */
};
/* Gets an array, which lives as long as the form. */
VIT_API vit_status vit_rope_form_get(const vit_rope_form* form, int32_t name, vit_array* array);
/* Rotates x (B, L, H, d) in place; the first `num_prefix_tokens` of the L tokens are not rotated, the others
 * must be the N patches. */
VIT_API vit_status vit_rope_form_rotate(const vit_rope_form* form, double* x, const size_t* shape,
                                        uint32_t ndim, size_t num_prefix_tokens);

/* What is known of the factors to identify. */
typedef struct vit_rope_identify_options {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  size_t rows;              /* of patches; 0: to be found */
  size_t columns;           /* the same */
  int32_t has_prefix;       /* 1: num_prefix_tokens is known */
  int32_t reserved;         /* 0 */
  size_t num_prefix_tokens; /* before the patches, not rotated */
  const char* against;      /* convention or family to compare with; NULL: the nearest */
} vit_rope_identify_options;

/* The convention that rotary factors follow. */
typedef struct vit_rope_identity vit_rope_identity;
/* Those of a file, .npz, .npy or .safetensors, as `vit rope identify` takes them. */
VIT_API vit_status vit_rope_identify(const char* path, const vit_rope_identify_options* options,
                                     vit_rope_identity** identity);
/* Those of `count` float32 or float64 arrays with the names of the tensors of such a file: cos and sin,
 * angles, or q and q_rotated, k and k_rotated, basis. */
VIT_API vit_status vit_rope_identify_arrays(const char* const* names, const vit_array* arrays, size_t count,
                                            const vit_rope_identify_options* options,
                                            vit_rope_identity** identity);
/* {"convention": name or null, "families", "coordinates", "offset", "order", "pairing", "frequencies",
 * "reference", "prefix", "grid", "error", "nearest", "differs", "notes"}; lives as long as the identity. */
VIT_API vit_status vit_rope_identity_json(const vit_rope_identity* identity, const char** json);
/* Frees the identity and its text. */
VIT_API void vit_rope_identity_free(vit_rope_identity* identity);
/* ---------------------------------------------------------------------------------------------- parts */

/* Steps of a model on arrays of the caller, float32 and row-major without gaps; `threads`: 0 = all cores. */

/* Pixels (B, K, H, W), shape[4], to patches (B, N, K P P), row by row of the grid; the numbers of a patch are
 * ordered as the weight (K, P, P) of a convolution. N = (H / P) (W / P); a remainder is dropped. */
VIT_API vit_status vit_patchify(const float* pixels, const size_t* shape, size_t patch_size, int32_t threads,
                                float* patches);

/* Settings of vit_attention(). */
typedef struct vit_attention_options {
  size_t struct_size;       /* sizeof the struct, set by the caller */
  size_t num_heads;         /* H; 0: that of the shape */
  size_t num_key_heads;     /* of keys and values, each for several of queries; 0: H */
  size_t num_prefix_tokens; /* of the L tokens, which are not rotated */
  double scale;             /* of the logits; 0: 1 / sqrt(d) */
  int32_t causal;           /* not 0: a token attends to itself and earlier tokens */
  int32_t threads;          /* the result does not depend on it */
} vit_attention_options;

/* softmax(q k^T / sqrt(d)) v of each head, after q and k were rotated: q and out (B, L, H, d), shape[4], k
 * and v (B, L, K, d). `table`: of dtype VIT_FLOAT32, for the tokens after the prefix; NULL rotates nothing.
 */
VIT_API vit_status vit_attention(const float* q, const float* k, const float* v, const size_t* shape,
                                 const vit_rope_table* table, const vit_attention_options* options,
                                 float* out);

/* ---------------------------------------------------------------------------------------------- tables */

/* Layouts of sinusoidal rows. */
enum {
  VIT_SINUSOIDAL_LINE = 0, /* rows tokens, columns must be 1: sin and cos interleaved (Vaswani et al. 2017) */
  VIT_SINUSOIDAL_GRID = 1, /* first half of the channels for the column, second half for the row */
  VIT_SINUSOIDAL_QUARTERS = 2 /* sin x, cos x, sin y, cos y, as in big_vision and SimpleViT */
};
/* (rows columns, dim) fixed rows, in the caller's memory as `dtype`. Usual base: 10000. ARGUMENT if dim is no
 * multiple of 2 (LINE) or 4. */
VIT_API vit_status vit_sinusoidal(int32_t layout, size_t rows, size_t columns, size_t dim, double base,
                                  int32_t dtype, void* out);

#ifdef __cplusplus
}
#endif

#endif
