// Minimization of smooth convex functions by L-BFGS (Nocedal and Wright, Numerical Optimization, algorithm
// 7.5). The caller provides the objective and an approximate inverse of its Hessian.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace vit::internal {

/// The value at `x`; writes the gradient.
using Objective = std::function<double(std::span<const double> x, std::span<double> gradient)>;
/// Multiplies a vector by a positive definite approximation of the inverse Hessian.
using Precondition = std::function<void(std::span<double> vector)>;

struct MinimizeOptions {
  /// Stops when the preconditioned gradient, an estimate of the distance to the minimum, is shorter than this
  /// part of x.
  double tolerance = 1e-7;
  /// Or when no element of the gradient is larger; 0 = only at the minimum.
  double max_gradient = 0.0;
  std::size_t max_iterations = 2000;
};

struct MinimizeResult {
  double value = 0.0;
  std::size_t iterations = 0;
  bool converged = false;  // false: the iteration limit was reached
};

/// Moves `x` to the minimum. Stores ten pairs of vectors: 28 times the memory of x in total.
MinimizeResult minimize(const Objective& objective, const Precondition& precondition, std::span<double> x,
                        const MinimizeOptions& options = {});

}  // namespace vit::internal
