/* Prompts in the C interface: what phrases, boxes and points mean, cut out of images, with SAM 3. One look at
 * an image answers any number of prompts:
 *
 *   vit_prompt_model_load("sam3", NULL, NULL, &model);
 *   vit_prompt_segmenter_create(model, 0, &segmenter);
 *   vit_prompt_segmenter_encode(segmenter, &photo, VIT_PROMPT_PHRASES, &image);
 *   prompt.text = "yellow bus";
 *   vit_prompt_segmenter_run(segmenter, image, &prompt, results);
 *   vit_results_one(results, 0, VIT_MASKS, 0, &masks);   (m, H, W)
 *
 * Rules of vit/c.h about statuses, structs and lifetimes hold. Results are of one input; m is the number of
 * instances or masks, H, W the size of the image, h, w that of a mask as the model gives it. */
#ifndef VIT_C_PROMPTS_H
#define VIT_C_PROMPTS_H

#include "vit/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an image is asked; may be joined with |. */
enum {
  VIT_PROMPT_PHRASES = 1, /* noun phrases and boxes that show what is meant */
  VIT_PROMPT_OBJECTS = 2  /* one object by points, a box, a mask */
};
/* Whose program is reproduced where two differ. */
enum {
  VIT_PROMPT_RULE_LIBRARY = 0,   /* transformers */
  VIT_PROMPT_RULE_REPOSITORY = 1 /* the publisher's */
};
/* What vit_prompt_segmenter_run() gives. */
enum {
  VIT_PROMPT_GIVES_MASKS = 0, /* VIT_MASKS, VIT_BOXES, VIT_SCORES and VIT_QUERIES, in falling score */
  VIT_PROMPT_GIVES_BOXES = 1, /* the same without masks, on which no work is done */
  VIT_PROMPT_GIVES_PIXELS = 2 /* VIT_PROBABILITIES of pixels, all instances together: K = 1 */
};
/* Names of results of prompts, besides those of vit/c.h. */
enum {
  VIT_MASKS = (1 << 29) + 16,        /* (n, m, H, W) uint8, 1 = part of the instance or the object */
  VIT_MASK_LOGITS = (1 << 29) + 17,  /* (n, m, h, w) float32, of objects */
  VIT_QUERIES = (1 << 29) + 18,      /* (n, m) int32, of the model, whose order is that of transformers */
  VIT_OBJECT_LOGITS = (1 << 29) + 19 /* (n, 1) float32, whether there is an object */
};

/* A checkpoint with its image tower, text tower and detector. Immutable: threads may share it. */
typedef struct vit_prompt_model vit_prompt_model;

/* Loads a folder as downloaded. UNSUPPORTED for a model that takes no prompts, others as vit_model_load(). */
VIT_API vit_status vit_prompt_model_load(const char* path, const vit_model_options* options,
                                         const vit_text_options* text_options, vit_prompt_model** model);
/* Frees the model; the weights are freed with the last object created from them. */
VIT_API void vit_prompt_model_free(vit_prompt_model* model);
/* What it can be asked: VIT_PROMPT_PHRASES, VIT_PROMPT_OBJECTS or both; 0 for NULL. */
VIT_API uint32_t vit_prompt_model_takes(const vit_prompt_model* model);

/* Working memory of one thread over a model that several may share. Vectors of phrases are kept. */
typedef struct vit_prompt_segmenter vit_prompt_segmenter;

/* A segmenter over a model. `threads`: 0 = all cores; results do not depend on it. */
VIT_API vit_status vit_prompt_segmenter_create(const vit_prompt_model* model, int32_t threads,
                                               vit_prompt_segmenter** segmenter);
/* Frees the segmenter; images that it encoded stay valid. */
VIT_API void vit_prompt_segmenter_free(vit_prompt_segmenter* segmenter);

/* An image that was looked at. Immutable: segmenters of the same model in any threads may share it. */
typedef struct vit_prompt_image vit_prompt_image;

/* Looks at an image, for `uses`: VIT_PROMPT_PHRASES, VIT_PROMPT_OBJECTS or both. UNSUPPORTED if the model has
 * no part for them. */
VIT_API vit_status vit_prompt_segmenter_encode(vit_prompt_segmenter* segmenter, const vit_input* input,
                                               uint32_t uses, vit_prompt_image** image);
/* Frees the image. */
VIT_API void vit_prompt_image_free(vit_prompt_image* image);
/* Height and width of the image in pixels; bytes of memory that it takes. Each may be NULL. */
VIT_API vit_status vit_prompt_image_size(const vit_prompt_image* image, size_t* height, size_t* width,
                                         size_t* num_bytes);

/* What is looked for: every instance of a phrase, or of what boxes show, or of both. In a threshold, 0 is the
 * default and a negative number stands for 0. */
typedef struct vit_prompt {
  size_t struct_size;        /* sizeof the struct, set by the caller */
  const char* text;          /* a noun phrase; NULL or "": only the boxes */
  const vit_box* boxes;      /* in pixels of the image that is asked */
  const int32_t* box_labels; /* for each box: 1 = it is meant, 0 = it is not; NULL: all are meant */
  size_t num_boxes;          /* boxes, and labels of them */
  double threshold;          /* an instance has a score above it; 0: 0.3 */
  double mask_threshold;     /* a pixel of a mask has a probability above it; 0: 0.5 */
  int32_t rule;              /* VIT_PROMPT_RULE_LIBRARY, ... */
  int32_t gives;             /* VIT_PROMPT_GIVES_MASKS, ... */
} vit_prompt;

/* The results of a prompt. ARGUMENT for one without text and boxes, boxes that are empty or outside of the
 * image, and a text that is longer than the model's context. */
VIT_API vit_status vit_prompt_segmenter_run(vit_prompt_segmenter* segmenter, const vit_prompt_image* image,
                                            const vit_prompt* prompt, vit_results* results);

/* One object: points, a box, a mask, or several of these. */
typedef struct vit_object_prompt {
  size_t struct_size;          /* sizeof the struct, set by the caller */
  const double* points;        /* x, y, x, y, ... in pixels of the image */
  const int32_t* point_labels; /* for each point: 1 = on the object, 0 = outside; NULL: all are on it */
  size_t num_points;           /* pairs of numbers at points */
  const vit_box* box;          /* around the object; NULL: none */
  const float* mask;           /* (mask_height, mask_width) logits as in VIT_MASK_LOGITS, of their size or
                                  resized to it; NULL: none */
  size_t mask_height;          /* h */
  size_t mask_width;           /* w */
  int32_t single_mask;         /* not 0: one mask, for prompts that are not ambiguous */
  int32_t rule;                /* VIT_PROMPT_RULE_LIBRARY, ... */
} vit_object_prompt;

/* VIT_MASKS, VIT_SCORES, VIT_MASK_LOGITS and VIT_OBJECT_LOGITS of one object, in the order of the model: its
 * part, the whole, ... The image must have been encoded for objects. */
VIT_API vit_status vit_prompt_segmenter_object(vit_prompt_segmenter* segmenter, const vit_prompt_image* image,
                                               const vit_object_prompt* prompt, vit_results* results);

#ifdef __cplusplus
}
#endif

#endif
