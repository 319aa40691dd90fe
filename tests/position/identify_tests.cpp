// Conventions are recognized in tables and in rotated vectors, in every precision, and nothing else is given
// their names.
#include "vit/position/identify.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/rope.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Dtype kPrecisions[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

double rounded(double value, Dtype precision) {
  const auto single = static_cast<float>(value);
  switch (precision) {
    case Dtype::f32: return single;
    case Dtype::f16: return f16_to_float(float_to_f16(single));
    case Dtype::bf16: return bf16_to_float(float_to_bf16(single));
    default: return value;
  }
}

/// A table (P + N, columns), a column per pair or per channel.
struct Table {
  std::size_t tokens = 0, columns = 0;
  std::vector<double> angles;

  double& at(std::size_t token, std::size_t column) { return angles[token * columns + column]; }
};

Table table_of(const RopeConvention& c, GridSize grid, std::size_t d, bool full, std::size_t prefix = 0,
               std::size_t frames = 1) {
  const Tensor<double> angles = rope_angles(coordinates(c, grid, frames), frequency_vectors(c, d));
  const std::size_t patches = angles.dim(angles.shape().rank() - 2), count = angles.shape().last();
  Table out{.tokens = prefix + patches, .columns = full ? d : count, .angles = {}};
  out.angles.assign(out.tokens * out.columns, 0.0);
  std::vector<ChannelPair> pairs;
  if (full && c.kind == RopeKind::axial) pairs = channel_pairs(c.channels, d);
  for (std::size_t patch = 0; patch < patches; ++patch) {
    for (std::size_t j = 0; j < count; ++j) {
      const double angle = angles.data()[patch * count + j];
      if (pairs.empty()) {
        out.at(prefix + patch, j) = angle;
      } else {
        out.at(prefix + patch, pairs[j].p) = out.at(prefix + patch, pairs[j].q) = angle;
      }
    }
  }
  return out;
}

RopeNumbers numbers_of(const Table& table, double (*of)(double), Dtype precision) {
  RopeNumbers out{.values = Tensor<double>(Shape{table.tokens, table.columns}), .precision = precision};
  for (std::size_t i = 0; i < table.angles.size(); ++i)
    out.values.data()[i] = rounded(of(table.angles[i]), precision);
  return out;
}

RopeIdentity identify(const Table& table, Dtype precision, const IdentifyOptions& options = {}) {
  const std::vector<RopeReading> readings =
      read_factors(numbers_of(
                       table, [](double a) { return std::cos(a); }, precision),
                   numbers_of(
                       table, [](double a) { return std::sin(a); }, precision));
  return identify_rope(readings, {}, options);
}

std::string name_of(const RopeIdentity& found) {
  return found.convention == nullptr ? "none" : found.convention->name;
}

bool names(const RopeIdentity& found, const RopeConvention& c) {
  return found.convention != nullptr && std::ranges::find(found.agreeing, &c) != found.agreeing.end();
}

RopeNumbers vectors(test::Rng& random, const Shape& shape, Dtype precision) {
  RopeNumbers out{.values = random.tensor<double>(shape), .precision = precision};
  for (double& value : out.values.flat()) value = rounded(value, precision);
  return out;
}

}  // namespace

TEST_CASE("identify: every convention is recognized in a table of any precision") {
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind != RopeKind::axial) continue;
    for (const GridSize grid : {GridSize{14, 20}, {9, 7}, {24, 24}}) {
      for (const Dtype precision : kPrecisions) {
        for (const std::size_t prefix : {0, 1, 5}) {
          for (const bool full : {false, true}) {
            CAPTURE(c.name);
            CAPTURE(grid.rows);
            CAPTURE(std::string(to_string(precision)));
            CAPTURE(prefix);
            CAPTURE(full);
            const RopeIdentity found = identify(table_of(c, grid, 64, full, prefix), precision);
            CHECK_MESSAGE(names(found, c), name_of(found));
            if (found.convention == nullptr) continue;
            CHECK(found.grid == grid);
            CHECK(found.num_prefix == prefix);
            CHECK(found.known.pairing == full);
            if (full && c.name != "moonvit")
              CHECK(pairing_of(found.choices->channels) == pairing_of(c.channels));
            const bool is_alone = c.window == 0 && c.coordinates != CoordinateRule::scaled_to_reference &&
                                  c.name != "mlcd" && (full || (c.name != "pixtral" && c.name != "gemma4"));
            if (is_alone) CHECK(name_of(found) == c.name);
          }
        }
      }
    }
  }
}

