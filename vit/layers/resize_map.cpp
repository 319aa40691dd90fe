#include "vit/layers/resize_map.h"

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {

LinearAxis LinearAxis::take(Arena::Taker& arena, std::size_t out) {
  return {.first = arena.take<std::uint32_t>({out}),
          .second = arena.take<std::uint32_t>({out}),
          .weight = arena.take<float>({out})};
}

void LinearAxis::fill(std::size_t in, Alignment alignment) const {
  const std::size_t out = first.num_columns();
  for (std::size_t i = 0; i < out; ++i) {
    const BilinearSource source = bilinear_source(i, out, in, alignment);
    first.data()[i] = static_cast<std::uint32_t>(source.first);
    second.data()[i] = static_cast<std::uint32_t>(source.second);
    weight.data()[i] = source.t;
  }
}

MapResize MapResize::take(Arena::Taker& arena, MapSize in, MapSize out, std::size_t channels,
                          std::size_t threads) {
  return {
      .rows = LinearAxis::take(arena, out.height),
      .columns = LinearAxis::take(arena, out.width),
      .blended = arena.take<float>({threads, round_up(checked_mul(in.width, channels, "MapResize"), 16)})};
}

void MapResize::row(const FeatureMap& in, std::size_t row, std::size_t thread,
                    const kernels::MapKernels& kernels, float* out) const {
  float* const line = blended.row(thread);
  kernels.blend({.a = in.row(static_cast<std::ptrdiff_t>(rows.first.data()[row])),
                 .b = in.row(static_cast<std::ptrdiff_t>(rows.second.data()[row])),
                 .weight = rows.weight.data()[row],
                 .count = in.width() * in.channels(),
                 .out = line});
  kernels.interpolate({.in = line,
                       .channels = in.channels(),
                       .pixels = columns.first.num_columns(),
                       .first = columns.first.data(),
                       .second = columns.second.data(),
                       .weight = columns.weight.data(),
                       .out = out});
}

void resize_map(const FeatureMap& in, const FeatureMap& out, const MapResize& resize, int threads,
                const kernels::MapKernels& kernels) {
  VIT_CHECK(in.channels() == out.channels() && resize.rows.first.num_columns() == out.height() &&
                resize.columns.first.num_columns() == out.width(),
            (Where{"resize_map", ErrorKind::mismatch}), "a map of ", in.height(), " x ", in.width(), " x ",
            in.channels(), " to one of ", out.height(), " x ", out.width(), " x ", out.channels());
  parallel_for(out.height(), threads, [&](std::size_t y, int thread) {
    resize.row(in, y, static_cast<std::size_t>(thread), kernels, out.row(static_cast<std::ptrdiff_t>(y)));
  });
}

}  // namespace vit::internal
