/* Positions on other grids, and relative ones, in the C interface: rotary factors beyond the trained grid,
 * learned tables resampled to another grid, attention with vectors of distances. Rules of vit/c.h about
 * statuses, structs and lifetimes hold; so do the letters of its positions, and p = prefix rows, C =
 * channels of a row, B = images, R = largest distinguished distance. */
#ifndef VIT_C_POSITIONS_H
#define VIT_C_POSITIONS_H

#include "vit/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As vit_rope_axial(), for a model that was trained on a grid of `trained_rows` x `trained_columns`.
 * `scaling`: none, linear, ntk or yarn[,key=value...], as vit_model_options has it; NULL: what the rule of
 * the coordinates gives. *logit_factor (may be NULL): what the logits of attention are multiplied by. */
VIT_API vit_status vit_rope_axial_scaled(size_t rows, size_t columns, size_t trained_rows,
                                         size_t trained_columns, const char* scaling,
                                         const double* frequencies, size_t count,
                                         const vit_rope_options* options, double* logit_factor,
                                         vit_rope_table** table);

/* How a learned table becomes that of another grid; whose it is. */
enum {
  VIT_RESAMPLE_BICUBIC_ANTIALIAS = 0,   /* timm, DINOv2 with registers */
  VIT_RESAMPLE_BICUBIC = 1,             /* transformers' ViT, DINOv2, CLIP, SigLIP; Naver, EVA */
  VIT_RESAMPLE_BICUBIC_PLUS_TENTH = 2,  /* Meta's DINOv2 without registers */
  VIT_RESAMPLE_BILINEAR = 3,            /* Perception Encoder */
  VIT_RESAMPLE_BILINEAR_ANTIALIAS = 4,  /* SigLIP 2 NaFlex */
  VIT_RESAMPLE_BILINEAR_ALIGNED = 5,    /* corners on corners: Qwen3-VL */
  VIT_RESAMPLE_TILED = 6,               /* repeated: SAM 3 */
  VIT_RESAMPLE_BUCKETED = 7,            /* Idefics 2 and 3 */
  VIT_RESAMPLE_BILINEAR_PLUS_TENTH = 8, /* Hy4 */
  VIT_RESAMPLE_BILINEAR_ZEROS = 9       /* zeros around the table: Muse */
};
/* The table (p + from_rows from_columns, C) for another grid, (p + rows columns, C), to the caller's memory.
 * The first p rows are copied. */
VIT_API vit_status vit_resample_table(const float* table, size_t num_prefix_rows, size_t from_rows,
                                      size_t from_columns, size_t dim, size_t rows, size_t columns,
                                      int32_t resampling, float* out);

/* Settings of vit_relative_attention(). NULL options: the defaults. */
typedef struct vit_relative_options {
  size_t struct_size; /* sizeof the struct, set by the caller */
  double scale;       /* of the scores; 0: 1 / sqrt(d) */
  int32_t threads;    /* 0: all cores. Results do not depend on it. */
  int32_t reserved;   /* 0 */
} vit_relative_options;

/* Attention of Shaw et al. 2018: key j of query i is k_j plus row clip(j - i, -R, R) + R of `keys` (2R + 1,
 * d), and its value v_j plus that row of `values`. q, k, v and out (B, H, L, d), shape[4]; `probabilities`
 * (B, H, L, L), NULL: not wanted. */
VIT_API vit_status vit_relative_attention(const double* q, const double* k, const double* v,
                                          const size_t* shape, const double* keys, const double* values,
                                          size_t max_distance, const vit_relative_options* options,
                                          double* out, double* probabilities);

/* The fixed rows (2R + 1, dim) of NEZHA (Wei et al. 2019), for keys and values alike. */
VIT_API vit_status vit_nezha_rows(size_t max_distance, size_t dim, double* out);

#ifdef __cplusplus
}
#endif

#endif
