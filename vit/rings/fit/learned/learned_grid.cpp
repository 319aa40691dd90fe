#include "vit/rings/fit/learned/learned_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

// Of ImageNet, by which all three networks expect their image, whatever the model does.
constexpr std::array<double, 3> kMean{0.485, 0.456, 0.406}, kDeviation{0.229, 0.224, 0.225};

MapSource source_of_image(const Image& image) {
  std::array<std::array<float, 256>, 3> levels;
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t level = 0; level < 256; ++level)
      levels[c][level] = static_cast<float>((static_cast<double>(level) / 255 - kMean[c]) / kDeviation[c]);
  }
  return {.size = {image.height(), image.width()},
          .read = [&image, levels](const MapTile& tile, const FeatureMap& to) {
            for (std::size_t y = 0; y < tile.height; ++y) {
              const std::uint8_t* const from = image.row(tile.y + y) + 3 * tile.x;
              float* const row = to.row(static_cast<std::ptrdiff_t>(y));
              for (std::size_t i = 0; i < 3 * tile.width; ++i) row[i] = levels[i % 3][from[i]];
            }
          }};
}

/// The pixels that patch i of `count` is the mean of, as PyTorch's adaptive pooling.
struct Pooled {
  std::size_t first, last;
};
Pooled pooled(std::size_t i, std::size_t count, std::size_t pixels) {
  return {i * pixels / count, ceil_div((i + 1) * pixels, count)};
}

/// Means over patches of what `run` gives for tiles, (n, D).
template <typename Run>
Tensor<float> means_over_patches(MapSize image, MapSize grid, std::size_t dim, int threads, const Run& run) {
  constexpr std::size_t kEdge = 64;  // of the pixels of neighboring patches that are computed together
  const std::size_t down = std::max<std::size_t>(1, kEdge * grid.height / image.height);
  const std::size_t across = std::max<std::size_t>(1, kEdge * grid.width / image.width);
  const std::size_t columns = ceil_div(grid.width, across);
  Tensor<float> out(Shape{grid.height * grid.width, dim});
  std::vector<AttentionMemory> memories(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(ceil_div(grid.height, down) * columns, threads, [&](std::size_t task, int thread) {
    const std::size_t top = task / columns * down, left = task % columns * across;
    const std::size_t bottom = std::min(top + down, grid.height), right = std::min(left + across, grid.width);
    const std::size_t y0 = pooled(top, grid.height, image.height).first;
    const std::size_t y1 = pooled(bottom - 1, grid.height, image.height).last;
    const std::size_t x0 = pooled(left, grid.width, image.width).first;
    const std::size_t x1 = pooled(right - 1, grid.width, image.width).last;
    std::vector<double> sums((bottom - top) * (right - left) * dim);
    for (const MapTile& part : tiles_of({y1 - y0, x1 - x0})) {
      const MapTile tile{y0 + part.y, x0 + part.x, part.height, part.width};
      const TensorView<const float> rows = run(tile, memories[static_cast<std::size_t>(thread)]);
      for (std::size_t r = top; r < bottom; ++r) {
        const Pooled ys = pooled(r, grid.height, image.height);
        for (std::size_t c = left; c < right; ++c) {
          const Pooled xs = pooled(c, grid.width, image.width);
          double* const sum = &sums[((r - top) * (right - left) + c - left) * dim];
          for (std::size_t y = std::max(ys.first, tile.y); y < std::min(ys.last, tile.y + tile.height); ++y) {
            for (std::size_t x = std::max(xs.first, tile.x); x < std::min(xs.last, tile.x + tile.width);
                 ++x) {
              const float* const row = rows.row((y - tile.y) * tile.width + x - tile.x);
              for (std::size_t k = 0; k < dim; ++k) sum[k] += static_cast<double>(row[k]);
            }
          }
        }
      }
    }
    for (std::size_t r = top; r < bottom; ++r) {
      for (std::size_t c = left; c < right; ++c) {
        const Pooled ys = pooled(r, grid.height, image.height), xs = pooled(c, grid.width, image.width);
        const auto count = static_cast<double>((ys.last - ys.first) * (xs.last - xs.first));
        const double* const sum = &sums[((r - top) * (right - left) + c - left) * dim];
        float* const to = out.view().row(r * grid.width + c);
        for (std::size_t k = 0; k < dim; ++k) to[k] = static_cast<float>(sum[k] / count);
      }
    }
  });
  return out;
}

}  // namespace

ImageQueries::ImageQueries(std::shared_ptr<const PixelUpsampler> upsampler, const Image& image, int threads)
    : upsampler_(std::move(upsampler)), source_(source_of_image(image)) {
  for (const TiledNetwork& of : network().queries) measured_.push_back(of.measure(source_, threads));
  if (network().rotation.head_dim() > 0) rotation_ = RotationTables(network().rotation, source_.size);
}

