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
#include "vit/config.h"
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

}  // namespace

TEST_CASE("attention: probabilities and rollout equal PyTorch's in float64") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const GoldenAttention golden(name);
    const std::size_t last = golden.model->config().encoder.depth - 1;
    const std::size_t num_tokens = golden.expected.shape("block.0")[3];
    const std::size_t tokens[] = {0, num_tokens - 1}, blocks[] = {0, last};
    const Request request{{Output::attention, 0},
                          {Output::attention, last},
                          {Output::rollout, last, 0},
                          {Output::rollout, last, num_tokens - 1}};
    Session session(golden.model, {.threads = 2});
    Outputs outputs;
    session.forward(golden.pixels, request, outputs);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string block = "block." + std::to_string(blocks[i]);
      CHECK(largest_difference(outputs[{Output::attention, blocks[i]}].flat(),
                               golden.expected.doubles(block)) < 1e-5);
      const std::string token = "rollout." + std::to_string(tokens[i]);
      CHECK(largest_difference(outputs[{Output::rollout, last, tokens[i]}].flat(),
                               golden.expected.doubles(token)) < 1e-5);
    }
  }
}

TEST_CASE("attention: a single query has the bits that it has among all, for any batch and threads") {
  for (const std::string name : {"rope-mixed", "hf-dinov3"}) {
    CAPTURE(name);
    const GoldenAttention golden(name);
    const std::size_t num_tokens = golden.expected.shape("block.0")[3];
    Request request{{Output::rollout, 1, 2}};
    for (std::size_t token = 0; token < num_tokens; ++token) request.add({Output::attention_query, 1, token});
    Request with_all = request;
    with_all.add({Output::attention, 1});
    Outputs both, one;
    Session(golden.model, {.threads = 2}).forward(golden.pixels, with_all, both);
    for (std::size_t image = 0; image < 2; ++image) {
      for (const int threads : {1, 2, 3}) {
        CAPTURE(threads);
        Session(golden.model, {.threads = threads})
            .forward(golden.pixels.view().part(image, 1), request, one);
        for (std::size_t token = 0; token < num_tokens; ++token) {
          const TensorView<const float> all = both[image].attention(1);                     // (H, T, T)
          const TensorView<const float> row = one[0][{Output::attention_query, 1, token}];  // (H, T)
          for (std::size_t head = 0; head < row.dim(0); ++head)
            CHECK(std::equal(row.row(head), row.row(head) + num_tokens, all[head].row(token)));
        }
        const OutputKey rollout(Output::rollout, 1, 2);
        CHECK(std::ranges::equal(one[0][rollout].flat(), both[image][rollout].flat()));
      }
    }
  }
}

TEST_CASE("attention: queries that do not exist and rows that were not requested are errors") {
  const GoldenAttention golden("rope-axial");
  Session session(golden.model);
  Outputs outputs;
  CHECK_ERROR(ErrorKind::argument, ("attention_query.0.10", "images with 10 tokens"),
              session.forward(golden.pixels, {{Output::attention_query, 0, 10}}, outputs));
  CHECK_ERROR(ErrorKind::argument, ("rollout.2", "the model has 2 blocks"),
              session.forward(golden.pixels, {{Output::rollout, 2, 0}}, outputs));
  session.forward(golden.pixels, {{Output::attention_query, 0, 9}}, outputs);
  CHECK(outputs[1][{Output::attention_query, 0, 9}].shape() == Shape{3, 10});
  CHECK_ERROR(ErrorKind::argument, ("not requested: attention_query.0.1"),
              static_cast<void>(outputs[0][{Output::attention_query, 0, 1}]));
  CHECK_ERROR(ErrorKind::argument, ("not requested: rollout.0.0"),
              static_cast<void>(outputs[0][{Output::rollout, 0, 0}]));
}

}  // namespace vit
