// Attention probabilities, those of single queries, and rollout: against PyTorch's eager attention in
// float64, and against each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/session.h"

namespace vit {
namespace {

constexpr const char* kModels[]{"timm-vit",  "rope-axial",          "rope-mixed", "timm-eva02",
                                "hf-dinov3", "hf-dinov2-registers", "hf-siglip"};

struct GoldenAttention {
  explicit GoldenAttention(const std::string& name)
      : model(Model::load(test::data_path("golden/models/" + name))),
        expected(test::data_path("golden/attention/" + name + ".safetensors")),
        pixels(test::FixtureTensors(test::data_path("golden/models/" + name + "/expected.safetensors"))
                   .floats("native.pixels")) {}

  std::shared_ptr<const Model> model;
  test::FixtureTensors expected;
  Tensor<float> pixels;  // (2, 3, H, W)
};

double largest_difference(std::span<const float> found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(found[i]) - expected[i]));
  return largest;
}

/// All queries of the last block one by one.
std::vector<AttentionQuery> all_queries(std::size_t block, std::size_t num_tokens) {
  std::vector<AttentionQuery> queries;
  for (std::size_t token = 0; token < num_tokens; ++token) queries.push_back({block, token});
  return queries;
}

}  // namespace

TEST_CASE("attention: probabilities and rollout equal PyTorch's in float64") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const GoldenAttention golden(name);
    const std::size_t last = golden.model->config().depth - 1;
    const std::size_t num_tokens = golden.expected.shape("block.0")[3];
    Request request{.attention = {0, last}, .rollout = {{last, 0}, {last, num_tokens - 1}}};
    Session session(golden.model, {.threads = 2});
    Outputs outputs;
    session.forward(golden.pixels, request, outputs);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string block = "block." + std::to_string(request.attention[i]);
      CHECK(largest_difference(outputs.attention[i].flat(), golden.expected.doubles(block)) < 1e-5);
      const std::string token = "rollout." + std::to_string(request.rollout[i].token);
      CHECK(largest_difference(outputs.rollout[i].flat(), golden.expected.doubles(token)) < 1e-5);
    }
  }
}

TEST_CASE("attention: a single query has the bits that it has among all, for any batch and threads") {
  for (const std::string name : {"rope-mixed", "hf-dinov3"}) {
    CAPTURE(name);
    const GoldenAttention golden(name);
    const std::size_t num_tokens = golden.expected.shape("block.0")[3];
    Request request{.attention = {1}, .attention_queries = all_queries(1, num_tokens), .rollout = {{1, 2}}};
    Outputs both, one;
    Session(golden.model, {.threads = 2}).forward(golden.pixels, request, both);
    request.attention.clear();
    for (std::size_t image = 0; image < 2; ++image) {
      for (const int threads : {1, 2, 3}) {
        CAPTURE(threads);
        Session(golden.model, {.threads = threads})
            .forward(golden.pixels.view().part(image, 1), request, one);
        for (std::size_t token = 0; token < num_tokens; ++token) {
          const TensorView<const float> all = both[image].attention(0);       // (H, T, T)
          const TensorView<const float> row = one[0].attention_query(token);  // (H, T)
          for (std::size_t head = 0; head < row.dim(0); ++head)
            CHECK(std::equal(row.row(head), row.row(head) + num_tokens, all[head].row(token)));
        }
        CHECK(std::ranges::equal(one[0].rollout(0), both[image].rollout(0)));
      }
    }
  }
}

TEST_CASE("attention: queries that are none and rows that were not asked for are errors") {
  const GoldenAttention golden("rope-axial");
  Session session(golden.model);
  Outputs outputs;
  CHECK_ERROR(ErrorKind::argument, ("attention of token 10 asked of images with 10 tokens"),
              session.forward(golden.pixels, {.attention_queries = {{0, 10}}}, outputs));
  CHECK_ERROR(ErrorKind::argument, ("block 2 asked of a model with 2 blocks"),
              session.forward(golden.pixels, {.rollout = {{2, 0}}}, outputs));
  session.forward(golden.pixels, {.attention_queries = {{0, 9}}}, outputs);
  CHECK(outputs[1].attention_query(0).shape() == Shape{3, 10});
  CHECK_ERROR(ErrorKind::argument, ("Request::attention_queries has 1 entries"),
              outputs[0].attention_query(1));
  CHECK_ERROR(ErrorKind::argument, ("Request::rollout has 0 entries"), outputs[0].rollout(0));
}

}  // namespace vit
