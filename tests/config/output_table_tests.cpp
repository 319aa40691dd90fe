// The table of outputs: every row has its own name and bit, and what a model lacks is refused by name.
#include "vit/config.h"
#include "vit/config/output_table.h"

#include <doctest/doctest.h>

#include <bit>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace vit::internal {
namespace {

/// A model that has every output of the table.
ModelConfig whole_model() {
  ModelConfig config;
  config.embed_dim = 48;
  config.encoder.depth = 3;
  config.attention.num_heads = 4;
  config.head.projection = {.dim = 20};
  config.head.num_classes = 7;
  config.merger = {.cells = {.size = 2}, .deepstack = {0, 1, 2}};
  return config;
}

}  // namespace

TEST_CASE("outputs: every row has a bit and a name of its own, and a tensor that holds it") {
  std::set<std::string_view> names;
  std::uint32_t bits = 0;
  for (const OutputRow& row : output_table()) {
    CAPTURE(std::string(row.name));
    const auto bit = static_cast<std::uint32_t>(row.output);
    CHECK(std::has_single_bit(bit));
    CHECK((bits & bit) == 0);
    bits |= bit;
    CHECK(names.insert(row.name).second);
    CHECK(row.name.find('.') == row.name.npos);
    CHECK(!row.shape.empty());
    CHECK(!row.what.empty());
    CHECK(&row_of(row.output) == &row);
    const bool has_tensor = row.shape_of != nullptr, is_stored = row_of(row.stored_in).shape_of != nullptr;
    CHECK(is_stored);
    CHECK(has_tensor == (row.part_of == nullptr || row.of_head));
  }
}

/// A head with every output.
DenseConfig whole_head() {
  DenseConfig head;
  DenseBranch& branch = head.branches.emplace_back();
  for (const OutputRow& row : output_table()) {
    if (row.of_head) branch.outputs.push_back({.meaning = row.output});
  }
  return head;
}

TEST_CASE("outputs: names are read as they are written") {
  const ModelConfig config = whole_model();
  const DenseConfig head = whole_head();
  CHECK(head.request().has(Output::objectness));
  CHECK(is_of_head(head.request()));
  for (const OutputRow& row : output_table()) {
    OutputKey key(row.output);
    if (row.index != OutputIndex::none) key.index = 2;
    if (row.index == OutputIndex::block_and_token) key.token = 5;
    CAPTURE(to_string(key));
    CHECK(parse_output(to_string(key), config, &head) == key);
  }
  CHECK(parse_output("block.-1", config) == OutputKey(Output::block, 2));
  CHECK(parse_output("rollout.-3.4", config) == OutputKey(Output::rollout, 0, 4));
}

TEST_CASE("outputs: a key counts blocks from 0, also one with a negative number") {
  const ModelConfig config = whole_model();
  const OutputKey last(Output::block, static_cast<std::size_t>(-1));
  CHECK_ERROR(ErrorKind::argument, ("block.-1", "parse_output"), check_request({last}, config, nullptr));
  CHECK_ERROR(ErrorKind::argument, ("block.9"),
              check_request({OutputKey(Output::block, 9)}, config, nullptr));
}

TEST_CASE("outputs: names that are none, and what a model lacks") {
  ModelConfig config = whole_model();
  const auto refused = [&](const char* name, const char* why) {
    CAPTURE(name);
    CHECK_ERROR(ErrorKind::argument, (why), static_cast<void>(parse_output(name, config)));
  };
  SUBCASE("unknown names list those that there are") {
    for (const char* name : {"", "pool", "pooled.1", "Pooled", "class_token", "."}) refused(name, "block.K");
  }
  SUBCASE("numbers") {
    for (const char* name :
         {"block", "block.", "block.x", "block.1x", "block.1.2", "rollout.1", "rollout.1.x"})
      refused(name, "integer");
    refused("block.3", "block.0 to block.2");
    refused("attention.-4", "attention.-3");
    refused("rollout.0.-1", "counted from 0");
  }
  SUBCASE("a model without a vector, projection, class token or classifier") {
    config.head.pooling = Pooling::none;
    config.head.projection.reset();
    config.tokens.class_token = false;
    config.head.num_classes = 0;
    refused("pooled", "pooled vector");
    refused("projected", "projection");
    refused("cls", "class token");
    refused("logits", "classifier");
    CHECK(default_output(config) == Output::pooled);
  }
}

