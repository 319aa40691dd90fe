#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "vit/base/arena.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/dtype.h"
#include "vit/base/parallel.h"
#include "vit/base/tensor.h"

namespace vit {
using namespace internal;

TEST_CASE("base: parts of a message are printed as a stream prints them") {
  const auto printed = [](const auto& part) {
    std::ostringstream out;
    out << part;
    return out.str();
  };
  for (const double number : {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 123456.0, 1234567.0, 1e-5, -2.5e300, std::nan(""),
                              std::numeric_limits<double>::infinity()}) {
    CHECK(text(number) == printed(number));
    CHECK(text(static_cast<float>(number)) == printed(static_cast<float>(number)));
  }
  CHECK(text(std::numeric_limits<std::int64_t>::min()) == printed(std::numeric_limits<std::int64_t>::min()));
  CHECK(text(std::numeric_limits<std::size_t>::max()) == printed(std::numeric_limits<std::size_t>::max()));
  CHECK(text(true, short{-3}, 4u, 'x') == "1-34x");
  CHECK(text() == "");
  CHECK(text("a", std::string("b\0c", 3), std::string_view("de").substr(1)) == std::string("ab\0ce", 5));
  CHECK_THROWS_WITH_AS(fail(Where{"here", ErrorKind::io}, "file ", 3, ": ", 0.5), "[here] file 3: 0.5",
                       Error);
  try {
    VIT_CHECK(false, (Where{"there", ErrorKind::format}), "found ", std::string("x"));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::format);
    CHECK(error.message() == "found x");
  }
}

