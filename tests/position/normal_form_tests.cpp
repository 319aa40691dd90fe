// All conventions have a normal form with the same scores, from which their choices are read back.
#include "vit/position/normal_form.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope.h"

namespace vit::position {
namespace {

Tensor<double> copy_of(const Tensor<double>& x) {
  Tensor<double> out(x.shape());
  std::ranges::copy(x.flat(), out.data());
  return out;
}

/// Products of all queries and keys (1, L, H, d) of the same head.
std::vector<double> scores(const Tensor<double>& q, const Tensor<double>& k) {
  const std::size_t tokens = q.dim(1), heads = q.dim(2), d = q.dim(3);
  std::vector<double> out;
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < tokens; ++i) {
      for (std::size_t j = 0; j < tokens; ++j) {
        double sum = 0.0;
        for (std::size_t c = 0; c < d; ++c)
          sum += q.data()[(i * heads + h) * d + c] * k.data()[(j * heads + h) * d + c];
        out.push_back(sum);
      }
    }
  }
  return out;
}

/// x (.., d) becomes B x. Without the way back, which scores of rotated tokens do not see.
void multiply(Tensor<double>& x, const Tensor<double>& basis) {
  const std::size_t d = basis.dim(0);
  for (std::size_t row = 0; row < x.num_elements() / d; ++row) {
    std::vector<double> out(d);
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j) out[i] += basis.data()[i * d + j] * x.data()[row * d + j];
    std::ranges::copy(out, x.data() + row * d);
  }
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// exp(t L) by its series after halving: t L is small.
std::vector<double> exponential(std::vector<double> matrix, std::size_t d) {
  constexpr int kHalvings = 12;
  for (double& value : matrix) value = std::ldexp(value, -kHalvings);
  const auto product = [d](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> out(d * d);
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t k = 0; k < d; ++k)
        for (std::size_t j = 0; j < d; ++j) out[i * d + j] += a[i * d + k] * b[k * d + j];
    return out;
  };
  std::vector<double> sum(d * d), term(d * d);
  for (std::size_t i = 0; i < d; ++i) sum[i * d + i] = term[i * d + i] = 1.0;
  for (int n = 1; n < 12; ++n) {
    term = product(term, matrix);
    for (double& value : term) value /= n;
    for (std::size_t i = 0; i < d * d; ++i) sum[i] += term[i];
  }
  for (int i = 0; i < kHalvings; ++i) sum = product(sum, sum);
  return sum;
}

}  // namespace

TEST_CASE("position: every convention has a normal form with equal scores") {
  test::Rng random(81);
  for (const RopeConvention& c : rope_conventions()) {
    for (GridSize grid : {GridSize{3, 5}, {26, 2}}) {
      CAPTURE(c.name);
      if (c.kind == ConventionKind::line) grid = {1, grid.rows * grid.columns};
      const std::size_t d = head_sizes(c).step == 16 ? 32 : 24, prefix = 2, frames = has_time(c) ? 2 : 1;
      const std::size_t tokens = prefix + frames * grid.rows * grid.columns;
      const RopeNormalForm form = normal_form(c, grid, d);
      const Tensor<double> angles = rope_angles(coordinates(c, grid, frames), frequency_vectors(c, d));
      const Tensor<double> q = random.tensor<double>(Shape{1, tokens, 2, d});
      const Tensor<double> k = random.tensor<double>(Shape{1, tokens, 2, d});
      Tensor<double> q1 = copy_of(q), k1 = copy_of(k), q2 = copy_of(q), k2 = copy_of(k);
      const Tensor<double> basis = example_basis(c, d);
      for (Tensor<double>* x : {&q1, &k1}) {
        if (!basis.empty()) multiply(*x, basis);
        rotate_pairs(*x, angles, channel_pairs(c, d), c.angles, prefix);
      }
      for (Tensor<double>* x : {&q2, &k2}) rotate(*x, form, grid, prefix, frames);
      CHECK(largest_difference(scores(q1, k1), scores(q2, k2)) < 1e-12);
    }
  }
}

