// The bias of scores, by a table of places and by tables of both axes, against its definition: the scores of
// every query and key with the bias written out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {
namespace {

/// A head over a grid of rows x columns, after some tokens that are not of it.
struct BiasCase {
  std::size_t rows, columns, prefix, head_dim;
  std::size_t tokens() const { return prefix + rows * columns; }
};

enum class Kind { table, axes };

class BiasedHead {
 public:
  BiasedHead(BiasCase c, Kind kind)
      : case_(c), kind_(kind), scale_(1.0f / std::sqrt(static_cast<float>(c.head_dim))) {
    test::Rng rng(11);
    for (std::vector<float>* numbers : {&queries_, &keys_, &values_})
      *numbers = rng.numbers(c.tokens() * c.head_dim, -2.0f, 2.0f);
    if (kind == Kind::table) {
      for (std::size_t t = 0; t < c.tokens(); ++t) {
        query_places_.push_back(static_cast<std::int32_t>(rng.numbers(1, 40.0f, 79.0f)[0]));
        key_places_.push_back(static_cast<std::int32_t>(rng.numbers(1, -20.0f, 39.0f)[0]));
      }
      table_ = rng.numbers(100, -3.0f, 3.0f);
      return;
    }
    stride_ = 2 * (c.rows + c.columns) - 2;
    table_ = rng.numbers(c.head_dim * stride_, -1.0f, 1.0f);
    table_.resize(table_.size() + kAxesPadding, std::nanf(""));
    for (std::size_t t = 0; t < c.tokens(); ++t) {
      rows_.push_back(static_cast<std::uint16_t>(t / c.columns % c.rows));
      columns_.push_back(static_cast<std::uint16_t>(t % c.columns));
    }
  }

  double bias(std::size_t query, std::size_t key) const {
    if (kind_ == Kind::table)
      return static_cast<double>(table_[static_cast<std::size_t>(query_places_[query] - key_places_[key])]);
    const std::size_t of_rows = case_.rows - 1 + rows_[key] - rows_[query];
    const std::size_t of_columns = 2 * case_.rows - 1 + case_.columns - 1 + columns_[key] - columns_[query];
    double sum = 0;
    for (std::size_t c = 0; c < case_.head_dim; ++c) {
      sum += static_cast<double>(queries_[query * case_.head_dim + c]) *
             (static_cast<double>(table_[c * stride_ + of_rows]) +
              static_cast<double>(table_[c * stride_ + of_columns]));
    }
    return sum;
  }

  /// The probabilities of a query.
  std::vector<double> expected(std::size_t query) const {
    std::vector<double> weights;
    for (std::size_t key = 0; key < case_.tokens(); ++key) {
      double sum = 0;
      for (std::size_t c = 0; c < case_.head_dim; ++c)
        sum += static_cast<double>(queries_[query * case_.head_dim + c]) *
               static_cast<double>(keys_[key * case_.head_dim + c]);
      weights.push_back(sum * static_cast<double>(scale_) + bias(query, key));
    }
    const double largest = std::ranges::max(weights);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (double& weight : weights) weight /= sum;
    return weights;
  }
  double value(std::size_t key, std::size_t c) const {
    return static_cast<double>(values_[key * case_.head_dim + c]);
  }

  /// Outputs (count, d), or probabilities (count, T), of queries.
  std::vector<float> run(const AttentionKernels& attention, std::size_t first, std::size_t count,
                         bool probabilities) const {
    Tensor<float> packed(Shape{attention.packed_floats(case_.tokens(), case_.head_dim)});
    Tensor<float> scratch(Shape{attention.scratch_floats(case_.head_dim)});
    Tensor<float> terms(Shape{axis_terms(case_.rows, case_.columns)});
    attention.pack({.keys = keys_.data(),
                    .key_stride = case_.head_dim,
                    .values = values_.data(),
                    .value_stride = case_.head_dim,
                    .num_tokens = case_.tokens(),
                    .last_token = case_.tokens(),
                    .head_dim = case_.head_dim,
                    .packed = packed.data(),
                    .scratch = scratch.data()});
    const std::size_t width = probabilities ? case_.tokens() : case_.head_dim;
    std::vector<float> out(count * width);
    ScoreBias bias{
        .table = table_.data(), .query_places = query_places_.data(), .key_places = key_places_.data()};
    if (kind_ == Kind::axes) {
      bias = {.axes = table_.data(),
              .axes_stride = stride_,
              .num_rows = case_.rows,
              .num_columns = case_.columns,
              .rows = rows_.data(),
              .columns = columns_.data(),
              .terms = terms.data()};
    }
    const AttentionArgs args{.queries = queries_.data() + first * case_.head_dim,
                             .query_stride = case_.head_dim,
                             .first_query = first,
                             .num_queries = count,
                             .scale = scale_,
                             .packed = packed.data(),
                             .num_tokens = case_.tokens(),
                             .head_dim = case_.head_dim,
                             .bias = bias,
                             .out = out.data(),
                             .out_stride = width,
                             .scratch = scratch.data()};
    probabilities ? attention.probabilities(args) : attention.attend(args);
    return out;
  }

