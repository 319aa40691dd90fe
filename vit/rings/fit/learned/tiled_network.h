// Small convolutional networks of learned upsamplers, computed for tiles of an image: the memory is that of
// the tiles. Group norms need means over the whole image, which are measured first, norm after norm; what is
// before a norm is computed again for each of the later ones.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/layers/convolution.h"
#include "vit/layers/map.h"

namespace vit::internal {

/// Pixels [y, y + height) x [x, x + width) of a map.
struct MapTile {
  std::size_t y = 0, x = 0, height = 0, width = 0;

  std::size_t num_pixels() const { return height * width; }
};

/// Tiles of a map, of about 64 x 64 pixels, row by row.
std::vector<MapTile> tiles_of(MapSize size);

/// Rotates pairs of channels (c, c + d / 2) of each head of d channels by the position of their pixel:
/// x_c' = x_c cos(angle_c) - x_(c + d/2) sin(angle_c), x_(c + d/2)' the same with + and its own angle.
/// angle_c = row_frequencies[c] y + column_frequencies[c] x.
struct PixelRotation {
  std::vector<double> row_frequencies, column_frequencies;  // (d) radians
  bool is_centered = false;  // y, x of the centers of pixels in [-1, 1]; else of pixels in [0, 1], edges in

  std::size_t head_dim() const { return row_frequencies.size(); }
};

/// Its factors for the rows and columns of a map.
struct RotationTables {
  Tensor<float> row_cos, row_sin;        // (H, d)
  Tensor<float> column_cos, column_sin;  // (W, d)

  RotationTables() = default;
  RotationTables(const PixelRotation& rotation, MapSize size);
  /// Rotates a pixel (C), C a multiple of d.
  void rotate(std::size_t y, std::size_t x, std::span<float> pixel) const;
};

/// What happens to the input of a convolution.
enum class StageNorm {
  none,
  group,       // groups of channels over all pixels: 8 of them, biased variance, eps 1e-5
  group_silu,  // the same, and x sigmoid(x)
  rms,         // x / sqrt(mean of squares) of the channels of a pixel
};

struct NetworkStage {
  Convolution convolution;  // of stride 1
  StageNorm norm = StageNorm::none;
  std::vector<float> gamma{}, beta{};  // (I) of the norm, or empty for ones and zeros
  bool reflects = false;               // beyond the edges of the map: its mirror image, else zeros
  bool keeps = false;                  // its input is a residual
  bool adds = false;                   // that residual is added to its output; only 1x1 between both
  PixelRotation rotation{};            // of the output, or empty
};

/// Where the input of a network comes from.
struct MapSource {
  MapSize size{};
  std::function<void(const MapTile& tile, const FeatureMap& to)> read;
};

/// What the stages need of a whole map.
struct MeasuredStage {
  std::vector<float> factors, offsets;  // (I) of the norm: factor x + offset
  RotationTables rotation;
};
using MeasuredNetwork = std::vector<MeasuredStage>;

/// Memory for at least so many floats; larger memory stays.
float* reserve(Tensor<float>& memory, std::size_t floats);

/// Of one thread.
struct TileMemory {
  Tensor<float> maps[3], scratch;
};

class TiledNetwork {
 public:
  /// Throws Error if the channels of two stages disagree.
  explicit TiledNetwork(std::vector<NetworkStage> stages);

  std::size_t in_channels() const { return stages_.front().convolution.in_channels(); }
  std::size_t out_channels() const { return stages_.back().convolution.out_channels(); }
  /// The result does not depend on the number of threads.
  MeasuredNetwork measure(const MapSource& source, int threads) const;
  /// The outputs for a tile to `out` (height width, out_channels()), rows of any stride.
  void run(const MapSource& source, const MeasuredNetwork& measured, const MapTile& tile,
           TensorView<float> out, TileMemory& memory) const;
  /// All outputs (H W, out_channels()), of small maps.
  Tensor<float> run_all(const MapSource& source, int threads) const;

 private:
  /// The outputs of the first `count` stages.
  FeatureMap run_stages(const MapSource& source, const MeasuredNetwork& measured, std::size_t count,
                        const MapTile& tile, TileMemory& memory) const;
  MeasuredStage measure_norm(const MapSource& source, const MeasuredNetwork& measured, std::size_t stage,
                             std::vector<TileMemory>& memories, int threads) const;

  std::vector<NetworkStage> stages_;
};

}  // namespace vit::internal
