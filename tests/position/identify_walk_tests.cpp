// Identification on factors that no test was written for: random conventions, published and not, on random
// grids, rounded, cut, permuted and damaged in random ways. A name is given only if the factors before they
// were rounded are those of the convention; and those of a published one are named. VIT_IDENTIFY_WALK: how
// many steps, 300 by default.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/position/rope_factors.h"
#include "tests/support/rng.h"

namespace vit::test {
namespace {

/// One step of the walk: what is asked, and the truth.
struct Step {
  RopeConvention convention;
  GridSize grid;
  std::size_t head_dim = 0, prefix = 0, suffix = 0, frames = 1;
  bool is_full = false, is_damaged = false;
  Dtype precision = Dtype::f64;
  Table table;
  std::string damage = "none";
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_.next() % count); }
  bool one_of(std::size_t count) { return below(count) == 0; }
  Rng& random() { return random_; }

  Step next() {
    Step step;
    step.convention = one_of(3) ? unpublished() : published();
    const RopeConvention& c = step.convention;
    step.grid =
        c.kind == ConventionKind::line ? GridSize{1, 8 + below(60)} : GridSize{2 + below(22), 2 + below(22)};
    step.frames = has_time(c) ? 1 + below(3) : 1;
    step.head_dim = head_dim(c);
    step.prefix = one_of(2) ? 0 : below(6);
    step.suffix = one_of(4) ? 1 + below(3) : 0;
    step.is_full = one_of(2);
    step.precision = std::array{Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}[below(4)];
    step.table = table_of(c, step.grid, step.head_dim, step.is_full, step.prefix, step.frames);
    step.table.tokens += step.suffix;
    step.table.angles.resize(step.table.tokens * step.table.columns);
    if (one_of(2)) damage(step);
    return step;
  }

 private:
  RopeConvention published() {
    const auto list = rope_conventions();
    for (;;) {
      RopeConvention c = list[below(list.size())];
      if (c.kind == ConventionKind::mixed) continue;
      return c;
    }
  }
  RopeConvention unpublished() {
    RopeConvention c;
    c.theta = std::pow(10.0, random_.uniform(0.5, 6.0));
    if (one_of(2)) c.theta = std::round(c.theta);
    if (one_of(3)) c.theta = std::array{100.0, 10000.0, 1000.0}[below(3)];
    c.order = one_of(2) ? AxisOrder::x_then_y : AxisOrder::y_then_x;
    c.channels = static_cast<PairLayout>(below(4));
    c.coordinates = std::array{
        PatchCoordinates::index,    PatchCoordinates::centered, PatchCoordinates::scaled_to_reference,
        PatchCoordinates::linspace, PatchCoordinates::fraction, PatchCoordinates::corners}[below(6)];
    c.reference = {7 + below(30), 7 + below(30)};
    if (c.coordinates <= PatchCoordinates::centered && one_of(2))
      c.offset = std::array{1.0, 0.5, -1.0, 2.0, 0.25}[below(5)];
    if (one_of(3)) c.factor = std::array{6.283185307179586, 3.141592653589793, 2.0, -1.0, 0.5}[below(5)];
    if (one_of(6)) c.axis_frequencies = AxisFrequencies::alternating;
    if (one_of(6)) {
      c.rule = FrequencyRule::pixel;
      c.max_frequency = 2.0 + static_cast<double>(below(40));
    }
    if (one_of(8)) {
      c.rule = FrequencyRule::periods;
      c.periods = {.shortest = random_.uniform(0.3, 2.0), .longest = random_.uniform(10.0, 500.0)};
    }
    return c;
  }
  std::size_t head_dim(const RopeConvention& c) {
    const HeadSizes sizes = head_sizes(c);
    for (;;) {
      const std::size_t d = sizes.step * (1 + below(128 / sizes.step));
      if (sizes.contain(d)) return d;
    }
  }

