// The emulator of AMX against plain arithmetic, and the tiles' kernels on it. With VIT_TESTS_EMULATE_AMX all
// other cases run on them too.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/support/amx_emulator.h"
#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "vit/base/dtype.h"
#include "vit/kernels/self_check.h"
#include "vit/kernels/targets.h"

#if defined(__x86_64__) && defined(__linux__)

namespace vit::internal::kernels {
namespace {

/// What LDTILECFG reads: tile 0 sums (m, n), 1 inputs (m, k), 2 weights (k, n), in lanes.
struct Config {
  alignas(64) std::array<std::uint8_t, 64> bytes{};

  Config(std::size_t m, std::size_t n, std::size_t k) {
    bytes[0] = 1;
    const std::size_t rows[] = {m, m, k}, lanes[] = {n, k, n};
    for (std::size_t t = 0; t < 3; ++t) {
      bytes[16 + 2 * t] = static_cast<std::uint8_t>(4 * lanes[t]);
      bytes[48 + t] = static_cast<std::uint8_t>(rows[t]);
    }
  }
};

constexpr std::size_t kStride = 80;  // bytes from row to row in memory

using Rows = std::array<std::uint8_t, 16 * kStride>;

Rows random_rows(test::Rng& rng) {
  Rows out;
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next());
  return out;
}

/// Numbers of bfloat16 from tiny to large, denormal ones among them.
Rows random_bf16(test::Rng& rng) {
  Rows out{};
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const float number = std::ldexp(rng.uniform(-2.0f, 2.0f), static_cast<int>(rng.next() % 80) - 100);
    const std::uint16_t bits =
        rng.next() % 16 == 0 ? static_cast<std::uint16_t>(rng.next() & 0x807F) : float_to_bf16(number);
    std::memcpy(out.data() + i, &bits, 2);
  }
  return out;
}

enum class Product { bf16, ss, su, us, uu };

void run(Product product, const Config& config, const Rows& inputs, const Rows& weights, Rows& sums) {
  const std::size_t stride = kStride;
  __asm__ volatile("ldtilecfg %0" : : "m"(config.bytes));
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm0" : : "r"(sums.data()), "r"(stride) : "memory");
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm1" : : "r"(inputs.data()), "r"(stride) : "memory");
  __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm2" : : "r"(weights.data()), "r"(stride) : "memory");
  switch (product) {
    case Product::bf16: __asm__ volatile("tdpbf16ps %tmm2, %tmm1, %tmm0"); break;
    case Product::ss: __asm__ volatile("tdpbssd %tmm2, %tmm1, %tmm0"); break;
    case Product::su: __asm__ volatile("tdpbsud %tmm2, %tmm1, %tmm0"); break;
    case Product::us: __asm__ volatile("tdpbusd %tmm2, %tmm1, %tmm0"); break;
    case Product::uu: __asm__ volatile("tdpbuud %tmm2, %tmm1, %tmm0"); break;
  }
  __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(sums.data()), "r"(stride) : "memory");
  __asm__ volatile("tilerelease");
}

std::int64_t byte_at(const Rows& rows, std::size_t at, bool has_sign) {
  return has_sign ? std::int64_t{static_cast<std::int8_t>(rows[at])} : std::int64_t{rows[at]};
}

double bf16_number(const Rows& rows, std::size_t at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, rows.data() + at, 2);
  const float number = bf16_to_float(bits);
  return std::fpclassify(number) == FP_SUBNORMAL ? 0.0 : static_cast<double>(number);
}

template <typename T>
T sum_at(const Rows& rows, std::size_t m, std::size_t n) {
  T out;
  std::memcpy(&out, rows.data() + m * kStride + 4 * n, 4);
  return out;
}

}  // namespace

TEST_CASE("amx: the emulator multiplies bytes exactly, with and without signs, in tiles of every size") {
  test::emulate_amx();
  test::Rng rng(1);
  for (const auto& [product, first, second] :
       {std::tuple{Product::ss, true, true}, std::tuple{Product::su, true, false},
        std::tuple{Product::us, false, true}, std::tuple{Product::uu, false, false}}) {
    for (const auto& [m, n, k] :
         {std::array<std::size_t, 3>{16, 16, 16}, {1, 1, 1}, {5, 16, 3}, {16, 7, 11}}) {
      const Rows inputs = random_rows(rng), weights = random_rows(rng), before = random_rows(rng);
      Rows sums = before;
      run(product, Config(m, n, k), inputs, weights, sums);
      for (std::size_t row = 0; row < 16; ++row) {
        for (std::size_t column = 0; column < 20; ++column) {
          auto expected = std::int64_t{sum_at<std::int32_t>(before, row, column)};
          for (std::size_t i = 0; row < m && column < n && i < 4 * k; ++i) {
            expected += byte_at(inputs, row * kStride + i, first) *
                        byte_at(weights, i / 4 * kStride + 4 * column + i % 4, second);
          }
          CHECK(sum_at<std::int32_t>(sums, row, column) == static_cast<std::int32_t>(expected));
        }
      }
    }
  }
}

