/* C interface: texts to token ids and to vectors in the space that images and texts share. */
#ifndef VIT_C_TEXT_H
#define VIT_C_TEXT_H

#include "vit/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose cleaning of texts applies; auto: the library of the folder. */
enum {
  VIT_TEXT_LIBRARY_AUTO = 0,
  VIT_TEXT_LIBRARY_TRANSFORMERS = 1,
  VIT_TEXT_LIBRARY_OPEN_CLIP = 2,
  VIT_TEXT_LIBRARY_OPENAI = 3
};

/* How a text tower is loaded. 0 and NULL in every member but struct_size are the defaults. */
typedef struct vit_text_options {
  size_t struct_size;
  const char* architecture; /* as in vit_model_options */
  const char* tokenizer; /* supplies the vocabulary where a model comes without one: a folder, or a file with
                            CLIP's merges */
  const char* kernels;   /* as in vit_model_options */
  int32_t library;       /* VIT_TEXT_LIBRARY_AUTO, ... */
  int32_t precision;     /* VIT_PRECISION_FLOAT32, ... */
} vit_text_options;

/* A checkpoint's text tower with its tokenizer. */
typedef struct vit_text_tower vit_text_tower;

/* UNSUPPORTED if the checkpoint has no text tower, IO if its tokenizer is missing, and as vit_model_load().
 */
VIT_API vit_status vit_text_tower_load(const char* path, const vit_text_options* options,
                                       vit_text_tower** tower);
/* Both towers of a checkpoint over one mapping of its files. */
VIT_API vit_status vit_model_and_text_load(const char* path, const vit_model_options* options,
                                           const vit_text_options* text_options, vit_model** model,
                                           vit_text_tower** tower);
VIT_API void vit_text_tower_free(vit_text_tower* tower);

/* Working memory and settings of one thread over a text tower that several may share. */
typedef struct vit_text_encoder vit_text_encoder;

/* `threads`: 0 = all cores; vectors do not depend on it. */
VIT_API vit_status vit_text_encoder_create(const vit_text_tower* tower, int32_t threads,
                                           vit_text_encoder** encoder);
VIT_API void vit_text_encoder_free(vit_text_encoder* encoder);

/* Vectors of texts as VIT_TEXT (n, E). `sizes`: bytes of each text, NULL if all end with a zero. `normalize`:
 * not 0 divides them by their length. ARGUMENT for a text that is not UTF-8. Texts longer than the context
 * are cut as the model's library cuts them; *num_cut (may be NULL) tells how many. */
VIT_API vit_status vit_text_encoder_run(vit_text_encoder* encoder, const char* const* texts,
                                        const size_t* sizes, size_t num_texts, int32_t normalize,
                                        vit_results* results, size_t* num_cut);

/* --------------------------------------------------------------------------------------------- tokens */

/* Texts to token ids. */
typedef struct vit_tokenizer vit_tokenizer;

/* A folder as published, or a file with CLIP's merges. `library`: VIT_TEXT_LIBRARY_AUTO, ... */
VIT_API vit_status vit_tokenizer_load(const char* path, int32_t library, vit_tokenizer** tokenizer);
/* The tokenizer of a model, with its context length. `path` supplies the vocabulary where the model comes
 * without one; NULL where it does not. */
VIT_API vit_status vit_tokenizer_load_for_model(const char* model, const char* path, int32_t library,
                                                vit_tokenizer** tokenizer);
VIT_API vit_status vit_tokenizer_create(const vit_text_tower* tower, vit_tokenizer** tokenizer);
VIT_API void vit_tokenizer_free(vit_tokenizer* tokenizer);

/* Tokens that the model takes; 0 if nothing tells, and for NULL. */
VIT_API size_t vit_tokenizer_context_length(const vit_tokenizer* tokenizer);

/* Ids as VIT_IDS: padded and cut to `context_length`, or with 0 neither, each text with a length of its own.
 * Texts as in vit_text_encoder_run(); one that is not UTF-8 does not stop the others. */
VIT_API vit_status vit_tokenizer_run(const vit_tokenizer* tokenizer, const char* const* texts,
                                     const size_t* sizes, size_t num_texts, size_t context_length,
                                     vit_results* results);

/* The token of an id as the vocabulary spells it, not ended with a zero: *token, of *size bytes, 0 where
 * there is none. Lives as long as the tokenizer. */
VIT_API vit_status vit_tokenizer_token(const vit_tokenizer* tokenizer, int32_t id, const char** token,
                                       size_t* size);

#ifdef __cplusplus
}
#endif

#endif
