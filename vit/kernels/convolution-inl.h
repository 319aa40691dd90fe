// Convolutions of 3x3 by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray 2015): a window of 6x6
// pixels becomes 36 numbers for each channel, which are multiplied by as many of the kernel, so that 16
// outputs need 36 products of channels instead of 144.
//
//   out = A^T ((G w G^T) * (B^T window B)) A       * is a product of channels for each of the 36 places
//
// The matrices belong to the polynomials through the points 0, +-3/4, +-3/2 and infinity. All entries of A
// and B are exact in float32, and numbers grow least for points around 1: the largest error of a map is about
// twice that of plain sums, where with the usual points 0, +-1, +-2 it is nine times as large.
//
// A NaN of the map becomes NaN in all 16 outputs of its own tile, and in the lines of the neighboring tiles
// that read it, not only in the 3x3 outputs around it; so does an infinite number, of which transforms take
// differences. All other outputs keep their bits.
#pragma once

#include <limits>

#include "vit/kernels/convolution.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace winograd {

constexpr size_t kTile = kConvolutionTile;
constexpr size_t kWindow = kTile + 2;
constexpr size_t kPlaces = kWindow * kWindow;
constexpr float kNear = 0.75f, kFar = 1.5f;  // the points, with both signs
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;
// Between the places of tiles: distances of 4 KiB would compete for the same lines of the L1 cache.
constexpr size_t kGap = 16;

constexpr size_t kPixels = kTile * kTile;
constexpr size_t kTaps = 9;  // of a kernel

HWY_INLINE bool is_plain(size_t in_channels) {
  return in_channels < kTransformedChannels;
}

inline size_t tiles_at_once(size_t in_channels) noexcept {
  if (is_plain(in_channels)) return 12;
  constexpr size_t kFloats = size_t{1} << 17;  // half of a L2 cache; the other half is for weights
  const size_t tiles = kFloats / (kPlaces * (in_channels + kPanel)) / kTileRows * kTileRows;
  return HWY_MAX(size_t{24}, HWY_MIN(tiles, size_t{48}));
}

/// Floats from one of the 36 places to the next: of windows, and of sums.
inline size_t window_step(size_t in_channels) noexcept {
  return (tiles_at_once(in_channels) * in_channels + kGap + 15) / 16 * 16;
}
inline size_t sum_step(size_t in_channels) noexcept {
  return tiles_at_once(in_channels) * kPanel + kGap;
}

inline size_t scratch_floats(size_t in_channels) noexcept {
  if (is_plain(in_channels)) return tiles_at_once(in_channels) * kPixels * (kTaps * in_channels + kPanel);
  return kPlaces * (window_step(in_channels) + sum_step(in_channels));
}

inline size_t packed_floats(size_t out_channels, size_t in_channels) noexcept {
  const size_t numbers = (is_plain(in_channels) ? kTaps : kPlaces) * in_channels;
  return (out_channels + kPanel - 1) / kPanel * kPanel * numbers;
}

/// G w G^T of one kernel (3, 3).
inline void transform_kernel(const float* weight, float (&places)[kPlaces]) noexcept {
  constexpr double kNearScale = 2.0 * kNear2 * (double{kNear2} - kFar2);
  constexpr double kFarScale = 2.0 * kFar2 * (double{kFar2} - kNear2);
  // a row of G for each point p: 1, p, p^2 over the product of its distances to the others
  constexpr double kRows[kWindow][3] = {{1.0 / (double{kNear2} * kFar2), 0.0, 0.0},
                                        {1.0 / kNearScale, kNear / kNearScale, kNear2 / kNearScale},
                                        {1.0 / kNearScale, -kNear / kNearScale, kNear2 / kNearScale},
                                        {1.0 / kFarScale, kFar / kFarScale, kFar2 / kFarScale},
                                        {1.0 / kFarScale, -kFar / kFarScale, kFar2 / kFarScale},
                                        {0.0, 0.0, 1.0}};
  for (size_t u = 0; u < kWindow; ++u) {
    for (size_t v = 0; v < kWindow; ++v) {
      double sum = 0.0;
      for (size_t y = 0; y < 3; ++y) {
        for (size_t x = 0; x < 3; ++x) sum += kRows[u][y] * kRows[v][x] * double{weight[y * 3 + x]};
      }
      places[u * kWindow + v] = static_cast<float>(sum);
    }
  }
}

