#include "vit/rings/fit/learned/tiled_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/rings/fit/exp_of_negative.h"

namespace vit::internal {
namespace {

constexpr Where kNetwork{"TiledNetwork", ErrorKind::mismatch};
constexpr std::size_t kTileEdge = 64;
constexpr std::size_t kGroups = 8;
constexpr double kGroupEps = 1e-5;
constexpr float kRmsEps = 1.1920929e-7f;  // of PyTorch's RMSNorm in float32

/// The pixels of a map that a kernel of 3x3 reads for a tile.
MapTile grown(const MapTile& tile, MapSize size) {
  const std::size_t y = tile.y - std::min<std::size_t>(tile.y, 1),
                    x = tile.x - std::min<std::size_t>(tile.x, 1);
  return {y, x, std::min(tile.y + tile.height + 1, size.height) - y,
          std::min(tile.x + tile.width + 1, size.width) - x};
}

/// The part `inner` of a map of `tile`, which may reach into its border.
FeatureMap part_of(const FeatureMap& map, const MapTile& tile, const MapTile& inner) {
  const auto down = static_cast<std::ptrdiff_t>(inner.y) - static_cast<std::ptrdiff_t>(tile.y);
  const auto across = static_cast<std::ptrdiff_t>(inner.x) - static_cast<std::ptrdiff_t>(tile.x);
  return {map.row(down) + across * static_cast<std::ptrdiff_t>(map.channels()),
          {inner.height, inner.width},
          map.channels(),
          map.row_stride(),
          false};
}

FeatureMap map_in(Tensor<float>& memory, const MapTile& tile, std::size_t channels) {
  const MapSize size{tile.height, tile.width};
  const std::size_t floats = FeatureMap::num_floats(size, channels);
  return FeatureMap::over(TensorView<float>(reserve(memory, floats), Shape{floats}), size, channels);
}

/// Fills what is beyond the edges of the whole map in the border of a tile.
void pad(const FeatureMap& map, const MapTile& tile, MapSize size, bool reflects) {
  const auto height = static_cast<std::ptrdiff_t>(tile.height),
             width = static_cast<std::ptrdiff_t>(tile.width);
  const auto channels = static_cast<std::ptrdiff_t>(map.channels());
  const auto fill_row = [&](std::ptrdiff_t row, std::ptrdiff_t mirrored) {
    float* const to = map.row(row) - channels;
    reflects ? std::copy_n(map.row(mirrored) - channels, (width + 2) * channels, to)
             : std::fill_n(to, (width + 2) * channels, 0.0f);
  };
  if (tile.y == 0) fill_row(-1, 1);
  if (tile.y + tile.height == size.height) fill_row(height, height - 2);
  const auto fill_column = [&](std::ptrdiff_t column, std::ptrdiff_t mirrored) {
    for (std::ptrdiff_t y = -1; y <= height; ++y) {
      float* const to = map.row(y) + column * channels;
      reflects ? std::copy_n(map.row(y) + mirrored * channels, channels, to)
               : std::fill_n(to, channels, 0.0f);
    }
  };
  if (tile.x == 0) fill_column(-1, 1);
  if (tile.x + tile.width == size.width) fill_column(width, width - 2);
}

void apply_group_norm(const MeasuredStage& of, bool with_silu, std::size_t channels, const float* in,
                      float* out) {
  for (std::size_t c = 0; c < channels; ++c) out[c] = of.factors[c] * in[c] + of.offsets[c];
  for (std::size_t c = 0; with_silu && c < channels; ++c) {
    constexpr float kLeast = -87.0f;  // below, the result is 0
    const float size = out[c] < 0 ? out[c] : -out[c];
    const float e = exp_of_negative(size < kLeast ? kLeast : size);
    out[c] *= (out[c] < 0 ? e : 1.0f) / (1.0f + e);
  }
}

void apply_rms_norm(std::span<const float> gamma, const float* in, float* out) {
  double squares = 0;
  for (std::size_t c = 0; c < gamma.size(); ++c)
    squares += static_cast<double>(in[c]) * static_cast<double>(in[c]);
  const double mean = squares / static_cast<double>(gamma.size());
  const auto factor = static_cast<float>(1 / std::sqrt(mean + static_cast<double>(kRmsEps)));
  for (std::size_t c = 0; c < gamma.size(); ++c) out[c] = in[c] * factor * gamma[c];
}

/// The norm of a stage for all pixels of a map.
void normalize(const NetworkStage& stage, const MeasuredStage& of, const FeatureMap& in,
               const FeatureMap& out) {
  for (std::size_t y = 0; y < in.height(); ++y) {
    const float* from = in.row(static_cast<std::ptrdiff_t>(y));
    float* to = out.row(static_cast<std::ptrdiff_t>(y));
    for (std::size_t x = 0; x < in.width(); ++x, from += in.channels(), to += in.channels()) {
      switch (stage.norm) {
        case StageNorm::none: std::copy_n(from, in.channels(), to); break;
        case StageNorm::group: apply_group_norm(of, false, in.channels(), from, to); break;
        case StageNorm::group_silu: apply_group_norm(of, true, in.channels(), from, to); break;
        case StageNorm::rms: apply_rms_norm(stage.gamma, from, to); break;
      }
    }
  }
}

bool is_group(StageNorm norm) {
  return norm == StageNorm::group || norm == StageNorm::group_silu;
}

}  // namespace

float* reserve(Tensor<float>& memory, std::size_t floats) {
  if (memory.flat().size() < floats) memory = Tensor<float>(Shape{floats});
  return memory.data();
}

std::vector<MapTile> tiles_of(MapSize size) {
  std::vector<MapTile> out;
  for (std::size_t y = 0; y < size.height; y += kTileEdge) {
    for (std::size_t x = 0; x < size.width; x += kTileEdge)
      out.push_back({y, x, std::min(kTileEdge, size.height - y), std::min(kTileEdge, size.width - x)});
  }
  return out;
}

RotationTables::RotationTables(const PixelRotation& rotation, MapSize size) {
  const auto fill = [&](std::size_t count, const std::vector<double>& frequencies, Tensor<float>& cos,
                        Tensor<float>& sin) {
    cos = Tensor<float>(Shape{count, frequencies.size()});
    sin = Tensor<float>(Shape{count, frequencies.size()});
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<double>(i), all = static_cast<double>(count);
      const double place = rotation.is_centered ? 2 * (at + 0.5) / all - 1 : count > 1 ? at / (all - 1) : 0.0;
      for (std::size_t c = 0; c < frequencies.size(); ++c) {
        cos.view().row(i)[c] = static_cast<float>(std::cos(place * frequencies[c]));
        sin.view().row(i)[c] = static_cast<float>(std::sin(place * frequencies[c]));
      }
    }
  };
  fill(size.height, rotation.row_frequencies, row_cos, row_sin);
  fill(size.width, rotation.column_frequencies, column_cos, column_sin);
}