TEST_CASE("identify: angles as they are, also wrapped") {
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind != RopeKind::axial) continue;
    for (const Dtype precision : kPrecisions) {
      CAPTURE(c.name);
      CAPTURE(std::string(to_string(precision)));
      const Table table = table_of(c, {6, 11}, 32, true);
      const RopeNumbers angles = numbers_of(
          table, [](double a) { return a; }, precision);
      CHECK(names(identify_rope(read_angles(angles), {}, {}), c));
    }
  }
}

TEST_CASE("identify: queries before and after the rotation") {
  test::Rng random(70);
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind == RopeKind::mixed) continue;
    for (const Dtype precision : kPrecisions) {
      for (const bool tokens_first : {true, false}) {
        CAPTURE(c.name);
        CAPTURE(std::string(to_string(precision)));
        CAPTURE(tokens_first);
        const std::size_t d = 48, prefix = 1, frames = c.kind == RopeKind::volume ? 2 : 1;
        const GridSize grid{5, 8};
        const Tensor<double> angles = rope_angles(coordinates(c, grid, frames), frequency_vectors(c, d));
        const std::size_t tokens = prefix + frames * 40;
        RopeNumbers before = vectors(random, Shape{2, tokens, 3, d}, precision);
        RopeNumbers after{.values = Tensor<double>(before.values.shape()), .precision = precision};
        std::ranges::copy(before.values.flat(), after.values.data());
        std::vector<ChannelPair> pairs = channel_pairs(c.channels, d);
        rotate_pairs(after.values, angles, pairs, angles_per(c), prefix);
        for (double& value : after.values.flat()) value = rounded(value, precision);
        if (!tokens_first) {
          for (RopeNumbers* numbers : {&before, &after}) {
            Tensor<double> turned(Shape{2, 3, tokens, d});
            for (std::size_t row = 0; row < 2 * tokens * 3; ++row) {
              const std::size_t image = row / 3 / tokens, token = row / 3 % tokens, head = row % 3;
              std::copy_n(numbers->values.view().row(row), d,
                          turned.view().row((image * 3 + head) * tokens + token));
            }
            numbers->values = std::move(turned);
          }
        }
        const RopeIdentity found = identify_rope(read_rotated(before, after), {&before, &after}, {});
        CHECK_MESSAGE(names(found, c), name_of(found));
        if (found.convention != nullptr && c.kind == RopeKind::axial) CHECK(found.num_prefix == prefix);
      }
    }
  }
}

TEST_CASE("identify: a clip of V-JEPA 2, which is no rotation") {
  const RopeConvention& c = *find_rope_convention("V-JEPA 2");
  const RopeIdentity found = identify(table_of(c, {5, 6}, 32, false, 0, 3), Dtype::f32);
  CHECK(name_of(found) == "vjepa2");
  CHECK(found.grid == GridSize{5, 6});
  CHECK(found.num_frames == 3);
}

TEST_CASE("identify: a mistake in a table takes its name away") {
  const std::vector<std::pair<std::string, std::function<void(Table&)>>> mistakes{
      {"a sign",
       [](Table& t) {
         for (double& a : t.angles) a = -a;
       }},
      {"the sign of one pair",
       [](Table& t) {
         for (std::size_t i = 0; i < t.tokens; ++i) t.at(i, 1) *= -1.0;
       }},
      {"two tokens exchanged",
       [](Table& t) {
         for (std::size_t j = 0; j < t.columns; ++j) std::swap(t.at(3, j), t.at(9, j));
       }},
      {"two pairs exchanged",
       [](Table& t) {
         for (std::size_t i = 0; i < t.tokens; ++i) std::swap(t.at(i, 0), t.at(i, 2));
       }},
      {"one row missing half",
       [](Table& t) {
         t.tokens -= 3;
         t.angles.resize(t.tokens * t.columns);
       }},
      {"one number", [](Table& t) { t.at(t.tokens - 2, 0) += 0.05; }}};
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind != RopeKind::axial) continue;
    for (const auto& [mistake, make] : mistakes) {
      for (const Dtype precision : kPrecisions) {
        CAPTURE(c.name);
        CAPTURE(mistake);
        CAPTURE(std::string(to_string(precision)));
        Table table = table_of(c, {10, 13}, 64, false);
        make(table);
        const RopeIdentity found = identify(table, precision);
        CHECK_MESSAGE(found.convention == nullptr, name_of(found));
        CHECK(found.nearest != nullptr);
      }
    }
  }
}

