#include "vit/rings/fit/lbfgs.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace vit::internal {
namespace {

using Vector = Eigen::VectorXd;

constexpr std::size_t kPairs = 10;      // as scipy's L-BFGS-B
constexpr int kMaxTrials = 40;          // of a line search
constexpr double kDecrease = 1e-4;      // Armijo
constexpr double kRounding = 1e-13;     // relative; sums of 10^5 losses differ by less
constexpr double kSlopeDecrease = 0.8;  // Hager and Zhang's approximate Wolfe condition, 1 - 2 * 0.1

std::span<double> span_of(Vector& vector) {
  return {vector.data(), static_cast<std::size_t>(vector.size())};
}

struct Point {
  Vector x, gradient;
  double value = 0.0;

  void evaluate(const Objective& objective) { value = objective(span_of(x), span_of(gradient)); }
};

/// A step and what it did to the gradient.
struct Pair {
  Vector step, change;
  double curvature = 0.0;  // their product
};

/// The pairs and the preconditioner as an approximation of the inverse Hessian.
class InverseHessian {
 public:
  explicit InverseHessian(const Precondition& precondition) : precondition_(precondition) {}

  void add(Vector step, Vector change, const Vector& preconditioned_change) {
    const double curvature = step.dot(change);
    if (!(curvature > 1e-14 * step.norm() * change.norm())) return;  // only rounding
    scale_ = curvature / change.dot(preconditioned_change);
    if (pairs_.size() == kPairs) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), curvature});
  }

  /// The two loops of algorithm 7.4.
  Vector times(const Vector& vector) const {
    Vector out = vector;
    std::vector<double> factors(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      factors[i] = pairs_[i].step.dot(out) / pairs_[i].curvature;
      out -= factors[i] * pairs_[i].change;
    }
    precondition_(span_of(out));
    out *= scale_;
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      out += (factors[i] - pairs_[i].change.dot(out) / pairs_[i].curvature) * pairs_[i].step;
    return out;
  }

 private:
  const Precondition& precondition_;
  std::deque<Pair> pairs_;
  double scale_ = 1.0;
};

/// Moves `to` from `from` along `direction` until the value has decreased enough. False if only
/// rounding errors remain.
bool search_line(const Objective& objective, const Point& from, const Vector& direction, Point& to) {
  const double slope = from.gradient.dot(direction);
  if (!(slope < 0.0)) return false;
  double step = 1.0;
  for (int trial = 0; trial < kMaxTrials; ++trial) {
    to.x = from.x + step * direction;
    to.evaluate(objective);
    if (to.value <= from.value + kDecrease * step * slope) return true;
    const bool is_level = to.value <= from.value + kRounding * std::abs(from.value);
    if (is_level && std::abs(to.gradient.dot(direction)) <= -kSlopeDecrease * slope) return true;
    // the minimum of the parabola through both values and the slope
    const double parabola = -slope * step * step / (2.0 * (to.value - from.value - slope * step));
    step = std::isfinite(parabola) ? std::clamp(parabola, 0.1 * step, 0.5 * step) : 0.1 * step;
  }
  return false;
}

}  // namespace

MinimizeResult minimize(const Objective& objective, const Precondition& precondition, std::span<double> x,
                        const MinimizeOptions& options) {
  const auto size = static_cast<Eigen::Index>(x.size());
  Point at{.x = Eigen::Map<const Vector>(x.data(), size), .gradient = Vector(size)};
  Point next{.x = Vector(size), .gradient = Vector(size)};
  at.evaluate(objective);
  Vector remaining = at.gradient;
  precondition(span_of(remaining));
  InverseHessian inverse(precondition);
  MinimizeResult result;
  result.converged = at.gradient.lpNorm<Eigen::Infinity>() <= options.max_gradient;
  while (!result.converged && result.iterations < options.max_iterations) {
    const Vector direction = -inverse.times(at.gradient);
    if (!search_line(objective, at, direction, next)) {
      result.converged = true;
      break;
    }
    Vector next_remaining = next.gradient;
    precondition(span_of(next_remaining));
    inverse.add(next.x - at.x, next.gradient - at.gradient, next_remaining - remaining);
    std::swap(at, next);
    remaining.swap(next_remaining);
    result.converged = remaining.norm() <= options.tolerance * at.x.norm() ||
                       at.gradient.lpNorm<Eigen::Infinity>() <= options.max_gradient;
    ++result.iterations;
  }
  std::copy(at.x.begin(), at.x.end(), x.begin());
  result.value = at.value;
  return result;
}

}  // namespace vit::internal