/// Panels of kPanel outputs; of each, its 36 places, or 9 taps, of (I, kPanel).
inline void pack(const ConvolutionPackArgs& args) noexcept {
  const size_t in = args.in_channels, count = is_plain(in) ? kTaps : kPlaces;
  float places[kPlaces];
  for (size_t column = 0; column < (args.out_channels + kPanel - 1) / kPanel * kPanel; ++column) {
    float* const panel = args.packed + column / kPanel * kPanel * count * in + column % kPanel;
    for (size_t i = 0; i < in; ++i) {
      for (float& place : places) place = 0.0f;
      if (column < args.out_channels) {
        const float* const weight = args.weight + (column * in + i) * kTaps;
        if (is_plain(in)) {
          for (size_t p = 0; p < kTaps; ++p) places[p] = weight[p];
        } else {
          transform_kernel(weight, places);
        }
      }
      for (size_t p = 0; p < count; ++p) panel[(p * in + i) * kPanel] = places[p];
    }
  }
}

/// The pixels that the next tile of the row reads or writes besides those of this one: maps are larger than
/// the L2 cache, and hardware does not follow windows.
template <size_t kRows>
HWY_INLINE void prefetch_pixels(const float* first, size_t stride, size_t channels) {
  for (size_t y = 0; y < kRows; ++y) {
    for (size_t x = 0; x < kTile; ++x) __builtin_prefetch(first + y * stride + x * channels, 0, 3);
  }
}

template <bool kFull>
HWY_INLINE V load_some(const float* from, size_t count) {
  if constexpr (kFull) return hn::LoadU(D(), from);
  return load_first(from, count, 0.0f);
}

template <bool kFull>
HWY_INLINE void store_some(V value, size_t count, float* to) {
  if constexpr (kFull) {
    hn::StoreU(value, D(), to);
  } else {
    store_first(value, count, to);
  }
}

/// B^T d to `out`, number after number at distances of `step`.
template <bool kFull>
HWY_INLINE void spread(V d0, V d1, V d2, V d3, V d4, V d5, size_t count, float* out, size_t step) {
  const V near2 = set(kNear2), far2 = set(kFar2), both = set(kNear2 + kFar2), product = set(kNear2 * kFar2);
  store_some<kFull>(hn::MulAdd(product, d0, hn::NegMulAdd(both, d2, d4)), count, out);
  const V even = hn::NegMulAdd(far2, d2, d4), odd = hn::NegMulAdd(far2, d1, d3);
  store_some<kFull>(hn::MulAdd(set(kNear), odd, even), count, out + step);
  store_some<kFull>(hn::NegMulAdd(set(kNear), odd, even), count, out + 2 * step);
  const V even2 = hn::NegMulAdd(near2, d2, d4), odd2 = hn::NegMulAdd(near2, d1, d3);
  store_some<kFull>(hn::MulAdd(set(kFar), odd2, even2), count, out + 3 * step);
  store_some<kFull>(hn::NegMulAdd(set(kFar), odd2, even2), count, out + 4 * step);
  store_some<kFull>(hn::MulAdd(product, d1, hn::NegMulAdd(both, d3, d5)), count, out + 5 * step);
}

struct FourRows {
  V y0, y1, y2, y3;
};

/// A^T m.
HWY_INLINE FourRows gather(V m0, V m1, V m2, V m3, V m4, V m5) {
  const V even = hn::Add(m1, m2), odd = hn::Sub(m1, m2), even2 = hn::Add(m3, m4), odd2 = hn::Sub(m3, m4);
  return {hn::Add(m0, hn::Add(even, even2)), hn::MulAdd(set(kNear), odd, hn::Mul(set(kFar), odd2)),
          hn::MulAdd(set(kNear2), even, hn::Mul(set(kFar2), even2)),
          hn::Add(hn::MulAdd(set(kNear * kNear2), odd, hn::Mul(set(kFar * kFar2), odd2)), m5)};
}

/// What at_least() raises numbers to.
HWY_INLINE float least_of(bool relu) {
  return relu ? 0.0f : -std::numeric_limits<float>::infinity();
}

/// The 6x6 pixels of one tile, from the one above and to the left of it; those from row `rows` and column
/// `columns` on are outside the map and its border.
struct Window {
  const float* in;
  size_t stride, channels, rows, columns;
  float least;  // smaller numbers are read as this
};

/// The channels from c on, `count` < kLanes if they end there: place p to out + p * step.
template <bool kFull, bool kInside>
HWY_INLINE void spread_vector(const Window& window, size_t c, size_t count, float* out, size_t step) {
  HWY_ALIGN float half[kPlaces * kLanes];
  if constexpr (kInside)
    prefetch_pixels<kWindow>(window.in + kWindow * window.channels + c, window.stride, window.channels);
  for (size_t x = 0; x < kWindow; ++x) {
    const auto at = [&](size_t y) HWY_ATTR {
      if (!kInside && (y >= window.rows || x >= window.columns)) return hn::Zero(D());
      return at_least(window.least,
                      load_some<kFull>(window.in + y * window.stride + x * window.channels + c, count));
    };
    spread<true>(at(0), at(1), at(2), at(3), at(4), at(5), kLanes, half + x * kLanes, kWindow * kLanes);
  }
  for (size_t u = 0; u < kWindow; ++u) {
    const auto at = [&](size_t x) HWY_ATTR { return hn::Load(D(), half + (u * kWindow + x) * kLanes); };
    spread<kFull>(at(0), at(1), at(2), at(3), at(4), at(5), count, out + u * kWindow * step + c, step);
  }
}