TEST_CASE("identify: random numbers follow none") {
  test::Rng random(71);
  for (const std::size_t tokens : {12u, 49u, 196u, 256u}) {
    Table table{.tokens = tokens, .columns = 32, .angles = random.numbers<double>(tokens * 32, -3.0, 3.0)};
    const RopeIdentity found = identify(table, Dtype::f32);
    CHECK(found.convention == nullptr);
    CHECK(!found.choices);
    RopeNumbers q = vectors(random, Shape{1, tokens, 2, 32}, Dtype::f32);
    RopeNumbers k = vectors(random, Shape{1, tokens, 2, 32}, Dtype::f32);
    CHECK(identify_rope(read_rotated(q, k), {&q, &k}, {}).convention == nullptr);
  }
  const RopeNumbers one{.values = Tensor<double>(Shape{4, 8})};
  CHECK_ERROR(ErrorKind::mismatch, ("squares"), read_factors(one, one));
}

TEST_CASE("identify: unpublished choices are measured") {
  RopeConvention c;
  SUBCASE("theta") {
    c.theta = 500.0;
  }
  SUBCASE("a crooked theta") {
    c.theta = 12345.0;
  }
  SUBCASE("offset") {
    c.offset = 2.0;
  }
  SUBCASE("order and theta") {
    c.order = AxisOrder::y_then_x;
    c.theta = 777.0;
  }
  SUBCASE("centered with a factor") {
    c.coordinates = CoordinateRule::centered;
    c.theta = 100.0;
    c.factor = 3.141592653589793;
  }
  SUBCASE("reference") {
    c.coordinates = CoordinateRule::scaled_to_reference;
    c.reference = {10, 12};
  }
  SUBCASE("pixel bands") {
    c.coordinates = CoordinateRule::centered;
    c.rule = FrequencyRule::pixel;
    c.max_frequency = 10.0;
  }
  SUBCASE("alternating theta") {
    c.axis_frequencies = AxisFrequencies::alternating;
    c.theta = 300.0;
  }
  for (const Dtype precision : {Dtype::f64, Dtype::f32}) {
    for (const PairLayout channels :
         {PairLayout::neighbors, PairLayout::halves, PairLayout::halves_by_axis, PairLayout::alternating}) {
      CAPTURE(std::string(to_string(channels)));
      c.channels = channels;
      const RopeIdentity found = identify(table_of(c, {14, 20}, 32, true, 1), precision);
      CHECK_MESSAGE(found.convention == nullptr, name_of(found));
      REQUIRE(found.choices);
      CHECK(differing_choices(*found.choices, found.known, c).empty());
      CHECK(found.choices->channels == channels);
      CHECK(found.choices->max_frequency == doctest::Approx(c.max_frequency));
      CHECK(found.num_prefix == 1);
      CHECK(found.nearest != nullptr);
    }
  }
}

TEST_CASE("identify: learned frequencies of heads are recognized by their form") {
  test::Rng random(72);
  const auto identity_of = [](const Tensor<double>& angles) {
    RopeNumbers cos{.values = Tensor<double>(angles.shape())}, sin{.values = Tensor<double>(angles.shape())};
    for (std::size_t i = 0; i < angles.num_elements(); ++i) {
      cos.values.data()[i] = std::cos(angles.data()[i]);
      sin.values.data()[i] = std::sin(angles.data()[i]);
    }
    return identify_rope(read_factors(cos, sin), {}, {});
  };
  std::vector<FrequencyVector> vectors(3 * 16);
  for (FrequencyVector& w : vectors) w = {.x = random.uniform(-1.0, 1.0), .y = random.uniform(-1.0, 1.0)};
  Tensor<double> angles = rope_angles(grid_coords({7, 9}), FrequencyVectors(1, 3, vectors));
  CHECK(name_of(identity_of(angles)) == "rope-vit-mixed");
  for (std::size_t i = 3; i < angles.num_elements(); i += 16) angles.data()[i] += 0.3;
  CHECK(name_of(identity_of(angles)) == "none");

  // directions by a formula, as in golden gate and Spiral RoPE: the form is the same, the family is not
  for (std::size_t j = 0; j < vectors.size(); ++j) {
    const double length = std::pow(100.0, -static_cast<double>(j % 16) / 16.0),
                 direction = 2.4 * static_cast<double>(j);
    vectors[j] = {.x = length * std::cos(direction), .y = length * std::sin(direction)};
  }
  const RopeIdentity by_formula =
      identity_of(rope_angles(grid_coords({7, 9}), FrequencyVectors(1, 3, vectors)));
  CHECK(name_of(by_formula) == "none");
  REQUIRE(by_formula.choices);
  CHECK(by_formula.choices->kind == RopeKind::mixed);
}

}  // namespace vit::internal
