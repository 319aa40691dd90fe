/* C interface: images through a model, to features or to classes. */
#ifndef VIT_C_SESSION_H
#define VIT_C_SESSION_H

#include "vit/c/model.h"
#include "vit/c/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a session runs its images. */
typedef struct vit_session_options {
  size_t struct_size;
  int32_t threads;   /* that decode or compute, at most 1024; 0: all cores. Results do not depend on it. */
  int32_t size_kind; /* what preprocessing makes: VIT_SIZE_MODEL, ... of vit_size_options */
  size_t height;     /* of VIT_SIZE_FIXED, pixels */
  size_t width;
  size_t batch; /* images of a forward pass; 0: chosen from their size. Results do not depend on it. */
} vit_session_options;

/* Working memory and settings of one thread over a model that several may share. */
typedef struct vit_session vit_session;

VIT_API vit_status vit_session_create(const vit_model* model, const vit_session_options* options,
                                      vit_session** session);
VIT_API void vit_session_free(vit_session* session);

/* What a run hands out. Nothing asked for stands for VIT_PROJECTED where the model has it, else VIT_POOLED,
 * as `vit embed` does. */
typedef struct vit_request {
  size_t struct_size;
  uint32_t features;     /* VIT_POOLED | VIT_CLS | ... up to VIT_LOGITS */
  int32_t normalize;     /* not 0: vectors (all that have the shape (n, C)) are divided by their length */
  const int64_t* blocks; /* numbers of blocks for VIT_BLOCK, negative ones from the end */
  size_t num_blocks;
  const int64_t* attention; /* numbers of blocks for VIT_ATTENTION */
  size_t num_attention;
} vit_request;

/* Runs inputs of any kinds and sizes; results come in their order. Inputs that fail (a missing or damaged
 * file, numbers that are not finite) do not stop the others; the status is that of the first one that failed,
 * and vit_results_status() tells each. A request for what the model does not have is VIT_ERROR_ARGUMENT or
 * VIT_ERROR_MISMATCH, and nothing is run. */
VIT_API vit_status vit_session_run(vit_session* session, const vit_input* inputs, size_t num_inputs,
                                   const vit_request* request, vit_results* results);

/* -------------------------------------------------------------------------------------------- classes */

/* Classes for the images of one model: its own, a fitted head's, or texts. */
typedef struct vit_classifier vit_classifier;

/* The classes that the checkpoint was trained for. MISMATCH if it has no classifier. */
VIT_API vit_status vit_classifier_create(const vit_model* model, vit_classifier** classifier);
/* A head that `vit fit` wrote. MISMATCH if it was fitted on features of another model. */
VIT_API vit_status vit_classifier_load_head(const vit_model* model, const char* path,
                                            vit_classifier** classifier);
/* Texts as classes. `templates` hold {} for the name of a class; the normalized vectors of several are
 * averaged and normalized again, as open_clip does. No templates: "This is a photo of {}.". ARGUMENT for no
 * names, a name that is empty or there twice, and a template without {}. */
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
VIT_API void vit_classifier_free(vit_classifier* classifier);

/* Classes K; 0 for NULL. */
VIT_API size_t vit_classifier_size(const vit_classifier* classifier);
/* Name of class `index`; lives as long as the classifier. */
VIT_API vit_status vit_classifier_label(const vit_classifier* classifier, size_t index, const char** label);

/* A value for each class as VIT_LOGITS (n, K), by a session over the same model. As vit_session_run(). */
VIT_API vit_status vit_classifier_run(const vit_classifier* classifier, vit_session* session,
                                      const vit_input* inputs, size_t num_inputs, vit_results* results);

/* A class and how probable it is. */
typedef struct vit_prediction {
  size_t index; /* of the class */
  const char* label;
  float probability; /* softmax over all classes; the sigmoid of models that were trained with it */
  float logit;
} vit_prediction;

/* The most probable classes of input `index` of a run of this classifier, best first, equal ones in their
 * order. Writes at most `top` predictions, and in *count how many. Labels live as long as the classifier. */
VIT_API vit_status vit_classifier_top(const vit_classifier* classifier, const vit_results* results,
                                      size_t index, size_t top, vit_prediction* predictions, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
