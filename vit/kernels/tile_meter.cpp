#include "vit/kernels/tile_meter.h"

#include <chrono>
#include <cstring>
#include <numeric>

#include "vit/base/parallel.h"

namespace vit::internal::kernels {
namespace {

constexpr std::size_t kDepth = 128;  // K: a panel of 48 float32 columns is 24 KB
constexpr double kSeconds = 2e-4;    // of a measurement

Tensor<float> filled(const Shape& shape) {
  Tensor<float> out(shape);
  // No sums overflow, and no value needs special handling by processors.
  for (std::size_t i = 0; i < out.num_elements(); ++i)
    out.data()[i] = 0.25f + 0.5f * static_cast<float>(i % 7);
  return out;
}

}  // namespace

TileMeter::TileMeter(int threads, const LinearKernels& arithmetic)
    : kernels_(arithmetic),
      threads_(threads),
      num_tasks_(static_cast<std::size_t>(resolve_threads(threads))),
      weight_(filled(Shape{arithmetic.panel_columns, kDepth}).view(), arithmetic) {
  const std::size_t num_rows = 2 * kernels_.tile_rows;
  const Tensor<float> rows = filled(Shape{num_rows, kDepth});
  const std::size_t converted = kernels_.row_bytes(kDepth);
  for (std::size_t task = 0; task < num_tasks_; ++task) {
    rows_.emplace_back(Shape{num_rows, converted == 0 ? kDepth * sizeof(float) : converted});
    outs_.emplace_back(Shape{num_rows, kernels_.panel_columns});
    if (converted == 0) {
      std::memcpy(rows_.back().data(), rows.data(), rows.num_elements() * sizeof(float));
    } else {
      kernels_.convert_rows({.in = rows.data(),
                             .in_stride = kDepth,
                             .rows = num_rows,
                             .in_features = kDepth,
                             .out = rows_.back().data()});
    }
  }
  while (run(0).seconds < kSeconds) rounds_ *= 2;
}

double TileMeter::measure_gflops() {
  std::vector<double> gflops(num_tasks_);
  // Each thread uses its own clock: the time to start a team is not a property of the tile.
  parallel_for(num_tasks_, threads_, [&](std::size_t task, int) { gflops[task] = run(task).gflops; });
  return std::accumulate(gflops.begin(), gflops.end(), 0.0);
}

TileMeter::Rate TileMeter::run(std::size_t task) {
  const GemmArgs args{.in = rows_[task].data(),
                      .in_step = rows_[task].dim(1),
                      .rows = rows_[task].dim(0),
                      .packed = weight_.data(),
                      .in_features = kDepth,
                      .column_begin = 0,
                      .column_end = kernels_.panel_columns,
                      .out = outs_[task].data(),
                      .out_stride = kernels_.panel_columns};
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t round = 0; round < rounds_; ++round) kernels_.gemm(args);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double operations = 2.0 * static_cast<double>(rounds_ * outs_[task].num_elements() * kDepth);
  return {.gflops = operations / seconds * 1e-9, .seconds = seconds};
}

}  // namespace vit::internal::kernels
