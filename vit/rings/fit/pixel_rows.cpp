#include "vit/rings/fit/pixel_rows.h"

#include <algorithm>
#include <unordered_map>

#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

/// Labeled pixels, sorted by their row of training.
struct Groups {
  std::vector<std::size_t> pixels;  // raster indices
  std::vector<std::size_t> begins;  // (n + 1) of each row in `pixels`
};

Groups group_pixels(const FeatureGrid& grid, TensorView<const std::int32_t> labels, PixelRows& rows) {
  const Tensor<std::int32_t> strokes = strokes_of(labels);
  const std::size_t width = labels.dim(1);
  std::unordered_map<std::uint64_t, std::size_t> numbers;  // of rows, by stroke and patch
  std::vector<std::size_t> labeled, row_of;
  for (std::size_t i = 0; i < labels.num_elements(); ++i) {
    const std::int32_t label = labels.row(i / width)[i % width];
    if (label < 0) continue;
    const auto stroke = static_cast<std::uint64_t>(strokes.data()[i]);
    const std::uint64_t key = stroke * grid.num_patches() + grid.nearest(i % width, i / width);
    const auto [found, is_new] = numbers.emplace(key, rows.classes.size());
    if (is_new) {
      rows.classes.push_back(static_cast<std::uint32_t>(label));
      rows.strokes.push_back(stroke);
      rows.num_pixels.push_back(0);
    }
    ++rows.num_pixels[found->second];
    labeled.push_back(i);
    row_of.push_back(found->second);
  }
  Groups out{.pixels = std::vector<std::size_t>(labeled.size()), .begins = {0}};
  for (const std::size_t count : rows.num_pixels) out.begins.push_back(out.begins.back() + count);
  std::vector<std::size_t> next(out.begins.begin(), out.begins.end() - 1);
  for (std::size_t i = 0; i < labeled.size(); ++i) out.pixels[next[row_of[i]]++] = labeled[i];
  return out;
}

/// The weights of all patches in the mean of some pixels.
class MeanWeights {
 public:
  explicit MeanWeights(std::size_t num_patches) : weights_(num_patches) {}

  void add(std::span<const WeightedPatch> patches) {
    for (const WeightedPatch& of : patches) {
      if (weights_[of.patch] == 0.0 && of.weight > 0.0) used_.push_back(of.patch);
      weights_[of.patch] += of.weight;
    }
  }
  /// The mean of the features over `count` pixels, to `out` (C); starts anew.
  void take(const Tensor<float>& features, std::size_t count, float* out) {
    const std::size_t columns = features.dim(1);
    sum_.assign(columns, 0.0);
    for (const std::size_t patch : used_) {
      const float* const row = features.view().row(patch);
      for (std::size_t c = 0; c < columns; ++c) sum_[c] += weights_[patch] * static_cast<double>(row[c]);
      weights_[patch] = 0.0;
    }
    used_.clear();
    for (std::size_t c = 0; c < columns; ++c)
      out[c] = static_cast<float>(sum_[c] / static_cast<double>(count));
  }

 private:
  std::vector<double> weights_, sum_;
  std::vector<std::size_t> used_;
};

/// The mean of the features that a learned network gives to some pixels near each other, to `out` (C).
void take_learned_mean(const FeatureGrid& grid, std::span<const std::size_t> pixels, std::size_t width,
                       float* out, AttentionMemory& memory) {
  std::size_t top = ~std::size_t{0}, left = top, bottom = 0, right = 0;
  for (const std::size_t pixel : pixels) {
    top = std::min(top, pixel / width);
    left = std::min(left, pixel % width);
    bottom = std::max(bottom, pixel / width + 1);
    right = std::max(right, pixel % width + 1);
  }
  const std::size_t columns = grid.features.dim(1);
  std::vector<double> sum(columns);
  for (const MapTile& part : tiles_of({bottom - top, right - left})) {
    const MapTile tile{top + part.y, left + part.x, part.height, part.width};
    const auto is_inside = [&](std::size_t pixel) {  // differences below 0 are large
      return pixel / width - tile.y < tile.height && pixel % width - tile.x < tile.width;
    };
    if (std::ranges::none_of(pixels, is_inside)) continue;
    Tensor<float> values(Shape{tile.num_pixels(), columns});
    grid.learned->values_of(tile, grid.features, values, memory);
    for (const std::size_t pixel : pixels) {
      if (!is_inside(pixel)) continue;
      const float* const row =
          values.view().row((pixel / width - tile.y) * tile.width + pixel % width - tile.x);
      for (std::size_t c = 0; c < columns; ++c) sum[c] += static_cast<double>(row[c]);
    }
  }
  for (std::size_t c = 0; c < columns; ++c)
    out[c] = static_cast<float>(sum[c] / static_cast<double>(pixels.size()));
}