  /// Bound on the relative error of a weight: that of its score, a sum of products of numbers up to 2, times
  /// 1 / sqrt(d), and of the bias, at most 3 or sums of 2 d products up to 2.
  double weight_bound() const {
    const double terms = static_cast<double>(case_.head_dim);
    const double of_bias =
        kind_ == Kind::table ? 3.0 * test::kRoundoff : test::dot_bound(2 * case_.head_dim, 4.0 * terms);
    const double size = 4.0 * std::sqrt(terms) + (kind_ == Kind::table ? 3.0 : 4.0 * terms);
    return 2.0 * (test::dot_bound(case_.head_dim + 4, 4.0 * std::sqrt(terms)) + of_bias) +
           (16 + 8 * size) * test::kRoundoff;
  }

 private:
  BiasCase case_;
  Kind kind_;
  float scale_;
  std::vector<float> queries_, keys_, values_, table_;
  std::size_t stride_ = 0;
  std::vector<std::int32_t> query_places_, key_places_;
  std::vector<std::uint16_t> rows_, columns_;
};

constexpr BiasCase kCases[] = {{1, 1, 0, 4},    {1, 5, 1, 8},    {3, 5, 0, 1},
                               {7, 9, 1, 12},   {4, 4, 0, 33},   {14, 14, 0, 64},
                               {17, 19, 1, 16}, {2, 130, 0, 20}, {33, 3, 0, 7}};

}  // namespace

TEST_CASE("kernels: attention adds the bias of places and of axes to its scores") {
  for (const KernelTable* table : available_kernels()) {
    for (const Kind kind : {Kind::table, Kind::axes}) {
      for (const BiasCase& c : kCases) {
        CAPTURE(std::string(table->name));
        CAPTURE(static_cast<int>(kind));
        CAPTURE(c.rows);
        CAPTURE(c.columns);
        CAPTURE(c.head_dim);
        const BiasedHead head(c, kind);
        const AttentionKernels& attention = table->float32->attention;
        const std::vector<float> out = head.run(attention, 0, c.tokens(), false);
        const std::vector<float> weights = head.run(attention, 0, c.tokens(), true);
        const double bound = head.weight_bound();
        for (std::size_t query = 0; query < c.tokens(); ++query) {
          const std::vector<double> expected = head.expected(query);
          for (std::size_t key = 0; key < c.tokens(); ++key) {
            const double error =
                std::abs(static_cast<double>(weights[query * c.tokens() + key]) - expected[key]);
            REQUIRE(error <= bound * expected[key] + 1e-30);
          }
          for (std::size_t channel = 0; channel < c.head_dim; ++channel) {
            double sum = 0;
            for (std::size_t key = 0; key < c.tokens(); ++key)
              sum += expected[key] * head.value(key, channel);
            const double error = std::abs(static_cast<double>(out[query * c.head_dim + channel]) - sum);
            REQUIRE(error <= 2.0 * (2.0 * bound + test::dot_bound(c.tokens(), 2.0)));
          }
        }
      }
    }
  }
}

TEST_CASE("kernels: bits of a query with a bias do not depend on how queries are split") {
  const BiasCase c{17, 19, 0, 24};
  for (const KernelTable* table : available_kernels()) {
    for (const Arithmetic* arithmetic : {table->float32, table->bfloat16, table->int8}) {
      for (const Kind kind : {Kind::table, Kind::axes}) {
        CAPTURE(std::string(table->name));
        const BiasedHead head(c, kind);
        const std::vector<float> all = head.run(arithmetic->attention, 0, c.tokens(), false);
        for (const auto& [first, count] :
             {std::pair<std::size_t, std::size_t>{0, 32}, {32, 1}, {64, 77}, {320, 3}}) {
          const std::vector<float> some = head.run(arithmetic->attention, first, count, false);
          const auto* const begin = all.data() + first * c.head_dim;
          REQUIRE(std::equal(some.begin(), some.end(), begin));
        }
      }
    }
  }
}

}  // namespace vit::internal::kernels
