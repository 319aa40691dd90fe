// Conventions are recognized in tables and in rotated vectors, in every precision, and nothing else is given
// their names.
#include "vit/position/identify.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/position/rope_factors.h"
#include "tests/support/errors.h"
#include "tests/support/rng.h"

namespace vit::internal {
using namespace position;

namespace {

using test::identify;
using test::numbers_of;
using test::rounded;
using test::Table;
using test::table_of;

constexpr Dtype kPrecisions[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

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
    if (c.kind != ConventionKind::axial) continue;
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
            const bool is_alone = c.window == 0 && c.coordinates != PatchCoordinates::scaled_to_reference &&
                                  c.name != "mlcd" && c.name != "llama4" &&
                                  (full || (c.name != "pixtral" && c.name != "gemma4"));
            if (is_alone) CHECK(name_of(found) == c.name);
          }
        }
      }
    }
  }
}

TEST_CASE("identify: patches in blocks of 2 x 2, with their grid or without") {
  const RopeConvention& qwen = *find_rope_convention("qwen2-vl");
  for (const GridSize grid : {GridSize{14, 20}, {2, 6}, {8, 4}, {24, 24}}) {
    for (const bool full : {false, true}) {
      CAPTURE(grid.rows);
      CAPTURE(full);
      Table rows = table_of(qwen, grid, 80, full, 1);
      Table blocks = rows;
      std::size_t token = 1;
      for (std::size_t y = 0; y < grid.rows; y += 2) {
        for (std::size_t x = 0; x < grid.columns; x += 2) {
          for (const std::size_t i : {0, 1, 2, 3}) {
            const std::size_t from = 1 + (y + i / 2) * grid.columns + x + i % 2;
            for (std::size_t c = 0; c < rows.columns; ++c) blocks.at(token, c) = rows.at(from, c);
            ++token;
          }
        }
      }
      for (const bool is_grid_given : {false, true}) {
        IdentifyOptions options;
        if (is_grid_given) options.grid = grid;
        const RopeIdentity found = identify(blocks, Dtype::f32, options);
        CHECK_MESSAGE(names(found, qwen), name_of(found));
        CHECK(found.grid == grid);
        CHECK(found.num_prefix == 1);
        CHECK(found.merge == 2);
        CHECK(identify(rows, Dtype::f32, options).merge == 1);
      }
    }
  }
}

TEST_CASE("identify: angles as they are, also wrapped") {
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind != ConventionKind::axial) continue;
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
    if (c.kind == ConventionKind::mixed) continue;
    for (const Dtype precision : kPrecisions) {
      for (const bool tokens_first : {true, false}) {
        CAPTURE(c.name);
        CAPTURE(std::string(to_string(precision)));
        CAPTURE(tokens_first);
        const std::size_t d = c.name == "minimax-m3" ? 52 : 48, prefix = 1, frames = has_time(c) ? 2 : 1;
        const GridSize grid = c.kind == ConventionKind::line ? GridSize{1, 40} : GridSize{5, 8};
        const Tensor<double> angles = rope_angles(coordinates(c, grid, frames), frequency_vectors(c, d, 3));
        const std::size_t tokens = prefix + frames * 40;
        RopeNumbers before = vectors(random, Shape{2, tokens, 3, d}, precision);
        RopeNumbers after{.values = Tensor<double>(before.values.shape()), .precision = precision};
        std::ranges::copy(before.values.flat(), after.values.data());
        rotate_pairs(after.values, angles, channel_pairs(c, d), c.angles, prefix);
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
        if (found.convention != nullptr && c.angles == RopeAngles::per_pair)
          CHECK(found.num_prefix == prefix);
      }
    }
  }
}

TEST_CASE("identify: encodings of time, of directions and of sequences in tables of any precision") {
  for (const RopeConvention& c : rope_conventions()) {
    if (c.kind == ConventionKind::axial || c.kind == ConventionKind::mixed) continue;
    for (const Dtype precision : kPrecisions) {
      for (const std::size_t prefix : {0, 3}) {
        for (const bool full : {false, true}) {
          CAPTURE(c.name);
          CAPTURE(std::string(to_string(precision)));
          CAPTURE(prefix);
          CAPTURE(full);
          const bool is_line = c.kind == ConventionKind::line;
          const GridSize grid = is_line ? GridSize{1, 60} : GridSize{6, 10};
          const std::size_t frames = has_time(c) ? 3 : 1;
          // a head that three axes do not share evenly
          Table table = table_of(c, grid, c.name == "minimax-m3" && full ? 68 : 64, full, prefix, frames);
          const RopeIdentity found = identify(table, precision);
          CHECK_MESSAGE(names(found, c), name_of(found));
          if (found.convention == nullptr) continue;
          CHECK(found.grid == grid);
          CHECK(found.num_frames == frames);
          CHECK(found.num_prefix == prefix);
          table.tokens += 2;  // registers after the patches
          table.angles.resize(table.tokens * table.columns);
          const RopeIdentity with_suffix = identify(table, precision);
          CHECK_MESSAGE(names(with_suffix, c), name_of(with_suffix));
          CHECK(with_suffix.num_suffix == 2);
        }
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
    if (c.kind != ConventionKind::axial) continue;
    for (const auto& each : mistakes) {
      const std::string& mistake = each.first;  // clang 14 captures no names of a structured binding
      for (const Dtype precision : kPrecisions) {
        CAPTURE(c.name);
        CAPTURE(mistake);
        CAPTURE(std::string(to_string(precision)));
        Table table = table_of(c, {10, 13}, 64, false);
        each.second(table);
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
    c.coordinates = PatchCoordinates::centered;
    c.theta = 100.0;
    c.factor = 3.141592653589793;
  }
  SUBCASE("reference") {
    c.coordinates = PatchCoordinates::scaled_to_reference;
    c.reference = {10, 12};
  }
  SUBCASE("pixel bands") {
    c.coordinates = PatchCoordinates::centered;
    c.rule = FrequencyRule::pixel;
    c.max_frequency = 10.0;
  }
  SUBCASE("pixel bands from corner to corner") {
    c.coordinates = PatchCoordinates::linspace;
    c.rule = FrequencyRule::pixel;
    c.max_frequency = 12.0;
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
  CHECK(by_formula.choices->kind == ConventionKind::mixed);
}

TEST_CASE("identify: other bases of sequences are measured") {
  RopeConvention c;
  c.kind = ConventionKind::line;
  c.channels = PairLayout::halves;
  c.theta = 500000.0;
  for (const Dtype precision : {Dtype::f64, Dtype::f32}) {
    const RopeIdentity found = identify(table_of(c, {1, 70}, 32, true, 0), precision);
    CHECK(name_of(found) == "none");
    REQUIRE(found.choices);
    CHECK(found.choices->kind == ConventionKind::line);
    CHECK(found.choices->theta == 500000.0);
    CHECK(found.choices->channels == PairLayout::halves);
  }
}

}  // namespace vit::internal