void add_mean_color(const Image& image, std::span<const std::size_t> pixels, float* out) {
  std::array<double, 3> sum{};
  for (const std::size_t pixel : pixels) {
    const Color3 color = color_at(image, pixel % image.width(), pixel / image.width());
    for (std::size_t k = 0; k < 3; ++k) sum[k] += static_cast<double>(color[k]);
  }
  for (std::size_t k = 0; k < 3; ++k)
    out[k] = static_cast<float>(sum[k] / static_cast<double>(pixels.size()));
}

}  // namespace

Tensor<std::int32_t> strokes_of(TensorView<const std::int32_t> labels) {
  const auto height = static_cast<std::ptrdiff_t>(labels.dim(0));
  const auto width = static_cast<std::ptrdiff_t>(labels.dim(1));
  Tensor<std::int32_t> out(labels.shape());
  std::ranges::fill(out.flat(), -1);
  const auto label = [&](std::ptrdiff_t y, std::ptrdiff_t x) {
    return labels.row(static_cast<std::size_t>(y))[x];
  };
  std::int32_t count = 0;
  std::vector<std::ptrdiff_t> open;  // pixels whose neighbors are to be looked at
  for (std::ptrdiff_t start = 0; start < height * width; ++start) {
    const std::int32_t own = label(start / width, start % width);
    if (own < 0 || out.data()[start] >= 0) continue;
    out.data()[start] = count;
    open.push_back(start);
    while (!open.empty()) {
      const std::ptrdiff_t y = open.back() / width, x = open.back() % width;
      open.pop_back();
      for (std::ptrdiff_t ny = std::max<std::ptrdiff_t>(y - 1, 0); ny < std::min(y + 2, height); ++ny) {
        for (std::ptrdiff_t nx = std::max<std::ptrdiff_t>(x - 1, 0); nx < std::min(x + 2, width); ++nx) {
          std::int32_t& stroke = out.data()[ny * width + nx];
          if (stroke >= 0 || label(ny, nx) != own) continue;
          stroke = count;
          open.push_back(ny * width + nx);
        }
      }
    }
    ++count;
  }
  return out;
}

PixelRows rows_of_labels(std::span<const FeatureGrid> grids, const Image& image, bool with_color,
                         TensorView<const std::int32_t> labels, int threads) {
  PixelRows rows;
  std::vector<std::size_t> firsts;  // features of each grid
  for (const FeatureGrid& grid : grids) {
    firsts.push_back(rows.num_features);
    rows.num_features += grid.features.dim(1);
  }
  const std::size_t first_color = rows.num_features;
  if (with_color) rows.num_features += 3;
  const Groups groups = group_pixels(grids.front(), labels, rows);
  const std::size_t count = rows.classes.size(), width = labels.dim(1);
  rows.numbers.resize(count * rows.num_features);
  constexpr std::size_t kPart = 64;  // rows that share the memory for weights
  parallel_for_parts(count, kPart, threads, [&](std::size_t begin, std::size_t size) {
    PatchWeights weights;
    for (std::size_t g = 0; g < grids.size(); ++g) {
      if (grids[g].learned != nullptr) {
        AttentionMemory memory;
        for (std::size_t r = begin; r < begin + size; ++r) {
          const std::span pixels(&groups.pixels[groups.begins[r]], rows.num_pixels[r]);
          take_learned_mean(grids[g], pixels, width, &rows.numbers[r * rows.num_features + firsts[g]],
                            memory);
        }
        continue;
      }
      MeanWeights mean(grids[g].num_patches());
      for (std::size_t r = begin; r < begin + size; ++r) {
        for (std::size_t i = groups.begins[r]; i < groups.begins[r + 1]; ++i) {
          grids[g].weigh(image, groups.pixels[i] % width, groups.pixels[i] / width, weights);
          mean.add(weights.all());
        }
        mean.take(grids[g].features, rows.num_pixels[r], &rows.numbers[r * rows.num_features + firsts[g]]);
      }
    }
    for (std::size_t r = begin; with_color && r < begin + size; ++r) {
      const std::span pixels(&groups.pixels[groups.begins[r]], rows.num_pixels[r]);
      add_mean_color(image, pixels, &rows.numbers[r * rows.num_features + first_color]);
    }
  });
  return rows;
}

}  // namespace vit::internal
