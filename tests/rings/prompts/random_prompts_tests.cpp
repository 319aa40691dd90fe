// A model of prompts without a checkpoint.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "vit/config.h"
#include "vit/rings/prompts/prompt_parts.h"
#include "vit/rings/prompts/rows_attention.h"

TEST_SUITE_BEGIN("prompts");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("prompts: only the published model has random weights, whose words are tokens") {
  CHECK(error_of([] { PromptModel::random("vit_base_patch16_224"); }).value().kind() == ErrorKind::argument);
  TextConfig config;
  config.vocabulary_size = 100;
  config.context_length = 6;
  const TokenRow row = tokens_of_words("yellow  bus", config);
  CHECK(row.ids.size() == 6);
  CHECK(row.count == 4);
  CHECK(row.ids[0] == 98);
  CHECK((row.ids[1] >= 0 && row.ids[1] < 98 && row.ids[1] != row.ids[2]));
  CHECK(row.ids[3] == 99);
  CHECK(row.ids[5] == 99);
  CHECK(!row.cut);
  const TokenRow cut = tokens_of_words("a b c d e f", config);
  CHECK(cut.cut);
  CHECK(cut.ids[5] == 99);
}

TEST_CASE("prompts: attention with a bias of rows and columns is the softmax of the sums") {
  constexpr std::size_t kQueries = 5, kRows = 6, kColumns = 7, kHeads = 2, kWidth = 8, kDim = kHeads * kWidth;
  std::uint32_t state = 7;
  const auto filled = [&](Shape shape, float scale) {
    Tensor<float> out(shape);
    for (float& value : out.flat()) {
      state = state * 1664525u + 1013904223u;
      value = scale * (static_cast<float>(state >> 8) / static_cast<float>(1u << 24) - 0.5f);
    }
    return out;
  };
  const Tensor<float> q = filled({kQueries, kDim}, 4), k = filled({kRows * kColumns, kDim}, 4),
                      v = filled({kRows * kColumns, kDim}, 2),
                      rows = filled({kQueries - 1, kRows, kHeads}, 90),
                      columns = filled({kQueries - 1, kColumns, kHeads}, 90);
  Tensor<float> out(Shape{kQueries, kDim});
  PromptMemory memory;
  memory.threads = 1;
  attend_with_bias(q, k, v, kHeads, {.of_rows = rows, .of_columns = columns, .skipped = 1}, out,
                   *kernels::default_kernels().float32->linear, memory);
  for (std::size_t i = 0; i < kQueries; ++i) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      double weights[kRows * kColumns], sum = 0, most = -1e30;
      for (std::size_t key = 0; key < kRows * kColumns; ++key) {
        double score = 0;
        for (std::size_t c = 0; c < kWidth; ++c)
          score += static_cast<double>(q.view().row(i)[h * kWidth + c]) * k.view().row(key)[h * kWidth + c];
        score /= std::sqrt(static_cast<double>(kWidth));
        if (i > 0)
          score += static_cast<double>(rows.view()[i - 1].row(key / kColumns)[h]) +
                   columns.view()[i - 1].row(key % kColumns)[h];
        weights[key] = score;
        most = std::max(most, score);
      }
      for (double& weight : weights) sum += weight = std::exp(weight - most);
      for (std::size_t c = 0; c < kWidth; ++c) {
        double expected = 0;
        for (std::size_t key = 0; key < kRows * kColumns; ++key)
          expected += weights[key] / sum * v.view().row(key)[h * kWidth + c];
        // scores up to 90 in float32: half a unit there is 4e-6 of a weight, each product adds 6e-8
        CHECK(out.view().row(i)[h * kWidth + c] == doctest::Approx(expected).epsilon(1e-5));
      }
    }
  }
}

TEST_SUITE_END();