template <bool kInside>
HWY_NOINLINE void spread_window(const Window& window, float* out, size_t step) {
  size_t c = 0;
  for (; c + kLanes <= window.channels; c += kLanes)
    spread_vector<true, kInside>(window, c, kLanes, out, step);
  if (c < window.channels) spread_vector<false, kInside>(window, c, window.channels - c, out, step);
}

/// A tile of the output: its first pixel, and how many rows and columns of it the map has.
struct TileOutput {
  const ConvolutionArgs& args;
  size_t y, x, rows, columns;

  /// The numbers from channel `column` on of pixel (i, j), after bias and ReLU.
  template <bool kFull>
  HWY_INLINE void put(size_t i, size_t j, size_t column, size_t count, V value) const {
    const size_t place = (x + j) * args.out_channels + column;
    if (args.residual)
      value = hn::Add(value, load_some<kFull>(args.residual + (y + i) * args.residual_stride + place, count));
    if (args.second)
      value = hn::Add(value, load_some<kFull>(args.second + (y + i) * args.second_stride + place, count));
    store_some<kFull>(value, count, args.out + (y + i) * args.out_stride + place);
  }
};

/// One vector of the sums of a tile, place p at sums + p * step, to the output.
template <bool kFull>
HWY_INLINE void gather_vector(const float* sums, size_t step, const TileOutput& tile, size_t column,
                              size_t count) {
  HWY_ALIGN float half[kTile * kWindow * kLanes];
  const ConvolutionArgs& args = tile.args;
  prefetch_pixels<kTile>(args.out + tile.y * args.out_stride + (tile.x + kTile) * args.out_channels + column,
                         args.out_stride, args.out_channels);
  const float least = least_of(args.relu);
  const V bias = args.bias ? load_some<kFull>(args.bias + column, count) : hn::Zero(D());
  for (size_t v = 0; v < kWindow; ++v) {
    const auto at = [&](size_t u) HWY_ATTR { return hn::Load(D(), sums + (u * kWindow + v) * step); };
    const FourRows y = gather(at(0), at(1), at(2), at(3), at(4), at(5));
    float* const to = half + v * kLanes;
    hn::Store(y.y0, D(), to);
    hn::Store(y.y1, D(), to + kWindow * kLanes);
    hn::Store(y.y2, D(), to + 2 * kWindow * kLanes);
    hn::Store(y.y3, D(), to + 3 * kWindow * kLanes);
  }
  for (size_t i = 0; i < tile.rows; ++i) {
    const auto at = [&](size_t v) HWY_ATTR { return hn::Load(D(), half + (i * kWindow + v) * kLanes); };
    const FourRows row = gather(at(0), at(1), at(2), at(3), at(4), at(5));
    tile.put<kFull>(i, 0, column, count, at_least(least, hn::Add(row.y0, bias)));
    if (tile.columns > 1) tile.put<kFull>(i, 1, column, count, at_least(least, hn::Add(row.y1, bias)));
    if (tile.columns > 2) tile.put<kFull>(i, 2, column, count, at_least(least, hn::Add(row.y2, bias)));
    if (tile.columns > 3) tile.put<kFull>(i, 3, column, count, at_least(least, hn::Add(row.y3, bias)));
  }
}

HWY_NOINLINE void gather_panel(const float* sums, size_t step, const TileOutput& tile, size_t column) {
  const size_t end = HWY_MIN(column + kPanel, tile.args.out_channels);
  for (; column + kLanes <= end; column += kLanes, sums += kLanes)
    gather_vector<true>(sums, step, tile, column, kLanes);
  if (column < end) gather_vector<false>(sums, step, tile, column, end - column);
}

HWY_INLINE TileOutput tile_output(const ConvolutionArgs& args, size_t tile) {
  const size_t across = (args.width + kTile - 1) / kTile;
  const size_t y = tile / across * kTile, x = tile % across * kTile;
  return {args, y, x, HWY_MIN(kTile, args.height - y), HWY_MIN(kTile, args.width - x)};
}

HWY_INLINE void spread_tile(const ConvolutionArgs& args, size_t tile, float* out, size_t step) {
  const TileOutput to = tile_output(args, tile);
  const size_t channels = args.in_channels;
  const Window window{args.in + to.y * args.in_stride + to.x * channels - args.in_stride - channels,
                      args.in_stride,
                      channels,
                      to.rows + 2,
                      to.columns + 2,
                      least_of(args.in_relu)};
  if (to.rows == kTile && to.columns == kTile) return spread_window<true>(window, out, step);
  spread_window<false>(window, out, step);
}