TensorView<const float> ImageQueries::of_tile(const MapTile& tile, AttentionMemory& memory) const {
  const std::size_t dim = network().query_dim(), count = tile.num_pixels();
  float* const queries = reserve(memory.queries, count * dim);
  std::size_t first = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const TiledNetwork& of = network().queries[i];
    of.run(source_, measured_[i], tile, {queries + first, Shape{count, of.out_channels()}, dim},
           memory.tiles);
    first += of.out_channels();
  }
  for (std::size_t i = 0; !rotation_.row_cos.empty() && i < count; ++i)
    rotation_.rotate(tile.y + i / tile.width, tile.x + i % tile.width, {queries + i * dim, dim});
  return {queries, Shape{count, dim}};
}

// ---------------------------------------------------------------------------------------------------- grids

/// Pixels of a tile that attend to the same patches.
struct LearnedGrid::Block {
  MapTile tile;                      // whose queries are at hand
  TensorView<const float> queries;   // (n, D) of the tile
  std::size_t y0, y1, x0, x1;        // pixels of the image
  const AxisWindow *rows, *columns;  // patches

  std::size_t num_queries() const { return (y1 - y0) * (x1 - x0); }
  std::size_t num_keys() const { return rows->patches.size() * columns->patches.size(); }
  /// Calls use(number, row in the tile) for all queries.
  template <typename Use>
  void for_each_query(const Use& use) const {
    std::size_t number = 0;
    for (std::size_t y = y0; y < y1; ++y) {
      for (std::size_t x = x0; x < x1; ++x) use(number++, (y - tile.y) * tile.width + x - tile.x);
    }
  }
};

LearnedGrid::LearnedGrid(std::shared_ptr<const ImageQueries> queries, const PatchMap& patches, int threads)
    : queries_(std::move(queries)), grid_(patches.grid) {
  const PixelUpsampler::Network& network = queries_->network();
  const MapSource& source = queries_->source();
  network.check(source.size, patches);
  Tensor<float> means;
  if (const TiledNetwork* const of_keys = network.key_network()) {
    const MeasuredNetwork measured = of_keys->measure(source, threads);
    const std::size_t dim = of_keys->out_channels();
    means = means_over_patches(source.size, grid_, dim, threads,
                               [&](const MapTile& tile, AttentionMemory& memory) -> TensorView<const float> {
                                 const TensorView<float> out(reserve(memory.queries, tile.num_pixels() * dim),
                                                             Shape{tile.num_pixels(), dim});
                                 of_keys->run(source, measured, tile, out, memory.tiles);
                                 return out;
                               });
  } else {
    means = means_over_patches(
        source.size, grid_, network.query_dim(), threads,
        [&](const MapTile& tile, AttentionMemory& memory) { return queries_->of_tile(tile, memory); });
  }
  keys_ = network.keys(std::move(means), patches, threads);
  rows_ = network.windows(source.size.height, grid_.height);
  columns_ = network.windows(source.size.width, grid_.width);
}

std::size_t LearnedGrid::num_groups() const {
  return queries_->network().own_channels ? queries_->network().num_heads : 1;
}

void LearnedGrid::attend_block(const Block& block, std::size_t head, const HeadValues& of,
                               AttentionMemory& memory) const {
  const kernels::AttentionKernels& kernels = kernels::default_kernels().float32->attention;
  const std::size_t dim = keys_.dim(1) / queries_->network().num_heads;
  const std::size_t num_queries = block.num_queries(), num_keys = block.num_keys();
  float* const queries = reserve(memory.rows, num_queries * dim);
  block.for_each_query([&](std::size_t number, std::size_t row) {
    std::copy_n(block.queries.row(row) + head * dim, dim, queries + number * dim);
  });
  float *const keys = reserve(memory.keys, num_keys * dim), *const values =
                                                                reserve(memory.values, num_keys * dim);
  float* const packed = reserve(memory.packed, kernels.packed_floats(num_keys, dim));
  float* const scratch = reserve(memory.scratch, kernels.scratch_floats(dim));
  float* const out = reserve(memory.out, num_queries * dim);
  for (std::size_t first = 0; first < of.count; first += dim) {  // as many values at a time as keys are wide
    const std::size_t width = std::min(dim, of.count - first);
    std::size_t key = 0;
    for (const std::uint32_t r : block.rows->patches) {
      for (const std::uint32_t c : block.columns->patches) {
        const std::size_t patch = r * grid_.width + c;
        std::copy_n(keys_.view().row(patch) + head * dim, dim, keys + key * dim);
        float* const value = values + key++ * dim;
        std::copy_n(of.values.row(patch) + of.column + first, width, value);
        std::fill(value + width, value + dim, 0.0f);
      }
    }
    kernels.pack({.keys = keys,
                  .key_stride = dim,
                  .values = values,
                  .value_stride = dim,
                  .num_tokens = num_keys,
                  .first_token = 0,
                  .last_token = num_keys,
                  .head_dim = dim,
                  .packed = packed,
                  .scratch = scratch});
    for (std::size_t at = 0; at < num_queries; at += kernels::kQueriesAtOnce) {
      kernels.attend({.queries = queries + at * dim,
                      .query_stride = dim,
                      .num_queries = std::min(kernels::kQueriesAtOnce, num_queries - at),
                      .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim))),
                      .packed = packed,
                      .num_tokens = num_keys,
                      .head_dim = dim,
                      .out = out + at * dim,
                      .out_stride = dim,
                      .scratch = scratch});
    }
    block.for_each_query([&](std::size_t number, std::size_t row) {
      float* const to = of.out.row(row) + of.out_column + first;
      for (std::size_t k = 0; k < width; ++k) to[k] += of.factor * out[number * dim + k];
    });
  }
}

