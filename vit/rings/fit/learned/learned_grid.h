// A learned upsampler on one image: queries of its pixels, which are computed in tiles when they are needed,
// and the patches of a grid that they attend to. Letters: H, W pixels, h, w patches, D channels of queries
// and keys, C features, G groups of features with weights of their own, K values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/image/image.h"
#include "vit/rings/fit/learned/upsampler.h"

namespace vit::internal {

/// Of one thread.
struct AttentionMemory {
  TileMemory tiles;
  Tensor<float> queries, rows, keys, values, packed, scratch, out;
};

/// The queries of an image.
class ImageQueries {
 public:
  /// Measures the norms. `image` must outlive the queries.
  ImageQueries(std::shared_ptr<const PixelUpsampler> upsampler, const Image& image, int threads);

  const PixelUpsampler::Network& network() const { return upsampler_->network(); }
  const MapSource& source() const { return source_; }
  /// The queries of a tile, (n, D), in `memory`.
  TensorView<const float> of_tile(const MapTile& tile, AttentionMemory& memory) const;

 private:
  std::shared_ptr<const PixelUpsampler> upsampler_;
  MapSource source_;
  std::vector<MeasuredNetwork> measured_;  // of each network of queries
  RotationTables rotation_;
};

/// The patches of one image at one scale.
class LearnedGrid {
 public:
  /// Throws Error for features or an image that the network cannot be used for.
  LearnedGrid(std::shared_ptr<const ImageQueries> queries, const PatchMap& patches, int threads);

  std::size_t num_groups() const;  // G: columns g C / G .. (g + 1) C / G of the features
  /// The tiles of the image.
  std::vector<MapTile> tiles() const { return tiles_of(queries_->source().size); }
  /// The features (n, C) of the pixels of a tile, of those of patches (h w, C).
  void features_of(const MapTile& tile, TensorView<const float> patches, TensorView<float> out,
                   AttentionMemory& memory) const;

 private:
  /// What a head adds: columns [column, column + count) of `values` times `factor`, to those of `out`.
  struct HeadValues {
    TensorView<const float> values{};
    std::size_t column = 0, count = 0;
    TensorView<float> out{};
    std::size_t out_column = 0;
    float factor = 1;
  };
  struct Block;
  void attend(const MapTile& tile, TensorView<const float> queries, std::span<const HeadValues> heads,
              AttentionMemory& memory) const;
  void attend_block(const Block& block, std::size_t head, const HeadValues& of,
                    AttentionMemory& memory) const;

  std::shared_ptr<const ImageQueries> queries_;
  MapSize grid_;
  Tensor<float> keys_;                      // (h w, D)
  std::vector<AxisWindow> rows_, columns_;  // of the pixels
};

}  // namespace vit::internal