  void damage(Step& step) {
    Table& t = step.table;
    step.is_damaged = true;
    const auto resize_rows = [&](std::size_t rows) {
      t.tokens = rows;
      t.angles.resize(rows * t.columns);
    };
    switch (below(9)) {
      case 0: step.damage = "cut"; return resize_rows(1 + below(t.tokens));
      case 1: {
        step.damage = "columns permuted";
        std::vector<std::size_t> order(t.columns);
        for (std::size_t i = 0; i < t.columns; ++i) order[i] = i;
        for (std::size_t i = t.columns; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
        const Table before = t;
        for (std::size_t i = 0; i < t.angles.size(); ++i)
          t.angles[i] = before.angles[i / t.columns * t.columns + order[i % t.columns]];
        return;
      }
      case 2:
        step.damage = "two tokens exchanged";
        for (std::size_t j = 0, a = below(t.tokens), b = below(t.tokens); j < t.columns; ++j)
          std::swap(t.at(a, j), t.at(b, j));
        return;
      case 3:
        step.damage = "one number";
        t.at(below(t.tokens), below(t.columns)) += random_.uniform(0.01, 3.0);
        return;
      case 4:
        step.damage = "negated";
        for (double& angle : t.angles) angle = -angle;
        return;
      case 5:
        step.damage = "scaled";
        for (double& angle : t.angles) angle *= 1.25;
        return;
      case 6: {
        step.damage = "columns left out";
        const std::size_t kept = 2 + below(t.columns);
        if (kept >= t.columns) return;
        Table cut{.tokens = t.tokens, .columns = kept, .angles = {}};
        for (std::size_t i = 0; i < t.tokens; ++i)
          for (std::size_t j = 0; j < kept; ++j) cut.angles.push_back(t.at(i, j));
        t = std::move(cut);
        return;
      }
      case 7:
        step.damage = "reversed";
        std::ranges::reverse(t.angles);
        return;
      default: step.damage = "shifted";
    }
    for (double& angle : t.angles) angle += 0.1;
  }

  Rng random_;
};

/// The largest difference of a factor of the named convention from the truth, before rounding.
double error_of(const Step& step, const RopeIdentity& found) {
  const Table& truth = step.table;
  const bool is_full = found.known.pairing || found.convention->angles == RopeAngles::per_channel;
  const std::size_t d = is_full ? truth.columns : 2 * truth.columns;
  Table named = table_of(*found.choices, *found.grid, d, is_full, found.num_prefix, found.num_frames);
  named.tokens += found.num_suffix;
  named.angles.resize(named.tokens * named.columns);
  if (named.tokens != truth.tokens || named.columns != truth.columns) return 10.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < truth.angles.size(); ++i) {
    // The class token of MLCD has any angles.
    if (found.convention->class_angles && i < truth.columns) continue;
    worst = std::max({worst, std::abs(std::cos(truth.angles[i]) - std::cos(named.angles[i])),
                      std::abs(std::sin(truth.angles[i]) - std::sin(named.angles[i]))});
  }
  return worst;
}

double allowed_error(Dtype precision, double largest_angle) {
  const double rounding = precision == Dtype::bf16 ? 0x1p-8 : precision == Dtype::f16 ? 0x1p-11 : 0x1p-24;
  return 2.5 * rounding + 0x1p-21 * (1.0 + largest_angle);
}

/// Whether the patches determine the convention: in few of them, or few pairs, others are as good.
bool is_determined(const Step& step) {
  return step.grid.rows * step.grid.columns >= 30 && std::min(step.grid.rows, step.grid.columns) >= 4 &&
         step.head_dim >= 16;
}

/// Queries (1, T, 2, d) rotated by the angles of a table, a column per pair.
Tensor<double> rotated(const Tensor<double>& q, const Table& table, std::span<const ChannelPair> pairs,
                       RopeAngles per = RopeAngles::per_pair) {
  Tensor<double> out(q.shape()), angles(Shape{table.tokens, table.columns});
  std::ranges::copy(q.flat(), out.data());
  std::ranges::copy(table.angles, angles.data());
  rotate_pairs(out, angles, pairs, per);
  return out;
}

}  // namespace

