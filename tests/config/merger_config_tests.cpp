// The steps of a merger: checks of validate(), and the fields by which files name them.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "vit/config.h"
#include "vit/config/merger_fields.h"

namespace vit::internal {
namespace {

ModelConfig with_merger(const std::function<void(MergerConfig&)>& change) {
  ModelConfig config;
  MergerConfig& merger = config.merger.emplace();
  merger.cells = {.size = 2, .token_norm = NormConfig{}};
  merger.add(MergerPlace::reduce, MergerLinear{.dim = 8});
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = 16, .out_dim = 4});
  change(merger);
  return config;
}

std::string refusal(const std::function<void(MergerConfig&)>& change) {
  const auto error = test::error_of([&] { validate(with_merger(change)); });
  return error ? std::string(error->message()) : "accepted";
}

void check_fields(const MergerFields& fields) {
  const std::optional<MergerConfig> merger = merger_of(fields);
  REQUIRE(merger.has_value());
  CHECK(merger_fields(merger) == fields);
}

}  // namespace

TEST_CASE("config: steps of a merger that contradict each other are refused") {
  using M = MergerConfig;
  CHECK(refusal([](M&) {}) == "accepted");
  CHECK(refusal([](M& m) { m.blocks = {11}; }) == "accepted");
  CHECK(test::contains(refusal([](M& m) {
                         m.blocks = {1, 2};
                       }),
                       "tokens of several blocks are not normalized"));
  CHECK(test::contains(refusal([](M& m) { m.blocks = {3, 12}; }), "after block 12 of 12"));
  CHECK(test::contains(refusal([](M& m) { m.blocks = {3}, m.tokens_after = 1; }), "gives no tokens"));
  CHECK(test::contains(refusal([](M& m) {
                         m.steps.pop_back();
                         m.add(MergerPlace::middle_softmax, MergerSoftmax{.dim = 7});
                       }),
                       "softmax_dim of the merger must be 8 to 262144, got 7"));
  CHECK(test::contains(refusal([](M& m) { m.cells.size = 0; }), "cells of size 0"));
  CHECK(test::contains(refusal([](M& m) { m.cells.size = 65; }),
                       "cells of the merger must be 1 to 64, got 65"));
  CHECK(test::contains(refusal([](M& m) { m.cells.size = 3; }), "cannot be cut into cells of 3 x 3"));
  CHECK(
      test::contains(refusal([](M& m) { m.cells.scale = std::numeric_limits<float>::infinity(); }), "scale"));
  CHECK(
      test::contains(refusal([](M& m) { m.cells.token_norm->eps = -1.0f; }), "epsilon of the merger's norm"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::cell_norm, MergerNorm{}); }), "not in order"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::mlp, MergerMlp{}); }), "not in order"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::projection, MergerNorm{}); }), "another kind"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::out_norm, MergerLinear{.dim = 4}); }),
                       "another kind"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::projection, MergerLinear{}); }),
                       "projection_dim of the merger must be 1 to 262144, got 0"));
  CHECK(test::contains(refusal([](M& m) { m.add(MergerPlace::out_norm, MergerNorm{.norm = {.eps = 1.0f}}); }),
                       "epsilon of the norm of the merger's output"));
  CHECK(test::contains(refusal([](M& m) { std::get<MergerMlp>(m.steps[1].layer).hidden_dim = 1u << 30; }),
                       "hidden_dim of the merger"));
  CHECK(test::contains(refusal([](M& m) {
                         m.steps = {{MergerPlace::cell_norm, MergerNorm{}}};
                         m.cells.token_norm.reset();
                         m.cells.pads = true;
                       }),
                       "cells padded with zeros"));
  CHECK(test::contains(refusal([](M& m) {
                         m.cells.token_norm.reset();
                         m.add(MergerPlace::later_cells, MergerCells{.size = 2});
                       }),
                       "later cells are cells of single tokens"));
  CHECK(test::contains(refusal([](M& m) {
                         m.cells = {};
                         m.steps = {{MergerPlace::later_cells, MergerCells{.size = 65}}};
                       }),
                       "later_size of the merger must be 1 to 64, got 65"));
  CHECK(test::contains(refusal([](M& m) {
                         m.cells = {};
                         m.steps = {{MergerPlace::later_cells, MergerCells{.size = 3}}};
                       }),
                       "cannot be cut into cells of 3 x 3"));
  CHECK(test::contains(refusal([](M& m) {
                         m.cells = {};
                         m.steps = {{MergerPlace::convolution, MergerConvolution{.dim = 4, .bias = true}}};
                       }),
                       "has no bias"));
  CHECK(test::contains(refusal([](M& m) { m.tokens_after = 3; }), "step 3 of the 2"));
  CHECK(test::contains(refusal([](M& m) { m.deepstack = {12}; }), "after block 12 of 12"));
  CHECK(test::contains(refusal([](M& m) {
                         m.deepstack = {1};
                         m.steps.pop_back();
                       }),
                       "mergers between blocks need a hidden_dim"));
}