/// The windows of the 16 pixels of a tile, one after the other; zeros for pixels outside of the map.
HWY_INLINE void copy_windows(const ConvolutionArgs& args, size_t tile, float* out) {
  const TileOutput to = tile_output(args, tile);
  const size_t row = 3 * args.in_channels;  // of a window
  const float least = least_of(args.in_relu);
  for (size_t pixel = 0; pixel < kPixels; ++pixel, out += 3 * row) {
    const size_t i = pixel / kTile, j = pixel % kTile;
    const bool inside = i < to.rows && j < to.columns;
    const float* const corner = args.in + (to.y + i) * args.in_stride + (to.x + j) * args.in_channels -
                                args.in_stride - args.in_channels;
    for (size_t k = 0; k < 3 * row; ++k) {
      const float value = inside ? corner[k / row * args.in_stride + k % row] : 0.0f;
      out[k] = value < least ? least : value;
    }
  }
}

/// convolve_tiles() by plain sums.
HWY_INLINE void convolve_plainly(const ConvolutionArgs& args, size_t first, size_t count) {
  const size_t features = kTaps * args.in_channels;
  float* const windows = args.scratch;
  float* const sums = windows + tiles_at_once(args.in_channels) * kPixels * features;
  for (size_t t = 0; t < count; ++t) copy_windows(args, first + t, windows + t * kPixels * features);
  const float least = least_of(args.relu);
  for (size_t column = 0; column < args.out_channels; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, args.out_channels - column);
    multiply<FloatLines>({windows, features, 1}, count * kPixels, {args.packed + column * features, features},
                         columns, {TileStart::zero, sums});
    for (size_t row = 0; row < count * kPixels; ++row) {
      const TileOutput tile = tile_output(args, first + row / kPixels);
      const size_t i = row % kPixels / kTile, j = row % kTile;
      if (i >= tile.rows || j >= tile.columns) continue;
      for (size_t c = 0; c < columns; c += kLanes) {
        const size_t rest = HWY_MIN(kLanes, columns - c);
        V value = hn::Load(D(), sums + row * kPanel + c);
        if (args.bias)
          value = hn::Add(value, rest == kLanes ? hn::LoadU(D(), args.bias + column + c)
                                                : load_first(args.bias + column + c, rest, 0.0f));
        value = at_least(least, value);
        if (rest == kLanes) {
          tile.put<true>(i, j, column + c, kLanes, value);
        } else {
          tile.put<false>(i, j, column + c, rest, value);
        }
      }
    }
  }
}

/// Tiles [first, first + count); count <= tiles_at_once.
HWY_INLINE void convolve_tiles(const ConvolutionArgs& args, size_t first, size_t count) {
  const size_t in = args.in_channels;
  const size_t step = window_step(in), of_sums = sum_step(in);
  float* const windows = args.scratch;
  float* const sums = windows + kPlaces * step;
  for (size_t t = 0; t < count; ++t) spread_tile(args, first + t, windows + t * in, step);
  const float* packed = args.packed;
  for (size_t column = 0; column < args.out_channels; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, args.out_channels - column);
    for (size_t p = 0; p < kPlaces; ++p) {
      for (size_t k = 0; k < in; k += kBlockK) {
        const RightOperand right{packed, HWY_MIN(kBlockK, in - k)};
        packed += right.count * kPanel;
        multiply<FloatLines>({windows + p * step + k, in, 1}, count, right, columns,
                             {k == 0 ? TileStart::zero : TileStart::stored, sums + p * of_sums});
      }
    }
    for (size_t t = 0; t < count; ++t)
      gather_panel(sums + t * kPanel, of_sums, tile_output(args, first + t), column);
  }
}

inline void convolve(const ConvolutionArgs& args) noexcept {
  const size_t at_once = tiles_at_once(args.in_channels);
  for (size_t tile = args.first_tile; tile < args.last_tile; tile += at_once) {
    const size_t count = HWY_MIN(at_once, args.last_tile - tile);
    if (is_plain(args.in_channels)) {
      convolve_plainly(args, tile, count);
    } else {
      convolve_tiles(args, tile, count);
    }
  }
}

[[maybe_unused]] constexpr ConvolutionKernels kKernels{.panel_columns = kPanel,
                                                       .tiles_at_once = tiles_at_once,
                                                       .scratch_floats = scratch_floats,
                                                       .packed_floats = packed_floats,
                                                       .pack = pack,
                                                       .convolve = convolve};

}  // namespace winograd
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