void RotationTables::rotate(std::size_t y, std::size_t x, std::span<float> pixel) const {
  const std::size_t dim = row_cos.dim(1), half = dim / 2;
  const float *const rc = row_cos.view().row(y), *const rs = row_sin.view().row(y);
  const float *const cc = column_cos.view().row(x), *const cs = column_sin.view().row(x);
  for (std::size_t head = 0; head < pixel.size(); head += dim) {
    float *const low = &pixel[head], *const high = low + half;
    for (std::size_t c = 0; c < half; ++c) {
      const std::size_t d = c + half;
      const float a = low[c], b = high[c];
      low[c] = a * (rc[c] * cc[c] - rs[c] * cs[c]) - b * (rs[c] * cc[c] + rc[c] * cs[c]);
      high[c] = b * (rc[d] * cc[d] - rs[d] * cs[d]) + a * (rs[d] * cc[d] + rc[d] * cs[d]);
    }
  }
}

TiledNetwork::TiledNetwork(std::vector<NetworkStage> stages) : stages_(std::move(stages)) {
  for (std::size_t s = 1; s < stages_.size(); ++s) {
    VIT_CHECK(stages_[s].convolution.in_channels() == stages_[s - 1].convolution.out_channels(), kNetwork,
              "a convolution of ", stages_[s].convolution.in_channels(), " channels after one with ",
              stages_[s - 1].convolution.out_channels());
  }
}

FeatureMap TiledNetwork::run_stages(const MapSource& source, const MeasuredNetwork& measured,
                                    std::size_t count, const MapTile& tile, TileMemory& memory) const {
  std::vector<MapTile> outputs(count + 1, tile);  // [s]: what stage s writes, [s + 1] of the last one
  for (std::size_t s = count; s-- > 0;)
    outputs[s] = stages_[s].convolution.edge() == 3 ? grown(outputs[s + 1], source.size) : outputs[s + 1];
  // outputs[s] is what stage s reads; its map has the size of what it writes, outputs[s + 1], and a border.
  Tensor<float>*current = &memory.maps[0], *next = &memory.maps[1], *kept = &memory.maps[2];
  FeatureMap in = map_in(*current, outputs[std::min<std::size_t>(1, count)], in_channels()), residual;
  source.read(outputs[0], part_of(in, outputs[std::min<std::size_t>(1, count)], outputs[0]));
  for (std::size_t s = 0; s < count; ++s) {
    const NetworkStage& stage = stages_[s];
    const Convolution& convolution = stage.convolution;
    const FeatureMap read = part_of(in, outputs[s + 1], outputs[s]);
    if (stage.keeps) {
      std::swap(current, kept);
      residual = read;
      in = map_in(*current, outputs[s + 1], convolution.in_channels());
    }
    const FeatureMap normed = part_of(in, outputs[s + 1], outputs[s]);
    if (stage.norm != StageNorm::none || stage.keeps) normalize(stage, measured[s], read, normed);
    if (convolution.edge() == 3) pad(in, outputs[s + 1], source.size, stage.reflects);
    const MapTile& laid_out = outputs[std::min(s + 2, count)];  // as the next stage reads it
    const FeatureMap out = map_in(*next, laid_out, convolution.out_channels());
    const FeatureMap written = part_of(out, laid_out, outputs[s + 1]);
    MapEpilogue epilogue;
    if (stage.adds) epilogue.residual = residual;
    float* const scratch = reserve(memory.scratch, convolution.scratch_floats());
    convolution.forward_in_thread(in, written, scratch, epilogue);
    if (!measured[s].rotation.row_cos.empty()) {
      for (std::size_t y = 0; y < written.height(); ++y) {
        for (std::size_t x = 0; x < written.width(); ++x)
          measured[s].rotation.rotate(
              outputs[s + 1].y + y, outputs[s + 1].x + x,
              {written.row(static_cast<std::ptrdiff_t>(y)) + x * written.channels(), written.channels()});
      }
    }
    in = out;
    std::swap(current, next);
  }
  return part_of(in, tile, tile);
}

