/* C interface: position encodings, free of any model. Letters: N patches of a grid of rows x columns,
 * row-major, L tokens, H heads, d channels of a head, F frequencies: d / 4 per axis in 2D, d / 2 in 1D.
 * Numbers are computed in double and rounded once. */
#ifndef VIT_C_POSITION_H
#define VIT_C_POSITION_H

#include "vit/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VIT_COORDINATES_INDEX = 0, VIT_COORDINATES_SCALED = 1, VIT_COORDINATES_CENTERED = 2 };
enum { VIT_CENTERED_BY_EACH_AXIS = 0, VIT_CENTERED_BY_SHORTER_SIDE = 1, VIT_CENTERED_BY_LONGER_SIDE = 2 };
enum { VIT_X_THEN_Y = 0, VIT_Y_THEN_X = 1 };
enum { VIT_PAIR_NEIGHBORS = 0, VIT_PAIR_HALVES = 1 }; /* pair i is channels (2i, 2i + 1), or (i, i + d / 2) */

/* The choices of a rotary encoding of a grid. Coordinate of patch index i of G along an axis:
 *   INDEX     i + offset                      rope-vit, SAM 2
 *   SCALED    (i + offset) / G * reference    EVA-02
 *   CENTERED  2 (i + 0.5 + offset) / G - 1    DINOv3 */
typedef struct vit_rope_options {
  size_t struct_size;
  int32_t coordinates;
  int32_t centered_by;
  int32_t axis_order;
  int32_t pairing;
  double offset;
  size_t reference_rows;
  size_t reference_columns;
  int32_t dtype; /* of the table: VIT_FLOAT32 or VIT_FLOAT64 */
  int32_t reserved;
} vit_rope_options;

/* Coordinates t_x, t_y (N each), written to the caller's memory. ARGUMENT for an empty grid. */
VIT_API vit_status vit_grid_coordinates(size_t rows, size_t columns, const vit_rope_options* options,
                                        double* t_x, double* t_y);

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
VIT_API void vit_rope_table_free(vit_rope_table* table);

/* Cosines and sines, in the shapes above; they live as long as the table. */
VIT_API vit_status vit_rope_table_get(const vit_rope_table* table, vit_array* cos, vit_array* sin);

/* Rotates x in place: (B, L, d) or (B, L, H, d) row-major numbers of the table's dtype. The first
 * `num_prefix_tokens` of the L tokens stay as they are, the others must be the patches of the table. */
VIT_API vit_status vit_rope_rotate(const vit_rope_table* table, void* x, const size_t* shape, uint32_t ndim,
                                   size_t num_prefix_tokens);

enum {
  VIT_SINUSOIDAL_LINE = 0,    /* rows tokens, columns must be 1: sin and cos in turns (Vaswani et al. 2017) */
  VIT_SINUSOIDAL_GRID = 1,    /* first half of the channels for the column, second half for the row */
  VIT_SINUSOIDAL_QUARTERS = 2 /* sin x, cos x, sin y, cos y, as in big_vision and SimpleViT */
};
/* (rows columns, dim) fixed rows, written to the caller's memory as `dtype`. Usual base: 10000. ARGUMENT if 2
 * (LINE) or 4 does not divide dim. */
VIT_API vit_status vit_sinusoidal(int32_t layout, size_t rows, size_t columns, size_t dim, double base,
                                  int32_t dtype, void* out);

#ifdef __cplusplus
}
#endif

#endif