void LearnedGrid::attend(const MapTile& tile, TensorView<const float> queries,
                         std::span<const HeadValues> heads, AttentionMemory& memory) const {
  const auto first_of = [](const std::vector<AxisWindow>& windows, std::size_t pixel) {
    return std::ranges::upper_bound(windows, pixel, {}, &AxisWindow::begin) - 1;
  };
  for (auto row = first_of(rows_, tile.y); row != rows_.end() && row->begin < tile.y + tile.height; ++row) {
    for (auto column = first_of(columns_, tile.x);
         column != columns_.end() && column->begin < tile.x + tile.width; ++column) {
      const Block block{.tile = tile,
                        .queries = queries,
                        .y0 = std::max(row->begin, tile.y),
                        .y1 = std::min(row->end, tile.y + tile.height),
                        .x0 = std::max(column->begin, tile.x),
                        .x1 = std::min(column->end, tile.x + tile.width),
                        .rows = &*row,
                        .columns = &*column};
      for (std::size_t head = 0; head < heads.size(); ++head) attend_block(block, head, heads[head], memory);
    }
  }
}

void LearnedGrid::features_of(const MapTile& tile, TensorView<const float> patches, TensorView<float> out,
                              AttentionMemory& memory) const {
  const PixelUpsampler::Network& network = queries_->network();
  const std::size_t width = patches.num_columns() / num_groups();
  std::vector<HeadValues> heads;
  for (std::size_t h = 0; h < network.num_heads; ++h) {
    const std::size_t column = network.own_channels ? h * width : 0;
    heads.push_back({patches, column, width, out, column,
                     network.own_channels ? 1.0f : 1.0f / static_cast<float>(network.num_heads)});
  }
  for (std::size_t i = 0; i < tile.num_pixels(); ++i) std::fill_n(out.row(i), patches.num_columns(), 0.0f);
  attend(tile, queries_->of_tile(tile, memory), heads, memory);
}

}  // namespace vit::internal

namespace vit {

Tensor<float> PixelUpsampler::upsample(ImageView image, TensorView<const float> features, int threads) const {
  using namespace internal;
  constexpr Where kWhere{"upsample", ErrorKind::mismatch};
  VIT_CHECK(!image.empty(), kWhere.with(ErrorKind::argument), "an image without pixels");
  VIT_CHECK(features.rank() == 3 && features.num_elements() > 0, kWhere,
            "features of patches have the shape (rows, columns, channels), not ",
            features.shape().to_string());
  const Image pixels = to_rgb(image);
  const MapSize grid{features.dim(0), features.dim(1)};
  const TensorView<const float> patches(features.data(), Shape{grid.height * grid.width, features.dim(2)},
                                        features.row_stride());
  const std::shared_ptr<const PixelUpsampler> self(std::shared_ptr<const PixelUpsampler>(), this);
  network_->check({pixels.height(), pixels.width()}, {grid, patches});
  const LearnedGrid learned(std::make_shared<const ImageQueries>(self, pixels, threads), {grid, patches},
                            threads);
  Tensor<float> out(Shape{pixels.height(), pixels.width(), features.dim(2)});
  const std::vector<MapTile> tiles = learned.tiles();
  std::vector<AttentionMemory> memories(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(tiles.size(), threads, [&](std::size_t t, int thread) {
    const MapTile& tile = tiles[t];
    Tensor<float> rows(Shape{tile.num_pixels(), features.dim(2)});
    learned.features_of(tile, patches, rows, memories[static_cast<std::size_t>(thread)]);
    for (std::size_t i = 0; i < tile.num_pixels(); ++i)
      std::copy_n(rows.view().row(i), features.dim(2),
                  out.view().row((tile.y + i / tile.width) * pixels.width() + tile.x + i % tile.width));
  });
  return out;
}

}  // namespace vit
