// TileMeter: the rate of a small matrix product, always the same, as a measure of the current speed of
// the machine.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"

namespace vit::internal::kernels {

/// Runs one product of a few tiles repeatedly, a separate one per thread, with operands that stay in the
/// L1 cache: its speed depends only on the core, its clock and other users of the core. Next to
/// the rate of a model it separates a slow machine from slow code.
class TileMeter {
 public:
  /// On `threads` threads (0 = all). `arithmetic` must outlive this.
  TileMeter(int threads, const LinearKernels& arithmetic);

  /// 1e9 operations per second, summed over the threads; takes about 0.2 ms.
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