TEST_CASE("config: the fields of a merger name the steps that they are made of") {
  CHECK_FALSE(merger_of({}).has_value());
  CHECK(merger_fields(std::nullopt) == MergerFields{});
  check_fields({.size = 2,
                .norm = FirstNorm::token,
                .norm_kind = NormKind::rms,
                .hidden_dim = 8,
                .out_dim = 3,
                .deepstack = {1, 2}});
  check_fields({.size = 3, .norm = FirstNorm::cell, .norm_eps = 1e-3f, .hidden_dim = 8, .out_dim = 3});
  check_fields({.size = 3,
                .cells = CellRule::mean,
                .cell_scale = 2.0f,
                .standardize = true,
                .projection_dim = 5,
                .projection_norm = true,
                .projection_norm_eps = 1e-4f,
                .tokens = TokenStage::reduced});
  check_fields({.size = 2,
                .reduced_dim = 6,
                .reduced_bias = true,
                .middle = true,
                .middle_norm_eps = 1e-2f,
                .hidden_dim = 8,
                .out_dim = 6,
                .gated = true,
                .mlp_bias = false,
                .activation = Activation::silu,
                .tokens = TokenStage::reduced});
  check_fields({.size = 2,
                .hidden_dim = 8,
                .out_dim = 8,
                .out_activation = Activation::gelu,
                .projection_dim = 4,
                .tokens = TokenStage::merged});
  check_fields({.size = 2,
                .pads = true,
                .hidden_dim = 8,
                .out_dim = 8,
                .mlp_norm = true,
                .second_mlp = true,
                .mlp_norm_eps = 1e-4f,
                .projection_dim = 4,
                .projection_bias = true,
                .out_norm = true,
                .out_norm_eps = 1e-3f});
  check_fields({.size = 1,
                .strided_dims = {8, 16},
                .strided_bias = true,
                .projection_dim = 4,
                .out_norm = true,
                .out_norm_plain = true});
  check_fields({.size = 1,
                .hidden_dim = 8,
                .out_dim = 6,
                .later_size = 2,
                .later_cells = CellRule::mean,
                .second_mlp = true,
                .second_hidden_dim = 5,
                .second_out_dim = 7,
                .second_norm_missing = true});
  check_fields({.size = 2,
                .pads = true,
                .reduced_dim = 6,
                .middle_norm_eps = 1e-2f,
                .softmax_dim = 9,
                .projection_dim = 4,
                .blocks = {3, 1}});
}

TEST_CASE("config: the widths of a merger are those of its steps") {
  const ModelConfig config = with_merger([](MergerConfig& m) {
    m.add(MergerPlace::mlp_norm, MergerNorm{});
    m.add(MergerPlace::projection, MergerLinear{.dim = 7});
  });
  const MergerConfig& merger = *config.merger;
  CHECK(merger.cell_width(12) == 48);
  for (const auto& [count, width] : {std::pair(0, 48), std::pair(1, 8), std::pair(2, 4), std::pair(3, 4)})
    CHECK(merger.width_after(static_cast<std::size_t>(count), 12) == static_cast<std::size_t>(width));
  CHECK(merger.width(12) == 7);
  const MergerConfig between = deepstack_merger(merger);
  CHECK_FALSE(between.cells.token_norm.has_value());
  REQUIRE(between.steps.size() == 2);
  CHECK(between.steps[0].place == MergerPlace::cell_norm);
  CHECK(between.width(12) == 4);
}

}  // namespace vit::internal