MeasuredStage TiledNetwork::measure_norm(const MapSource& source, const MeasuredNetwork& measured,
                                         std::size_t stage, std::vector<TileMemory>& memories,
                                         int threads) const {
  const std::size_t channels = stages_[stage].convolution.in_channels(), size = channels / kGroups;
  const std::vector<MapTile> tiles = tiles_of(source.size);
  struct Sums {
    std::array<double, kGroups> values{}, squares{};
  };
  std::vector<Sums> sums(tiles.size());
  parallel_for(tiles.size(), threads, [&](std::size_t t, int thread) {
    const FeatureMap map =
        run_stages(source, measured, stage, tiles[t], memories[static_cast<std::size_t>(thread)]);
    for (std::size_t y = 0; y < map.height(); ++y) {
      const float* const row = map.row(static_cast<std::ptrdiff_t>(y));
      for (std::size_t i = 0; i < map.width() * channels; ++i) {
        const auto x = static_cast<double>(row[i]);
        sums[t].values[i % channels / size] += x;
        sums[t].squares[i % channels / size] += x * x;
      }
    }
  });
  Sums all;
  for (const Sums& of : sums) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      all.values[g] += of.values[g];
      all.squares[g] += of.squares[g];
    }
  }
  const auto count = static_cast<double>(source.size.height * source.size.width * size);
  MeasuredStage out;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = all.values[c / size] / count;
    const double variance = std::max(all.squares[c / size] / count - mean * mean, 0.0);
    const std::vector<float>&gamma = stages_[stage].gamma, &beta = stages_[stage].beta;
    const double factor =
        (gamma.empty() ? 1.0 : static_cast<double>(gamma[c])) / std::sqrt(variance + kGroupEps);
    out.factors.push_back(static_cast<float>(factor));
    out.offsets.push_back(
        static_cast<float>((beta.empty() ? 0.0 : static_cast<double>(beta[c])) - mean * factor));
  }
  return out;
}

MeasuredNetwork TiledNetwork::measure(const MapSource& source, int threads) const {
  MeasuredNetwork out(stages_.size());
  std::vector<TileMemory> memories(static_cast<std::size_t>(resolve_threads(threads)));
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (is_group(stages_[s].norm)) out[s] = measure_norm(source, out, s, memories, threads);
    if (stages_[s].rotation.head_dim() > 0)
      out[s].rotation = RotationTables(stages_[s].rotation, source.size);
  }
  return out;
}

void TiledNetwork::run(const MapSource& source, const MeasuredNetwork& measured, const MapTile& tile,
                       TensorView<float> out, TileMemory& memory) const {
  const FeatureMap map = run_stages(source, measured, stages_.size(), tile, memory);
  for (std::size_t i = 0; i < tile.num_pixels(); ++i)
    std::copy_n(map.row(static_cast<std::ptrdiff_t>(i / tile.width)) + i % tile.width * map.channels(),
                map.channels(), out.row(i));
}

Tensor<float> TiledNetwork::run_all(const MapSource& source, int threads) const {
  const MeasuredNetwork measured = measure(source, threads);
  const std::vector<MapTile> tiles = tiles_of(source.size);
  Tensor<float> out(Shape{source.size.height * source.size.width, out_channels()});
  std::vector<TileMemory> memories(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(tiles.size(), threads, [&](std::size_t t, int thread) {
    const FeatureMap map =
        run_stages(source, measured, stages_.size(), tiles[t], memories[static_cast<std::size_t>(thread)]);
    for (std::size_t y = 0; y < map.height(); ++y)
      std::copy_n(map.row(static_cast<std::ptrdiff_t>(y)), map.width() * map.channels(),
                  out.view().row((tiles[t].y + y) * source.size.width + tiles[t].x));
  });
  return out;
}

}  // namespace vit::internal
