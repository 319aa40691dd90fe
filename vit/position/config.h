// The position encodings of a model: plain data with defaults, part of ModelConfig. The computation of each
// choice is in rope.h and tables.h. Letters: C = embed_dim, d = channels of a head, N = patches of a grid.
#pragma once

#include <cstddef>
#include <optional>

#include "vit/base/choices.h"

namespace vit {

/// Patches of an image: rows of the grid are patches along the height, columns along the width.
struct GridSize {
  std::size_t rows = 0;     // along the height
  std::size_t columns = 0;  // along the width
  bool operator==(const GridSize&) const = default;
};

/// Rows that are added to the tokens before the first block.
enum class AddedTable {
  none,                // nothing is added
  patches,             // (N, C), patches only (rope-vit APE, DeiT-III, SigLIP)
  prefix_and_patches,  // (rows + N, C): rows for the first prefix tokens come first (ViT, EVA-02, CLIP)
  /// (2, L, C): the sum of a row for the column of a patch and one for its row (Gemma 4); with bilinear
  /// resampling both are resampled to the grid (NaFlexViT).
  columns_and_rows,
};

/// How a learned table is resampled to another grid (PyTorch kernels of the reference libraries).
enum class TableResampling {
  bicubic_antialias,  // a = -0.5, widened when shrinking: timm, DINOv2 with registers
  bicubic,  // a = -0.75, four clamped taps: Hugging Face ViT, DeiT, DINOv2, CLIP, SigLIP, I-JEPA; Naver, EVA
  bicubic_plus_tenth,   // the same with sampling scale old / (new + 0.1): Meta DINOv2 without registers
  bilinear,             // two clamped taps: Meta Perception Encoder
  bilinear_antialias,   // SigLIP 2 NaFlex
  bilinear_aligned,     // two taps, corners on corners (align_corners = true): Qwen3-VL
  tiled,                // repeated, not resampled: row i is row i mod G of the table (SAM 3)
  bucketed,             // the row in whose share of the edge a patch begins, in float32: Idefics 2 and 3
  bilinear_plus_tenth,  // bilinear with sampling scale old / (new + 0.1): Hy4
  bilinear_zeros,       // bilinear between the rows and zeros around the table: Muse
};

/// The grid that a learned table is brought to.
enum class TableGrid {
  image,    // that of the image's patches
  square,   // a square of its longer edge, of which the image takes the top left (RADIO)
  swapped,  // its rows and columns swapped; the order of the rows is that grid's (Muse)
};

/// When resampling is skipped.
enum class TableReuse {
  equal_grid,              // the grids are equal
  equal_count_and_square,  // as many patches, and the new grid is square
  never,                   // resampled to its own grid too, by the factor of the rule: Hy4, bicubic
};

/// The coordinates that rotate a channel pair of queries and keys.
enum class RopeKind {
  none,          // no rotation
  axial,         // that of one axis
  mixed,         // both, with learned frequencies of each layer and head
  volume,        // time, row and column, each for a third of the channels, which do not form pairs (V-JEPA 2)
  volume_pairs,  // the same as a rotation: a third of the pairs for each axis (MiniMax-M3)
};

/// Coordinate of patch index i of G along one axis.
enum class CoordinateRule {
  index,                // i + offset
  scaled_to_reference,  // (i + offset) / G * G_ref
  centered,             // 2 (i + 0.5 + offset) / G - 1
  corners,              // i (G_ref - 1) / (G - 1), 0 for G = 1
};

/// The axis of the first half of the pairs.
enum class AxisOrder {
  x_then_y,  // columns first
  y_then_x,  // rows first
};

/// The frequencies of two axes of F = d / 4 pairs each, k = 0 ... F - 1, with base theta.
enum class AxisFrequencies {
  shared,       // theta^(-4k/d) for both
  alternating,  // theta^(-4k/d) for the first axis, theta^(-(4k + 2)/d) for the second (Pixtral)
  /// Those of the periods (1 / frequency, before angle_scale) in the file, for both; theta is unused (Meta's
  /// DINOv3). No rule of a convention.
  stored,
};

/// The names are those of `rope_scaling` in transformers; s is the length of an axis over its trained length.
enum class RopeScalingRule {
  none,    // extrapolated: coordinates beyond the trained grid are new to the model
  linear,  // coordinates are divided by s: the trained range, with smaller steps (Chen et al. 2023)
  ntk,     // low frequencies are divided by s, high ones less or not at all (bloc97 2023; per axis: FiT)
  yarn,    // by the turns that a pair makes over the trained grid (Peng et al. 2023; per axis: FiT)
};

/// The value of s on the two axes of a grid.
enum class RopeScalingAxes {
  each,    // separate for columns and rows (VisionNTK, VisionYaRN of FiT, Lu et al. 2024)
  common,  // the larger of the two for both
};

/// A factor on the logits of attention that depends only on the number of patches.
enum class RopeTemperature {
  none,  // no factor
  log,   // max(1, ln N / ln N_trained): keeps attention from spreading over more tokens (Su 2021)
};

/// Rotary positions on grids other than the trained one; position/rope.h has the formulas.
struct RopeScaling {
  RopeScalingRule rule = RopeScalingRule::none;  // change of coordinates and frequencies
  RopeScalingAxes axes = RopeScalingAxes::each;  // definition of s
  double factor = 0.0;                           // s of both axes; 0 = the grid over the trained grid
  /// yarn: pairs of more turns over the trained length are unchanged, those of fewer than beta_slow are
  /// divided by s. The defaults are those of the paper, for sequences of thousands of tokens.
  double beta_fast = 32.0;
  double beta_slow = 1.0;  // turns
  /// yarn, axial: the ramp starts and ends at whole indices of the frequencies, not before the first, as in
  /// the published code of YaRN and FiT and by default in transformers: the fastest pair is unchanged.
  bool truncate = false;
  /// yarn: factor on queries and keys; nothing = max(1, 0.1 ln s + 1), s = sqrt(s_x s_y).
  std::optional<double> attention_factor{};
  RopeTemperature temperature = RopeTemperature::none;  // for any rule