TEST_CASE("position: choices are read back from the normal form") {
  for (const RopeConvention& c : rope_conventions()) {
    if (c.class_angles || c.window != 0) continue;
    CAPTURE(c.name);
    const GridSize grid = c.kind == ConventionKind::line ? GridSize{1, 63} : GridSize{9, 7};
    const std::optional<RopeConvention> found = read_back(normal_form(c, grid, 32), grid);
    REQUIRE(found);
    CHECK(found->kind == c.kind);
    if (c.name == "llama4") {  // the same encoding; only its class token is another one
      CHECK(found->name == "perception-encoder");
      continue;
    }
    if (c.name == "rope-vit-mixed") continue;  // its start is a formula, which is no learned number
    CHECK(found->coordinates == c.coordinates);
    CHECK(found->offset == c.offset);
    CHECK(found->reference == c.reference);
    CHECK(found->order == c.order);
    CHECK(found->channels == c.channels);
    CHECK(found->theta == c.theta);
    CHECK(found->factor == doctest::Approx(c.factor).epsilon(1e-12));
    CHECK(found->axis_frequencies == c.axis_frequencies);
    CHECK(found->name == c.name);
  }
  RopeConvention own;
  own.theta = 321.0;
  own.offset = 0.25;
  own.channels = PairLayout::halves;
  const std::optional<RopeConvention> found = read_back(normal_form(own, {6, 8}, 16), {6, 8});
  REQUIRE(found);
  CHECK(found->name.empty());
  CHECK(found->theta == 321.0);
  CHECK(found->offset == 0.25);
  CHECK(found->channels == PairLayout::halves);
}

TEST_CASE("position: generators that commute have a basis of planes") {
  test::Rng random(82);
  const std::size_t d = 8;
  // L_x and L_y rotate the same planes, which are not those of the channels: B^T L B for an orthogonal B
  std::vector<double> skew(d * d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      skew[i * d + j] = random.uniform(-1.0, 1.0);
      skew[j * d + i] = -skew[i * d + j];
    }
  }
  const std::vector<double> basis = exponential(skew, d);
  const double w_x[] = {1.0, 0.4, -0.3, 0.0}, w_y[] = {0.2, -0.7, 0.0, 0.9};
  std::vector<Tensor<double>> generators;
  for (const double* w : {w_x, w_y}) {
    Tensor<double>& out = generators.emplace_back(Shape{d, d});
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        for (std::size_t plane = 0; plane < 4; ++plane) {
          const std::size_t p = 2 * plane, q = p + 1;
          out.data()[i * d + j] +=
              w[plane] * (basis[q * d + i] * basis[p * d + j] - basis[p * d + i] * basis[q * d + j]);
        }
      }
    }
  }
  const RopeNormalForm form = normal_form_of(generators);
  CHECK(form.pairs.size() == 4);
  const GridSize grid{3, 4};
  const Tensor<double> x = random.tensor<double>(Shape{1, 12, 1, d});
  Tensor<double> rotated = copy_of(x);
  rotate(rotated, form, grid);
  for (std::size_t patch = 0; patch < 12; ++patch) {
    std::vector<double> exponent(d * d);
    for (std::size_t i = 0; i < d * d; ++i)
      exponent[i] = static_cast<double>(patch % 4) * generators[0].data()[i] +
                    static_cast<double>(patch / 4) * generators[1].data()[i];
    const std::vector<double> rotation = exponential(exponent, d);
    for (std::size_t i = 0; i < d; ++i) {
      double expected = 0.0;
      for (std::size_t j = 0; j < d; ++j) expected += rotation[i * d + j] * x.data()[patch * d + j];
      CHECK(std::abs(rotated.data()[patch * d + i] - expected) < 1e-11);
    }
  }

  // LieRE: generators that do not commute have no such basis.
  generators[1].data()[1] += 0.5;
  generators[1].data()[d] -= 0.5;
  CHECK_ERROR(ErrorKind::argument, ("do not commute"), normal_form_of(generators));
  generators[1].data()[1] += 0.5;
  CHECK_ERROR(ErrorKind::argument, ("skew-symmetric"), normal_form_of(generators));
}

}  // namespace vit::position