TEST_CASE("identify: a random walk over rotated queries and over angles finds no wrong name") {
  const char* const wanted = std::getenv("VIT_IDENTIFY_WALK");
  const std::size_t count = wanted != nullptr ? std::stoul(wanted) : 300;
  std::size_t num_named = 0, num_missed = 0, num_published = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Walk walk(500000 + i);
    Step step = walk.next();
    const RopeConvention& c = step.convention;
    if (c.angles == RopeAngles::per_channel) continue;
    const bool has_queries = i % 2 == 0;
    const std::vector<ChannelPair> pairs = channel_pairs(c, step.head_dim);
    if (has_queries && (step.is_full || step.table.columns != pairs.size())) continue;
    RopeIdentity found;
    Tensor<double> q = walk.random().tensor<double>(Shape{1, step.table.tokens, 2, step.head_dim});
    if (has_queries) {
      for (double& value : q.flat()) value = rounded(value, step.precision);
      RopeNumbers before{.values = Tensor<double>(q.shape()), .precision = step.precision};
      std::ranges::copy(q.flat(), before.values.data());
      RopeNumbers after{.values = rotated(q, step.table, pairs), .precision = step.precision};
      for (double& value : after.values.flat()) value = rounded(value, step.precision);
      found = identify_rope(read_rotated(before, after), {&before, &after}, {});
    } else {
      const RopeNumbers angles = numbers_of(
          step.table, [](double angle) { return angle; }, step.precision);
      const auto is_finite = [](double angle) { return std::isfinite(angle); };
      if (!std::ranges::all_of(angles.values.flat(), is_finite)) continue;  // beyond float16
      found = identify_rope(read_angles(angles), {}, {});
    }
    const std::string what =
        text("step ", i, ": ", c.name, " (", formula(c), ") ", to_string(step.grid), " d ", step.head_dim,
             " ", to_string(step.precision), " damage ", step.damage, " named ",
             found.convention != nullptr ? found.convention->name : "none");
    double largest = 0.0;
    for (const double angle : step.table.angles) largest = std::max(largest, std::abs(angle));
    if (found.convention != nullptr) {
      num_named += 1;
      const double rounding = step.precision == Dtype::bf16  ? 0x1p-8
                              : step.precision == Dtype::f16 ? 0x1p-11
                                                             : 0x1p-24;
      double error = 0.0, allowed = 8.0 * rounding + 0x1p-20 * (1.0 + largest);
      if (has_queries) {
        Table named =
            table_of(*found.choices, *found.grid, step.head_dim, false, found.num_prefix, found.num_frames);
        named.tokens += found.num_suffix;
        named.angles.resize(named.tokens * named.columns);
        const Tensor<double> own = rotated(q, step.table, pairs);
        const Tensor<double> other =
            rotated(q, named, channel_pairs(*found.choices, step.head_dim), found.choices->angles);
        const std::size_t first = found.convention->class_angles ? 2 * step.head_dim : 0;
        for (std::size_t at = first; at < own.num_elements(); ++at)
          error = std::max(error, std::abs(own.data()[at] - other.data()[at]));
        allowed *= 1.5;  // queries are up to 1.41 long
      } else {
        error = error_of(step, found);
        allowed += rounding * largest;
      }
      CHECK_MESSAGE(error <= allowed, what << ", error " << error);
    }
    if (step.is_damaged || c.name.empty() || !is_determined(step)) continue;
    num_published += 1;
    const bool is_known =
        std::ranges::any_of(found.agreeing, [&](const RopeConvention* each) { return each->name == c.name; });
    num_missed += is_known ? 0 : 1;
    CHECK_MESSAGE(is_known, what);
  }
  MESSAGE(count << " steps, " << num_named << " named; " << num_missed << " of " << num_published
                << " published ones missed");
  CHECK(num_published >= count / 12);
}

TEST_CASE("identify: a random walk finds no wrong name") {
  const char* const wanted = std::getenv("VIT_IDENTIFY_WALK");
  const std::size_t count = wanted != nullptr ? std::stoul(wanted) : 300;
  std::size_t num_named = 0, num_wrong = 0, num_missed = 0, num_published = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Walk walk(1000 + i);
    const Step step = walk.next();
    double largest = 0.0;
    for (const double angle : step.table.angles) largest = std::max(largest, std::abs(angle));
    const RopeIdentity found = identify(step.table, step.precision);
    const std::string name = found.convention != nullptr ? found.convention->name : "none";
    const std::string what =
        text("step ", i, ": ", step.convention.name, " (", formula(step.convention), ") ",
             to_string(step.grid), " d ", step.head_dim, step.is_full ? " full" : " half", " prefix ",
             step.prefix, " suffix ", step.suffix, " frames ", step.frames, " ", to_string(step.precision),
             " damage ", step.damage, " named ", name);
    if (found.convention != nullptr) {
      num_named += 1;
      const double error = error_of(step, found);
      const bool is_wrong = error > allowed_error(step.precision, largest);
      num_wrong += is_wrong ? 1 : 0;
      CHECK_MESSAGE(!is_wrong, what << ", error " << error);
    }
    if (step.is_damaged || step.convention.name.empty() || !is_determined(step)) continue;
    num_published += 1;
    const bool is_known = std::ranges::any_of(
        found.agreeing, [&](const RopeConvention* each) { return each->name == step.convention.name; });
    num_missed += is_known ? 0 : 1;
    CHECK_MESSAGE(is_known, what);
  }
  MESSAGE(count << " steps, " << num_named << " named, " << num_wrong << " wrong; " << num_missed << " of "
                << num_published << " published ones missed");
  CHECK(num_published >= count / 8);
}

}  // namespace vit::test
