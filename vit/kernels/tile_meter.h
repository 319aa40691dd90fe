// TileMeter: the rate of a small matrix product, always the same, as a measure of what the machine gives at
// the moment.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"

namespace vit::internal::kernels {

/// Runs one product of a few tiles again and again, on every thread its own, with operands that stay in the
/// first-level cache: nothing but the core, its clock and whoever shares it decides how fast that is. Beside
/// the rate of a model it tells a slow hour from slow code.
class TileMeter {
 public:
  /// On `threads` threads (0 = all). `arithmetic` must outlive this.
  TileMeter(int threads, const LinearKernels& arithmetic);

  /// 1e9 operations per second, the sum of what the threads reach; takes about 0.2 ms.
  double measure_gflops();

 private:
  /// 1e9 operations per second of one task in the calling thread, and the seconds that it took.
  struct Rate {
    double gflops = 0.0;
    double seconds = 0.0;
  };
  Rate run(std::size_t task);

  const LinearKernels& kernels_;
  int threads_;
  std::size_t num_tasks_;
  PackedMatrix weight_;                  // (one panel, K)
  std::vector<Tensor<std::byte>> rows_;  // of each task: (tile_rows x 2) rows of K
  std::vector<Tensor<float>> outs_;      // of each task: (rows, panel columns)
  std::size_t rounds_ = 1;
};

}  // namespace vit::internal::kernels
