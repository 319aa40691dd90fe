// Every attention of every table against the reference, and its promise that a query's bits depend on nothing
// but its head.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "tests/support/rotated_rows.h"
#include "tests/support/tolerance.h"
#include "vit/base/dtype.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {
namespace {

struct HeadCase {
  std::size_t tokens, head_dim, prefix;
  RopePairing pairing = RopePairing::neighbors;
  bool rotated = true;
  bool causal = false;
};

enum class Rounding { none, bfloat16, words, bytes };

/// One of the attentions of a table, and how it rounds: queries and keys, values and weights.
struct Variant {
  const KernelTable& table;
  const AttentionKernels& attention;
  Rounding keys, values;

  bool has_whole_values() const { return values == Rounding::words || values == Rounding::bytes; }
  std::string name() const {
    static constexpr const char* kNames[] = {"float32", "bfloat16", "words", "bytes"};
    return std::string(table.name) + ", keys " + kNames[static_cast<int>(keys)] + ", values " +
           kNames[static_cast<int>(values)];
  }
};

/// All of them, each once.
std::vector<Variant> all_variants() {
  std::vector<Variant> found;
  for (const KernelTable* table : available_kernels()) {
    const AttentionKernels &plain = table->float32->attention, &bfloat16 = table->bfloat16->attention,
                           &int8 = table->int8->attention;
    found.push_back({*table, plain, Rounding::none, Rounding::none});
    const bool has_bf16 = bfloat16.attend != plain.attend;
    if (has_bf16) found.push_back({*table, bfloat16, Rounding::bfloat16, Rounding::bfloat16});
    if (int8.attend != plain.attend && int8.attend != bfloat16.attend) {
      const bool has_vnni = test::int8_steps(*table->int8->linear) == test::Int8Steps{127, 255};
      found.push_back({*table, int8, has_bf16 ? Rounding::bfloat16 : Rounding::words,
                       has_vnni ? Rounding::bytes : Rounding::words});
    }
  }
  return found;
}

/// One head inside fused rows of q, k, v, two heads wide each.
class Head {
 public:
  explicit Head(HeadCase c, std::uint64_t seed = 7)
      : case_(c), stride_(6 * c.head_dim), scale_(1.0f / std::sqrt(static_cast<float>(c.head_dim))) {
    test::Rng rng(seed);
    qkv_ = rng.numbers(c.tokens * stride_, -2.0f, 2.0f);
    for (std::size_t i = 0; i < (c.tokens - c.prefix) * c.head_dim / 2; ++i) {
      const float angle = rng.uniform(-3.0f, 3.0f);
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  }

  Rotation rotation() const {
    if (!case_.rotated) return {};
    return {.cos = cos_.data(), .sin = sin_.data(), .num_prefix = case_.prefix, .pairing = case_.pairing};
  }

  /// The head whose attention in float32 is that of this one in `with` but for the rounding of weights:
  /// operands rotated and rounded before.
  Head rounded(const Variant& with) const {
    Head head = *this;
    for (const std::size_t column : {1, 3}) {
      float* const begin = head.qkv_.data() + column * case_.head_dim;
      const std::vector<float> rows = test::rotated_rows(
          with.table, TensorView<const float>(begin, {case_.tokens, case_.head_dim}, stride_), rotation());
      for (std::size_t row = 0; row < case_.tokens; ++row)
        std::copy_n(rows.data() + row * case_.head_dim, case_.head_dim, begin + row * stride_);
    }
    head.case_.rotated = false;
    for (std::size_t row = 0; row < case_.tokens; ++row) {
      head.round_query_or_key(row, 1, with.keys);
      head.round_query_or_key(row, 3, with.keys);
      head.round_value(row, with.values);
    }
    // Queries were scaled to exponents of two before.
    if (with.keys == Rounding::bfloat16) head.scale_ = std::numbers::ln2_v<float>;
    return head;
  }

  /// In two parts, the later one first: neither may write into the other.
  Tensor<float> packed(const Variant& with) const {
    Tensor<float> out(Shape{with.attention.packed_floats(case_.tokens, case_.head_dim)});
    Tensor<float> scratch(Shape{with.attention.scratch_floats(case_.head_dim)});
    const std::size_t middle = case_.tokens / 8 * 4;
    for (const auto& [first, last] : {std::pair{middle, case_.tokens}, std::pair{std::size_t{0}, middle}}) {
      with.attention.pack({.keys = qkv_.data() + 3 * case_.head_dim,
                           .key_stride = stride_,
                           .values = qkv_.data() + 5 * case_.head_dim,
                           .value_stride = stride_,
                           .num_tokens = case_.tokens,
                           .first_token = first,
                           .last_token = last,
                           .head_dim = case_.head_dim,
                           .rotation = rotation(),
                           .packed = out.data(),
                           .scratch = scratch.data()});
    }
    return out;
  }

  AttentionArgs args(const Tensor<float>& packed, std::size_t first, std::size_t count, float* out,
                     std::size_t out_stride, Tensor<float>& scratch) const {
    return {.queries = qkv_.data() + first * stride_ + case_.head_dim,
            .query_stride = stride_,
            .first_query = first,
            .num_queries = count,
            .scale = scale_,
            .rotation = rotation(),
            .packed = packed.data(),
            .num_tokens = case_.tokens,
            .head_dim = case_.head_dim,
            .causal = case_.causal,
            .out = out,
            .out_stride = out_stride,
            .scratch = scratch.data()};
  }

  /// Output (count, d), with a gap of three floats between rows that must stay as it is.
  std::vector<float> attend(const Variant& with, std::size_t first, std::size_t count) const {
    const Tensor<float> keys_and_values = packed(with);
    Tensor<float> scratch(Shape{with.attention.scratch_floats(case_.head_dim)});
    std::vector<float> out(count * (case_.head_dim + 3), kUntouched);
    with.attention.attend(args(keys_and_values, first, count, out.data(), case_.head_dim + 3, scratch));
    return out;
  }

  std::vector<float> probabilities(const Variant& with, std::size_t first, std::size_t count) const {
    const Tensor<float> keys_and_values = packed(with);
    Tensor<float> scratch(Shape{with.attention.scratch_floats(case_.head_dim)});
    std::vector<float> out(count * case_.tokens);
    with.attention.probabilities(args(keys_and_values, first, count, out.data(), case_.tokens, scratch));
    return out;
  }

  /// Bound on the error of a weight, relative, and of an output, absolute. Scores are sums of d products of
  /// numbers up to 2 sqrt(2) (rotated), times 1 / sqrt(d); their absolute error is the relative error of a
  /// weight.
  double weight_bound() const {
    const double terms = static_cast<double>(case_.head_dim);
    return 2.0 * test::dot_bound(case_.head_dim + 4, 8.0 * terms / std::sqrt(terms)) + 16 * test::kRoundoff;
  }
  double output_bound(Rounding values) const {
    const double rounded_weights = values == Rounding::bfloat16 ? 2.0 * 0x1p-8 : 0.0;  // values are at most 2
    return 2.0 * (2.0 * weight_bound() + test::dot_bound(case_.tokens, 2.0)) + rounded_weights;
  }

  /// The result of a query with these weights (T) for values that are rounded, as attention-int8-inl.h
  /// describes: its output (d), and the largest share of a key in it.
  struct WholeOutput {
    std::vector<double> numbers;
    double largest_share = 0.0;
  };
  WholeOutput whole_output(const float* weights, Rounding rounding) const {
    constexpr std::size_t kBlock = 252;
    const bool is_bytes = rounding == Rounding::bytes;
    const std::size_t keys_per_lane = is_bytes ? 4 : 2;
    const double largest_weight = is_bytes ? 254.0 : 8192.0;
    WholeOutput out{std::vector<double>(case_.head_dim)};
    const auto share = [&](std::size_t t) { return weights[t] * value_step(value_row(t), rounding); };
    std::vector<double> rests(keys_per_lane);
    for (std::size_t t = 0; t < case_.tokens; ++t) {
      if (t % kBlock == 0) {
        for (std::size_t k = t; k < std::min(t + kBlock, case_.tokens); ++k)
          out.largest_share = std::max(out.largest_share, share(k));
        rests.assign(keys_per_lane, 0.0);
      }
      double& rest = rests[t % kBlock % keys_per_lane];
      const double exact = share(t) / out.largest_share * largest_weight + rest;
      const double whole = std::nearbyint(exact);
      rest = exact - whole;
      const double factor = whole / largest_weight * out.largest_share / value_step(value_row(t), rounding);
      for (std::size_t c = 0; c < case_.head_dim; ++c) out.numbers[c] += factor * value_row(t)[c];
    }
    return out;
  }

  /// Of q (0), k (1) or v (2) of one token.
  float& first_number(std::size_t token, std::size_t which) {
    return qkv_[token * stride_ + (1 + 2 * which) * case_.head_dim];
  }

  static constexpr float kUntouched = 54321.0f;

 private:
  std::span<const float> value_row(std::size_t token) const {
    return {qkv_.data() + token * stride_ + 5 * case_.head_dim, case_.head_dim};
  }

  static float largest_of(std::span<const float> row) {
    float largest = 0.0f;
    for (const float x : row) largest = std::max(largest, std::fabs(x));
    return largest;
  }

  /// The least power of two of which `row` is at most 127 or 1023 times as much.
  static double value_step(std::span<const float> row, Rounding rounding) {
    int exponent = 0;
    const float least = largest_of(row) / (rounding == Rounding::bytes ? 127.0f : 1023.0f);
    const bool is_power = std::frexp(least, &exponent) == 0.5f;
    return std::ldexp(is_power ? 0.5 : 1.0, exponent);
  }

  void round_query_or_key(std::size_t token, std::size_t column, Rounding rounding) {
    const std::span<float> row(qkv_.data() + token * stride_ + column * case_.head_dim, case_.head_dim);
    const float factor = column == 1 ? scale_ * std::numbers::log2e_v<float> : 1.0f;
    const float of_words = std::floor(std::sqrt(2147483000.0f / static_cast<float>(case_.head_dim)));
    const float steps = std::min(of_words, 32'767.0f), largest = largest_of(row);
    for (float& x : row) {
      if (rounding == Rounding::bfloat16) x = bf16_to_float(float_to_bf16(x * factor));
      if (rounding == Rounding::words) x = std::nearbyint(x * (steps / largest)) * (largest / steps);
    }
  }

  void round_value(std::size_t token, Rounding rounding) {
    const std::span<float> row(qkv_.data() + token * stride_ + 5 * case_.head_dim, case_.head_dim);
    const auto step = static_cast<float>(value_step(row, rounding));
    for (float& x : row)
      x = rounding == Rounding::bfloat16 ? bf16_to_float(float_to_bf16(x)) : std::nearbyint(x / step) * step;
  }

  HeadCase case_;
  std::size_t stride_;
  float scale_;
  std::vector<float> qkv_, cos_, sin_;
};

void check_head(const Variant& with, HeadCase c, std::size_t queries) {
  CAPTURE(with.name());
  CAPTURE(c.tokens);
  CAPTURE(c.head_dim);
  CAPTURE(queries);
  const Head head(c);
  const Head exact = with.keys == Rounding::none ? head : head.rounded(with);
  const KernelTable& table = find_kernels("reference");
  const Variant reference{table, table.float32->attention, Rounding::none, Rounding::none};
  const std::size_t first = c.tokens - queries;
  const std::vector<float> weights = head.probabilities(with, first, queries);
  const std::vector<float> expected_weights = exact.probabilities(reference, first, queries);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    REQUIRE(std::fabs(weights[i] - expected_weights[i]) <= head.weight_bound() * expected_weights[i]);
  }
  const std::vector<float> out = head.attend(with, first, queries);
  const std::vector<float> expected = exact.attend(reference, first, queries);
  std::size_t rounded_otherwise = 0;
  for (std::size_t query = 0; query < queries; ++query) {
    const std::span<const float> row(out.data() + query * (c.head_dim + 3), c.head_dim + 3);
    for (const float gap : row.last(3)) REQUIRE(gap == Head::kUntouched);
    if (!with.has_whole_values()) {
      for (std::size_t i = 0; i < c.head_dim; ++i)
        REQUIRE(std::fabs(row[i] - expected[query * (c.head_dim + 3) + i]) <= head.output_bound(with.values));
      continue;
    }
    // A weight next to a half may be rounded up here and down there; the next one makes up for it. That moves
    // the output by no more than a step of weights times the difference of two values.
    const Head::WholeOutput whole =
        exact.whole_output(expected_weights.data() + query * c.tokens, with.values);
    const double step =
        whole.largest_share * (with.values == Rounding::bytes ? 2 * 127.0 / 254 : 2 * 1023.0 / 8192);
    double off = 0.0;
    for (std::size_t i = 0; i < c.head_dim; ++i) off = std::max(off, std::fabs(row[i] - whole.numbers[i]));
    REQUIRE(off <= head.output_bound(with.values) + 2.0 * step);
    if (off > head.output_bound(with.values)) ++rounded_otherwise;
  }
  CHECK(rounded_otherwise <= 1 + queries / 16);
}

/// Output of one query (d) among keys and values (T, d), nothing rotated.
std::vector<float> attend_once(const Variant& with, const std::vector<float>& query,
                               const std::vector<float>& keys, const std::vector<float>& values,
                               float scale) {
  const std::size_t d = query.size(), tokens = keys.size() / d;
  Tensor<float> packed(Shape{with.attention.packed_floats(tokens, d)});
  Tensor<float> scratch(Shape{with.attention.scratch_floats(d)});
  with.attention.pack({.keys = keys.data(),
                       .key_stride = d,
                       .values = values.data(),
                       .value_stride = d,
                       .num_tokens = tokens,
                       .last_token = tokens,
                       .head_dim = d,
                       .packed = packed.data(),
                       .scratch = scratch.data()});
  std::vector<float> out(d);
  with.attention.attend({.queries = query.data(),
                         .query_stride = d,
                         .num_queries = 1,
                         .scale = scale,
                         .packed = packed.data(),
                         .num_tokens = tokens,
                         .head_dim = d,
                         .out = out.data(),
                         .out_stride = d,
                         .scratch = scratch.data()});
  return out;
}

}  // namespace

TEST_CASE("kernels: attention agrees with the reference for every width of a head") {
  for (const Variant& with : all_variants()) {
    for (const std::size_t head_dim : {2, 16, 24, 32, 64, 72, 80, 88, 96, 112, 128}) {
      for (const RopePairing pairing : {RopePairing::neighbors, RopePairing::halves}) {
        check_head(with, {.tokens = 30, .head_dim = head_dim, .prefix = 1, .pairing = pairing}, 30);
      }
    }
    check_head(with, {.tokens = 20, .head_dim = 7, .prefix = 0, .rotated = false}, 20);
  }
}

TEST_CASE("kernels: attention agrees with the reference for every number of tokens") {
  for (const Variant& with : all_variants()) {
    for (const std::size_t tokens : {1, 2, 5, 6, 7, 12, 13, 16, 17, 33, 197, 251, 252, 253, 257}) {
      for (const std::size_t prefix : {0, 1, 5}) {
        if (prefix <= tokens) check_head(with, {.tokens = tokens, .head_dim = 16, .prefix = prefix}, tokens);
      }
    }
    check_head(with, {.tokens = 1025, .head_dim = 64, .prefix = 1, .pairing = RopePairing::halves}, 20);
    check_head(with, {.tokens = 577, .head_dim = 24, .prefix = 1, .rotated = false}, 9);
    const std::size_t more_than_once = kQueriesAtOnce + 41;
    check_head(with, {.tokens = more_than_once, .head_dim = 8, .prefix = 1}, more_than_once);
  }
}

TEST_CASE("kernels: a query gets the same bits whatever it is computed with") {
  const std::size_t tokens = 270;
  const HeadCase c{.tokens = tokens, .head_dim = 24, .prefix = 1};
  const Head head(c);
  for (const Variant& with : all_variants()) {
    CAPTURE(with.name());
    const std::vector<float> whole = head.attend(with, 0, tokens);
    const std::vector<float> weights = head.probabilities(with, 0, tokens);
    for (const std::size_t at_once : {1, 3, 8, 31}) {
      std::vector<float> parts, part_weights;
      for (std::size_t first = 0; first < tokens; first += at_once) {
        const std::size_t count = std::min(at_once, tokens - first);
        const std::vector<float> part = head.attend(with, first, count);
        parts.insert(parts.end(), part.begin(), part.end());
        const std::vector<float> part_weight = head.probabilities(with, first, count);
        part_weights.insert(part_weights.end(), part_weight.begin(), part_weight.end());
      }
      CHECK(parts == whole);
      CHECK(part_weights == weights);
    }
  }
}

TEST_CASE("kernels: a causal query gets the bits of a query among the tokens up to its own") {
  for (const Variant& with : all_variants()) {
    CAPTURE(with.name());
    for (const std::size_t tokens : {1, 2, 17, 77, 270}) {
      CAPTURE(tokens);
      const std::size_t d = 24;
      const HeadCase c{.tokens = tokens, .head_dim = d, .prefix = 0, .rotated = false, .causal = true};
      const std::vector<float> out = Head(c).attend(with, 0, tokens);
      const std::vector<float> weights = Head(c).probabilities(with, 0, tokens);
      for (std::size_t query = 0; query<tokens; query += tokens> 100 ? 13 : 1) {
        const Head cut({.tokens = query + 1, .head_dim = d, .prefix = 0, .rotated = false});
        const auto row = out.begin() + static_cast<std::ptrdiff_t>(query * (d + 3));
        CHECK(std::vector<float>(row, row + d + 3) == cut.attend(with, query, 1));
        std::vector<float> expected = cut.probabilities(with, query, 1);
        expected.resize(tokens, 0.0f);
        const auto weight = weights.begin() + static_cast<std::ptrdiff_t>(query * tokens);
        CHECK(std::vector<float>(weight, weight + static_cast<std::ptrdiff_t>(tokens)) == expected);
      }
    }
  }
}

TEST_CASE("kernels: attention stays finite for scores of very different size") {
  const std::size_t tokens = 300, d = 16;
  const std::vector<float> query(d, 40.0f);
  std::vector<float> keys(tokens * d, -40.0f), values(tokens * d);
  std::fill_n(keys.begin() + 280 * d, d, 40.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / d);
  for (const Variant& with : all_variants()) {
    CAPTURE(with.name());
    for (const float x : attend_once(with, query, keys, values, 0.25f)) CHECK(x == 280.0f);
  }
}

TEST_CASE("kernels: attention takes account of many keys that weigh little") {
  const std::size_t tokens = 501, d = 16;
  // One key weighs 500 times as much as each of the others. In the second case its values are so small that
  // the others make up the output.
  const std::vector<float> query(d, 1.0f);
  std::vector<float> keys(tokens * d, 0.0f);
  keys[0] = static_cast<float>(std::log(500.0));
  for (const float of_first : {-1.0f, 1e-6f}) {
    CAPTURE(of_first);
    std::vector<float> values(tokens * d, 1.0f);
    std::fill_n(values.begin(), d, of_first);
    for (const Variant& with : all_variants()) {
      CAPTURE(with.name());
      // bfloat16 rounds key and query by up to 2^-9: the score by 0.025, the share of the first key by a
      // quarter of that.
      for (const float x : attend_once(with, query, keys, values, 1.0f))
        CHECK(std::fabs(x - (0.5f + 0.5f * of_first)) <= 0.0125f);
    }
  }
}

TEST_CASE("kernels: attention hides no NaN") {
  const HeadCase c{.tokens = 300, .head_dim = 16, .prefix = 1};
  for (const Variant& with : all_variants()) {
    CAPTURE(with.name());
    for (const std::size_t which : {0, 1, 2}) {
      CAPTURE(which);
      for (const std::size_t token : {3, 299}) {
        Head head(c);
        head.first_number(token, which) = std::numeric_limits<float>::quiet_NaN();
        CHECK(std::isnan(head.attend(with, token, 1)[0]));
      }
    }
  }
}

}  // namespace vit::internal::kernels