TEST_CASE(
    "amx: the emulator multiplies bfloat16 to rounding of its two chains, and flushes denormal numbers") {
  test::emulate_amx();
  test::Rng rng(2);
  for (const auto& [m, n, k] : {std::array<std::size_t, 3>{16, 16, 16}, {1, 1, 1}, {3, 16, 5}, {16, 9, 2}}) {
    const Rows inputs = random_bf16(rng), weights = random_bf16(rng);
    Rows sums{};
    for (std::size_t i = 0; i < sums.size(); i += 4) {
      const float number = rng.uniform(-1.0f, 1.0f) * 1e-20f;
      std::memcpy(sums.data() + i, &number, 4);
    }
    const Rows before = sums;
    run(Product::bf16, Config(m, n, k), inputs, weights, sums);
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = 0; column < n; ++column) {
        double exact = static_cast<double>(sum_at<float>(before, row, column)), magnitude = std::abs(exact);
        for (std::size_t i = 0; i < 2 * k; ++i) {
          const double product = bf16_number(inputs, row * kStride + 2 * i) *
                                 bf16_number(weights, i / 2 * kStride + 4 * column + 2 * (i % 2));
          exact += product;
          magnitude += std::abs(product);
        }
        const double bound =
            static_cast<double>(k + 3) * 0x1p-24 * magnitude + static_cast<double>(2 * k + 3) * 0x1p-126;
        CHECK(std::abs(static_cast<double>(sum_at<float>(sums, row, column)) - exact) <= bound);
      }
    }
  }
  SUBCASE("order: first and second numbers of pairs are chains of their own") {
    Rows inputs{}, weights{}, sums{};
    const auto set = [](Rows& rows, std::size_t at, float number) {
      const std::uint16_t bits = float_to_bf16(number);
      std::memcpy(rows.data() + at, &bits, 2);
    };
    // chains: 2^24 + 1 (lost) and 1 + 1 = 2; in order of K the two ones would be lost one by one
    const float in[] = {0x1p24f, 1.0f, 1.0f, 1.0f};
    for (std::size_t i = 0; i < 4; ++i) {
      set(inputs, 2 * i, in[i]);
      set(weights, i / 2 * kStride + 2 * (i % 2), 1.0f);
    }
    run(Product::bf16, Config(1, 1, 2), inputs, weights, sums);
    CHECK(sum_at<float>(sums, 0, 0) == 0x1p24f + 2.0f);
  }
}

TEST_CASE("amx: a configuration is read, kept and given back") {
  test::emulate_amx();
  const Config config(3, 4, 5);
  alignas(64) std::array<std::uint8_t, 64> stored{};
  __asm__ volatile("ldtilecfg %0" : : "m"(config.bytes));
  __asm__ volatile("sttilecfg %0" : "=m"(stored));
  CHECK(stored == config.bytes);
  __asm__ volatile("tilerelease");
  __asm__ volatile("sttilecfg %0" : "=m"(stored));
  CHECK(stored == std::array<std::uint8_t, 64>{});
}

TEST_CASE("amx: products on tiles pass the self-check, and those of bytes have the bits of VNNI") {
  test::emulate_amx();
  const KernelTable *tiles = nullptr, *vnni = nullptr;
  for (const CompiledTarget& target : compiled_targets()) {
    if (std::string_view(target.table.name) == "avx512_amx") tiles = &target.table;
    if (std::string_view(target.table.name) == "avx512_bf16" && target.supported) vnni = &target.table;
  }
  if (tiles == nullptr || vnni == nullptr) return;  // the code around the tiles is AVX-512
  CHECK(products_are_right(*tiles->bfloat16->linear, *tiles->int8->linear));
  const unsigned long before = test::num_emulated();
  test::Rng rng(3);
  for (const auto& [rows, columns, k] :
       {std::array<std::size_t, 3>{1, 1, 1}, {16, 32, 64}, {17, 33, 65}, {97, 70, 401}}) {
    const Tensor<float> in = rng.tensor({rows, k}), weight = rng.tensor({columns, k});
    CHECK(test::linear_product(*tiles->int8->linear, in, weight) ==
          test::linear_product(*vnni->int8->linear, in, weight));
  }
  CHECK(test::runs_on_tiles(before));
}

}  // namespace vit::internal::kernels

#endif
