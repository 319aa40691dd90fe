// The normal form of rotary encodings. If rotations commute, there is a basis of the channels of a head in
// which each is a rotation of pairs, by angles that are linear in the position: a vector of frequencies per
// pair says all. Scores depend on nothing else: encodings with the same normal form, in whatever order and
// basis of the channels, are the same encoding. Not of this form: rotations that do not commute (LieRE with
// more than one axis, rotations of the sphere), for which the score of two patches is no function of their
// distance, and encodings that depend on contents (PaPE). Letters: d = channels of a head, A = angles, H =
// heads, L = tokens, P = prefix tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/convention_tables.h"

namespace vit::position {

/// angle = w_x column + w_y row + w_t frame + phase, of each pair of channels in a basis of q and k.
struct RopeNormalForm {
  std::size_t head_dim = 0;        // d
  std::vector<ChannelPair> pairs;  // after the change of basis; channels of no pair are not rotated
  FrequencyVectors frequencies;    // radians per patch and per frame, of each layer and head if they differ
  std::vector<double> phases;  // (A), angles at column 0, row 0, frame 0; without effect on scores of patches
  RopeAngles angles = RopeAngles::per_pair;  // per_channel: V-JEPA 2, which is no rotation
  std::size_t window =
      0;  // columns and rows count from the corner of windows of so many patches; 0 = of the grid
  Tensor<double> basis{};  // (d, d), orthogonal: x becomes B^T rotate(B x); empty = the channels themselves
};

/// The normal form of a convention on a grid, of `num_heads` heads if they differ; its scale and offset are
/// those of the coordinates. Throws Error if the convention fits neither d nor the grid, and for scaled or
/// centered coordinates in windows.
VIT_API RopeNormalForm normal_form(const RopeConvention& convention, GridSize grid, std::size_t head_dim,
                                   std::size_t num_heads = 2);

/// The normal form of exp(column L_x + row L_y + ...): STRING, ComRoPE. `generators` are one to three
/// matrices (d, d) of x, y and time. Throws Error if one is not skew-symmetric, or two do not commute
/// (LieRE): then there is none.
VIT_API RopeNormalForm normal_form_of(std::span<const Tensor<double>> generators);

/// Angles (N, A) or (H, N, A) of the patches of a grid, frame by frame. Throws Error if there is no such
/// layer.
VIT_API Tensor<double> normal_angles(const RopeNormalForm& form, GridSize grid, std::size_t num_frames = 1,
                                     std::size_t layer = 0);

/// Rotates x (B, L, H, d) in place; the first P of the L tokens are unchanged. Throws Error naming the shapes
/// if they do not fit.
VIT_API void rotate(TensorView<double> x, const RopeNormalForm& form, GridSize grid,
                    std::size_t num_prefix = 0, std::size_t num_frames = 1, std::size_t layer = 0);

/// The choices of which this is the normal form on a grid of at least two columns (and two rows, but for
/// lines): coordinates, offset, scale, order, pairing and frequencies, with the name if they are published.
/// Learned numbers, and generators, whose coordinates are 0 at the first patch, have their form only. Nothing
/// if there are no such choices.
VIT_API std::optional<RopeConvention> read_back(const RopeNormalForm& form, GridSize grid);

}  // namespace vit::position
