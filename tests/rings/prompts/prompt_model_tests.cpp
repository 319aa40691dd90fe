// Models of prompts: random ones, the names of their tensors, masks as prompts, and attention with boxes.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
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

TEST_CASE("prompts: a mask of another size is resized with antialias, as the library does") {
  PromptSegmenter segmenter(PromptModel::load(data_path("golden/prompts/sam3")), {.threads = 1});
  const auto image = segmenter.encode(data_path("golden/prompts/images/drawing.png"), PromptUse::objects);
  CHECK_THROWS_AS(segmenter.encode(data_path("golden/prompts/images/drawing.png"), static_cast<PromptUse>(3)),
                  Error);
  ObjectOptions options;
  options.rule = static_cast<PromptRule>(2);
  CHECK_THROWS_AS(segmenter.segment_object(*image, {.points = {{.x = 20, .y = 15}}, .mask = {}}, options),
                  Error);
  const std::size_t edge = segmenter.model().mask_size(), height = 2 * edge, width = 3 * edge;
  Tensor<float> large(Shape{height, width}), small(Shape{edge, edge});
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x)
      large.view().row(y)[x] =
          8.0f * std::sin(0.3f * static_cast<float>(x)) * std::cos(0.2f * static_cast<float>(y));
  }
  // a triangle of twice the scale around each center, cut at the edges
  const auto weights = [&](std::size_t i, std::size_t size) {
    const double scale = static_cast<double>(size) / static_cast<double>(edge),
                 center = (static_cast<double>(i) + 0.5) * scale;
    std::vector<double> out(size);
    double sum = 0;
    for (std::size_t j = 0; j < size; ++j)
      sum += out[j] = std::max(0.0, 1.0 - std::abs(static_cast<double>(j) + 0.5 - center) / scale);
    for (double& weight : out) weight /= sum;
    return out;
  };
  for (std::size_t y = 0; y < edge; ++y) {
    const std::vector<double> of_rows = weights(y, height);
    for (std::size_t x = 0; x < edge; ++x) {
      const std::vector<double> of_columns = weights(x, width);
      double sum = 0;
      for (std::size_t j = 0; j < height; ++j) {
        for (std::size_t i = 0; i < width && of_rows[j] > 0; ++i)
          sum += of_rows[j] * of_columns[i] * static_cast<double>(large.view().row(j)[i]);
      }
      small.view().row(y)[x] = static_cast<float>(sum);
    }
  }
  const ObjectMasks found = segmenter.segment_object(*image, {.points = {{.x = 20, .y = 15}}, .mask = large}),
                    expected =
                        segmenter.segment_object(*image, {.points = {{.x = 20, .y = 15}}, .mask = small});
  for (std::size_t i = 0; i < found.scores.size(); ++i)
    CHECK(found.scores[i] == doctest::Approx(expected.scores[i]).epsilon(1e-5));
  for (std::size_t i = 0; i < found.logits.num_elements(); ++i)
    CHECK(found.logits.data()[i] == doctest::Approx(expected.logits.data()[i]).epsilon(1e-4));
}

TEST_CASE("prompts: features are for the segmenters of the model that made them") {
  const auto folder = data_path("golden/prompts/sam3");
  const auto model = PromptModel::load(folder), other = PromptModel::load(folder);
  PromptSegmenter first(model, {.threads = 1}), same(model, {.threads = 1}), foreign(other, {.threads = 1});
  const auto image = first.encode(data_path("golden/prompts/images/drawing.png"), PromptUse::both);
  const ObjectPrompt point{.points = {{.x = 20, .y = 15}}};
  CHECK(same.segment_object(*image, point).scores == first.segment_object(*image, point).scores);
  CHECK(contains(message_of([&] { foreign.segment_object(*image, point); }), "encoded by another model"));
  CHECK(
      contains(message_of([&] { foreign.segment(*image, {.text = "a cat"}); }), "encoded by another model"));
}

TEST_CASE("prompts: trackers are found under each name that the library gives them") {
  const std::filesystem::path golden = data_path("golden/prompts/sam3");
  const ObjectPrompt prompt{.points = {{.x = 20, .y = 15}}};
  const auto scores = [&](const std::filesystem::path& folder) {
    PromptSegmenter segmenter(PromptModel::load(folder), {.threads = 1});
    const auto image = segmenter.encode(data_path("golden/prompts/images/drawing.png"), PromptUse::objects);
    return segmenter.segment_object(*image, prompt).scores;
  };
  const std::vector<float> expected = scores(golden);
  // saved again as the whole model, and as the tracker by itself
  constexpr std::array<std::array<std::string_view, 2>, 2> kRenamed[] = {
      {{{"tracker_model.", "tracker_model.tracker_model."}, {"tracker_neck.", "tracker_neck."}}},
      {{{"detector_model.vision_encoder.backbone.", "tracker_model.detector_model.vision_encoder.backbone."},
        {"tracker_neck.", "tracker_model.tracker_neck."}}}};
  for (const auto& renamed : kRenamed) {
    const ScratchFolder folder("tracker");
    FileCopy copy(golden);
    for (FileCopy::Entry& entry : copy.entries()) {
      for (const auto& pair : renamed) {
        if (!entry.name.starts_with(pair[0])) continue;
        entry.name = std::string(pair[1]) + entry.name.substr(pair[0].size());
        break;
      }
    }
    const bool is_alone = renamed[0][0] != "tracker_model.";
    if (is_alone)
      std::erase_if(copy.entries(), [](const FileCopy::Entry& entry) {  // what it does not have
        constexpr std::string_view kKept[] = {
            "tracker_model.detector_model.",     "tracker_model.tracker_neck.",
            "tracker_model.mask_decoder.",       "tracker_model.prompt_encoder.",
            "tracker_model.no_memory_embedding", "tracker_model.shared_image_embedding."};
        return std::ranges::none_of(kKept,
                                    [&](std::string_view prefix) { return entry.name.starts_with(prefix); });
      });
    copy.write_to(folder.path());
    for (const char* const file : {"processor_config.json", "tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(golden / file, folder.path() / file);
    CHECK(PromptModel::load(folder.path())->takes(PromptUse::phrases) != is_alone);
    CHECK(scores(folder.path()) == expected);
  }
}

TEST_SUITE_END();