TEST_CASE("outputs: a request is a set, and tensors are reserved for it") {
  const ModelConfig config = whole_model();
  Request request{Output::patches, Output::class_token, {Output::block, 1}, {Output::block, 1}};
  CHECK(request.indexed().size() == 1);
  CHECK(request.has(Output::patches));
  CHECK(!request.has(Output::tokens));
  CHECK(request.has({Output::block, 1}));
  CHECK(!request.has({Output::block, 0}));
  Outputs outputs;
  OutputWriter(outputs).reserve(request, config, 2, {2, 3});
  REQUIRE(OutputWriter(outputs).tensors().size() == 2);  // patches and class token are parts of tokens
  CHECK(outputs[Output::tokens].shape() == Shape{2, 7, 48});
  CHECK(outputs[1].patches().shape() == Shape{2, 3, 48});
  CHECK(outputs[1].class_token().data() == outputs[Output::tokens].data() + 7 * 48);
  CHECK(outputs.has_class_token());

  SUBCASE("what is no longer wanted is given back") {
    OutputWriter(outputs).reserve(Output::logits, config, 1, {2, 3});
    REQUIRE(OutputWriter(outputs).tensors().size() == 1);
    CHECK_ERROR(ErrorKind::argument, ("not requested", "block.1"),
                static_cast<void>(outputs[0][{Output::block, 1}]));
  }
  SUBCASE("tokens that images do not have") {
    CHECK_ERROR(ErrorKind::argument, ("rollout.0.7", "7 tokens"),
                OutputWriter(outputs).reserve({{Output::rollout, 0, 7}}, config, 2, {2, 3}));
  }
  SUBCASE("memory of the caller") {
    std::vector<float> memory(2 * 7), small(2 * 7 - 1);
    outputs.bind(Output::logits, memory);
    OutputWriter(outputs).reserve(Output::logits, config, 2, {2, 3});
    CHECK(outputs[Output::logits].data() == memory.data());
    outputs.bind(Output::logits, small);
    CHECK_ERROR(ErrorKind::argument, ("logits", "14", "13"),
                OutputWriter(outputs).reserve(Output::logits, config, 2, {2, 3}));
    outputs.bind(Output::logits, {});
    OutputWriter(outputs).reserve(Output::logits, config, 2, {2, 3});
    CHECK(outputs[Output::logits].data() != memory.data());
    CHECK_ERROR(ErrorKind::argument, ("patches", "tokens"), outputs.bind(Output::patches, memory));
  }
}

TEST_CASE("outputs: those of a dense head have its planes, and windows in front") {
  const ModelConfig config = whole_model();
  DenseConfig only_depth;
  only_depth.branches.emplace_back().outputs.push_back({.meaning = Output::depth});
  CHECK_ERROR(ErrorKind::argument, ("sky", "does not give it"),
              static_cast<void>(parse_output("sky", config, &only_depth)));
  CHECK_ERROR(ErrorKind::argument, ("depth", "no dense head"),
              static_cast<void>(parse_output("depth", config)));
  const Request request{Output::depth, Output::classes, Output::boxes};
  CHECK(needs_head(request));
  CHECK(!needs_head({Output::logits, Output::tokens}));
  CHECK(!is_of_head({Output::depth, Output::tokens}));
  const MapShape maps[] = {
      {Output::depth, {1, 8, 12}}, {Output::classes, {1, 4, 6}}, {Output::boxes, {1, 5, 4}}};
  HeadSizes head{.config = std::make_shared<const DenseConfig>(whole_head()), .maps = maps};
  Outputs outputs;
  SUBCASE("whole images") {
    OutputWriter(outputs).reserve(request, config, 2, {2, 3}, 1, head);
    CHECK(outputs.num_images() == 2);
    CHECK(outputs[Output::depth].shape() == Shape{2, 1, 8, 12});
    CHECK(outputs[1][Output::depth].shape() == Shape{8, 12});
    CHECK(outputs[1][Output::depth].data() == outputs[Output::depth].data() + 8 * 12);
    CHECK(outputs[1][Output::classes].shape() == Shape{1, 4, 6});  // one class is a plane of its own
    CHECK(outputs[1][Output::boxes].shape() == Shape{5, 4});
    CHECK(outputs[0].head() == head.config.get());
    OutputWriter(outputs).set_frame(1, {.image = {30, 40}});
    CHECK(outputs[1].frame().image == ImageSize{30, 40});
    CHECK(outputs[1].of({.image = {3, 4}}).frame().image == ImageSize{3, 4});
  }
  SUBCASE("images of three windows") {
    head.num_windows = 3;
    OutputWriter(outputs).reserve(request, config, 6, {2, 3}, 1, head);
    CHECK(outputs.num_images() == 2);
    CHECK(outputs[1][Output::depth].shape() == Shape{3, 8, 12});
    CHECK(outputs[1][Output::depth].data() == outputs[Output::depth].data() + 3 * 8 * 12);
    CHECK(outputs[1][Output::classes].shape() == Shape{3, 1, 4, 6});
    CHECK(outputs[0][Output::boxes].shape() == Shape{3, 5, 4});
  }
  SUBCASE("an output that was not requested") {
    OutputWriter(outputs).reserve(Output::depth, config, 1, {2, 3}, 1, head);
    CHECK_ERROR(ErrorKind::argument, ("not requested", "sky"), static_cast<void>(outputs[0][Output::sky]));
  }
}

}  // namespace vit::internal