  bool operator==(const RopeScaling&) const = default;
};

/// A term of the scores of attention that depends on the distance of query and key in rows and columns.
enum class RelativeKind {
  table,  // a number for each head and distance, stored (BEiT)
  mlp,    // the same, computed from the logarithms of the distances (timm's relpos models)
  axes,   // the product of the query with a vector of each distance, of both axes apart (ViTDet, SAM)
};

/// The blocks whose scores get a table.
enum class RelativeScope {
  blocks,  // each block has one of its own
  shared,  // one for all blocks
  both,    // their sum
};

/// How a table of distances is brought to another grid.
enum class RelativeResampling {
  bilinear,   // as an image of (2 rows - 1, 2 columns - 1); of axes linear, as a line
  geometric,  // linear between distances that grow geometrically, so that small ones keep theirs (BEiT)
};

/// Relative positions: a bias of attention. Letters: H = heads, U, V = rows and columns of the trained grid.
struct RelativeConfig {
  RelativeKind kind = RelativeKind::table;      // where the term comes from
  GridSize grid;                                // U, V: a table has (2 U - 1) (2 V - 1) distances
  RelativeScope scope = RelativeScope::blocks;  // of tables
  RelativeResampling resampling = RelativeResampling::bilinear;  // to other grids
  std::size_t mlp_dim = 0;                                       // hidden width of mlp
  bool operator==(const RelativeConfig&) const = default;
};

/// Position encodings of a model: rows added to the tokens, rotations of queries and keys, a bias of
/// attention, or several of them.
struct PositionConfig {
  AddedTable added = AddedTable::none;  // rows added to the tokens
  GridSize added_grid;                  // grid that the learned table was trained on
  /// Leading rows for class and distillation token; 0 unless prefix_and_patches
  std::size_t added_prefix_rows = 0;
  /// The table has rows for the patches of each of these steps in time, step by step (VideoMAE, ViViT); 0 =
  /// the same rows in each.
  std::size_t added_steps = 0;
  TableResampling resampling = TableResampling::bicubic_antialias;  // of a learned table
  TableReuse reuse = TableReuse::equal_grid;                        // when it is not resampled
  TableGrid table_grid = TableGrid::image;                          // what it is resampled to
  /// A table like the added one, for all tokens, is added after each block but the last (YOLOS).
  bool between_blocks = false;

  RopeKind rope = RopeKind::none;                         // rotation of queries and keys
  CoordinateRule coordinates = CoordinateRule::index;     // the angles are proportional to it
  double coordinate_offset = 0.0;                         // added to the index of a patch
  GridSize reference_grid;                                // G_ref of scaled_to_reference and corners
  AxisOrder axis_order = AxisOrder::x_then_y;             // axis of the first half of the pairs
  RopePairing pairing = RopePairing::neighbors;           // channels of a pair
  double theta = 100.0;                                   // base of the frequencies
  double angle_scale = 1.0;                               // 2 pi for DINOv3, whose frequencies count turns
  AxisFrequencies frequencies = AxisFrequencies::shared;  // of the two axes
  /// The class token is rotated too, by d / 2 separate learned angles (MLCD); other prefix tokens are not.
  bool class_angles = false;
  /// In blocks with windows each window is a grid of its own: coordinates count from its corner (SAM 3).
  bool per_window = false;
  std::optional<RelativeConfig> relative{};  // bias of attention
  /// Grids other than the trained one, image_height x image_width; nothing = the default of `coordinates`.
  std::optional<RopeScaling> rope_scaling{};
};

}  // namespace vit