TEST_CASE("base: float32 rounds to the nearest f16, half to even") {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits), next = static_cast<std::uint16_t>(bits + 1);
    const float value = f16_to_float(half);
    const float above = next == 0x7C00 ? 65536.0f : f16_to_float(next);
    const float middle = value + (above - value) / 2;  // exact: one more place
    REQUIRE(float_to_f16(value) == half);
    REQUIRE(float_to_f16(-value) == (half | 0x8000u));
    REQUIRE(float_to_f16(middle) == (bits % 2 == 0 ? half : next));
    REQUIRE(float_to_f16(std::nextafter(middle, 0.0f)) == half);
    REQUIRE(float_to_f16(std::nextafter(middle, 1e9f)) == next);
  }
  CHECK(float_to_f16(std::numeric_limits<float>::infinity()) == 0x7C00);
  CHECK(float_to_f16(1e30f) == 0x7C00);
  CHECK(std::isnan(f16_to_float(float_to_f16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(float_to_f16(std::ldexp(1.0f, -26)) == 0);
}

TEST_CASE("base: f16 converts exactly, with subnormals, infinities and NaN") {
  CHECK(f16_to_float(0x0000) == 0.0f);
  CHECK(std::signbit(f16_to_float(0x8000)));
  CHECK(f16_to_float(0x0001) == std::ldexp(1.0f, -24));
  CHECK(f16_to_float(0x03FF) == std::ldexp(1023.0f, -24));
  CHECK(f16_to_float(0x0400) == std::ldexp(1.0f, -14));
  CHECK(f16_to_float(0x3C00) == 1.0f);
  CHECK(f16_to_float(0xC000) == -2.0f);
  CHECK(f16_to_float(0x7BFF) == 65504.0f);
  CHECK(f16_to_float(0x7C00) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(f16_to_float(0x7E01)));
  for (unsigned bits = 0x0400; bits < 0x7C00; ++bits) {  // every normal number by its definition
    const float expected =
        std::ldexp(static_cast<float>((bits & 0x3FF) + 1024), static_cast<int>(bits >> 10) - 25);
    REQUIRE(f16_to_float(static_cast<std::uint16_t>(bits)) == expected);
  }
}

TEST_CASE("base: bf16 rounds half to even and keeps NaN") {
  CHECK(float_to_bf16(1.0f) == 0x3F80);
  CHECK(float_to_bf16(1.00390625f) == 0x3F80);  // half way, even below
  CHECK(float_to_bf16(1.01171875f) == 0x3F82);  // half way, even above
  CHECK(std::isnan(bf16_to_float(float_to_bf16(std::nanf("")))));
  CHECK(bf16_to_float(0xC040) == -3.0f);
}

TEST_CASE("base: sizes that overflow are errors") {
  CHECK_THROWS_AS(checked_mul(std::size_t{1} << 40, std::size_t{1} << 30, "test"), Error);
  CHECK_THROWS_AS(checked_add(~std::size_t{0}, 1, "test"), Error);
  CHECK(checked_mul(0, ~std::size_t{0}, "test") == 0);
  CHECK(round_up(197, 6) == 198);
}

TEST_CASE("base: a default tensor has no elements, a tensor without dimensions one") {
  Tensor<float> one{Shape{}};
  CHECK(one.num_elements() == 1);
  CHECK(one.flat().size() == 1);
  const Tensor<float> moved = std::move(one);
  CHECK(moved.num_elements() == 1);
  CHECK(one.num_elements() == 0);
  CHECK(Tensor<float>().flat().empty());
  CHECK(one.view().flat().empty());
  CHECK(TensorView<float>().flat().empty());
  CHECK(TensorView<float>(nullptr, Shape{1, 7}).flat().empty());
}

TEST_CASE("base: a view walks rows with its stride") {
  Tensor<float> tensor(Shape{2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i) tensor.data()[i] = static_cast<float>(i);
  CHECK(tensor.view()[1].row(2)[3] == 23.0f);
  const TensorView<float> middle(tensor.data() + 1, Shape{6, 2}, 4);
  CHECK(middle.row(5)[1] == 22.0f);
  CHECK_THROWS_AS(middle.flat(), Error);
}

TEST_CASE("base: an arena lays a list of views out, aligned, and one next to the other where they share") {
  Arena arena;
  TensorView<float> a, b, c, d;
  const auto list = [&](std::size_t count) {
    return [&, count](Arena::Taker& taker) {
      a = taker.take<float>(Shape{count});
      taker.share([&] { b = taker.take<float>(Shape{3}); },
                  [&] {
                    c = taker.take<float>(Shape{2, 5}, /*row_stride=*/16);
                  });
      d = taker.take<float>(Shape{1});
    };
  };
  arena.lay_out(list(10));
  CHECK(arena.capacity_bytes() == 256);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
  CHECK(b.data() - a.data() == 16);
  CHECK(c.data() == b.data());
  CHECK(c.row(1) - c.row(0) == 16);
  CHECK(d.data() - c.data() == 32);
  const float* const block = a.data();
  arena.lay_out(list(1));  // needs no more
  CHECK(a.data() == block);
  CHECK(arena.capacity_bytes() == 256);
  CHECK_THROWS_AS(arena.lay_out(list(std::size_t{1} << 62)), Error);
}

TEST_CASE("base: parallel_for runs each task once, nests, and passes an exception on") {
  for (const int threads : {0, 1, 2, 5}) {
    std::vector<std::atomic<int>> counts(101);
    parallel_for(counts.size(), threads, [&](std::size_t task, int) {
      parallel_for(1, threads, [&](std::size_t, int) { counts[task]++; });
    });
    for (const auto& count : counts) CHECK(count == 1);
    CHECK_THROWS_AS(
        parallel_for(8, threads, [](std::size_t task, int) { VIT_CHECK(task != 5, "test", "five"); }), Error);
  }
}

TEST_CASE("base: parallel_for_parts covers a range once, the last part with what is left") {
  for (const int threads : {1, 2, 5}) {
    for (const std::size_t count : {0, 1, 15, 16, 17, 101}) {
      std::vector<std::atomic<int>> times(count);
      parallel_for_parts(count, 16, threads, [&](std::size_t first, std::size_t size) {
        CHECK(first % 16 == 0);
        CHECK(size == std::min<std::size_t>(16, count - first));
        for (std::size_t i = first; i < first + size; ++i) times[i]++;
      });
      for (const auto& n : times) CHECK(n == 1);
    }
  }
}

TEST_CASE("base: a team serves many parallel_for, passes known thread numbers and survives exceptions") {
  for (const int threads : {0, 1, 2, 5, 70}) {
    std::vector<int> counts(37);
    const auto team_size = static_cast<std::size_t>(resolve_threads(threads));
    std::vector<std::atomic<int>> inside(team_size);
    std::atomic<int> shared_numbers = 0;
    with_team(threads, [&] {
      for (std::size_t round = 0; round < 2000; ++round) {
        const std::size_t num_tasks = round % counts.size();
        parallel_for(num_tasks, threads, [&](std::size_t task, int thread) {
          if (inside[static_cast<std::size_t>(thread)]++ != 0) shared_numbers++;
          counts[task]++;  // each job sees what the last one wrote
          inside[static_cast<std::size_t>(thread)]--;
        });
      }
      CHECK_THROWS_AS(
          parallel_for(9, threads, [](std::size_t task, int) { VIT_CHECK(task != 5, "test", "five"); }),
          Error);
      parallel_for(counts.size(), 1, [&](std::size_t task, int thread) {
        if (thread != 0) shared_numbers++;
        counts[task]++;
      });
    });
    CHECK(shared_numbers == 0);
    for (std::size_t task = 0; task < counts.size(); ++task) {
      std::size_t expected = 1;
      for (std::size_t round = 0; round < 2000; ++round) expected += task < round % counts.size() ? 1 : 0;
      CHECK(counts[task] == static_cast<int>(expected));
    }
    CHECK_THROWS_AS(with_team(threads, [] { fail("test", "from the body"); }), Error);
  }
}

TEST_CASE("base: more threads than any machine has are an error") {
  CHECK(resolve_threads(1024) == 1024);
  CHECK_THROWS_AS(resolve_threads(1025), Error);
  CHECK_THROWS_AS(parallel_for(2, 1'000'000'000, [](std::size_t, int) {}), Error);
}

}  // namespace vit
