#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/errors.h"
#include "vit/base/error.h"
#include "vit/config.h"

namespace vit {

TEST_CASE("config: every illegal value is refused with its name") {
  const auto message = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config;
    validate(config);
    change(config);
    const auto error = test::error_of([&] { validate(config); });
    return error ? std::string(error->message()) : "accepted";
  };
  using C = ModelConfig;
  CHECK(message([](C& c) { c.patch.size = 0; }).find("patch_size") != std::string::npos);
  CHECK(message([](C& c) { c.image.height = 15; }).find("image height") != std::string::npos);
  CHECK(message([](C& c) { c.image.width = 1u << 30; }).find("image width") != std::string::npos);
  CHECK(message([](C& c) {
          c.patch.size = 1, c.image.height = 1025, c.image.width = 1024;
        }).find("patches of the native grid must be 1 to 1048576, got 1049600") != std::string::npos);
  CHECK(message([](C& c) { c.patch.size = 1, c.image.height = c.image.width = 1024; }) == "accepted");
  CHECK(message([](C& c) { c.embed_dim = 0; }).find("embed_dim") != std::string::npos);
  CHECK(message([](C& c) { c.encoder.depth = 1'000'000'000; }).find("depth") != std::string::npos);
  CHECK(message([](C& c) { c.attention.num_heads = 0; }).find("num_heads") != std::string::npos);
  CHECK(message([](C& c) { c.attention.num_heads = 7; }).find("not divisible") != std::string::npos);
  CHECK(message([](C& c) { c.attention.num_heads = 1; }).find("head width") != std::string::npos);
  CHECK(message([](C& c) { c.mlp.dim = 0; }).find("mlp_dim") != std::string::npos);
  CHECK(message([](C& c) { c.tokens.num_registers = 1u << 20; }).find("register") != std::string::npos);
  CHECK(message([](C& c) { c.encoder.norm.eps = std::nanf(""); }).find("epsilon") != std::string::npos);
  CHECK(message([](C& c) { c.tokens.class_token = false; }).find("class token") != std::string::npos);
  CHECK(message([](C& c) {
          c.attention.windows = {.size = 0, .global_blocks = {1}};
        }).find("global blocks in a model without windows") != std::string::npos);
  CHECK(message([](C& c) { c.attention.windows = {.size = 2}; }).find("prefix tokens") != std::string::npos);
  const auto counted = [](auto change) {
    return [change](C& c) {
      c.attention.windows = WindowConfig{.per_side = 2, .class_tokens = true};
      c.head.pooling = Pooling::none;
      change(c);
    };
  };
  CHECK(message(counted([](C&) {})) == "accepted");
  CHECK(message(counted([](C& c) { c.attention.windows->per_side = 65; })).find("windows to a side") !=
        std::string::npos);
  CHECK(message(counted([](C& c) { c.attention.windows->size = 2; })).find("divided evenly") !=
        std::string::npos);
  CHECK(message(counted([](C& c) { c.tokens.num_registers = 1; })).find("only token before") !=
        std::string::npos);
  CHECK(message(counted([](C& c) { c.attention.windows->class_tokens = false; })).find("only patches") !=
        std::string::npos);
  CHECK(message([](C& c) { c.patch.step.rows = 10; }).find("one size of images") != std::string::npos);
  CHECK(message([](C& c) { c.patch.step.rows = 10, c.image.fixed_size = true; }) == "accepted");
  CHECK(message([](C& c) {
          c.patch.step.columns = 17, c.image.fixed_size = true;
        }).find("patch_column_step") != std::string::npos);
  CHECK(message([](C& c) {
          c.tokens.late = {.count = 0, .masked_blocks = {1}};
        }).find("masked blocks without late tokens") != std::string::npos);
  CHECK(message([](C& c) { c.tokens.late = {.count = 5000}; }).find("num_late_tokens") != std::string::npos);
  CHECK(message([](C& c) { c.head.projection.emplace(); }).find("projection_dim") != std::string::npos);
  CHECK(message([](C& c) { c.head.joint.emplace(); }).find("joint_depth") != std::string::npos);
  CHECK(message([](C& c) {
          c.head.num_classes = 3, c.head.labels = {"a", "b"};
        }).find("class names") != std::string::npos);
  CHECK(message([](C& c) { c.head.pooling = Pooling::class_and_distillation; }).find("distillation") !=
        std::string::npos);
  CHECK(message([](C& c) { c.head.pooling = Pooling::none, c.head.num_classes = 3; }).find("pooled") !=
        std::string::npos);
  CHECK(message([](C& c) { c.head.pooling = Pooling::attention; }).find("attention pooling") !=
        std::string::npos);
  CHECK(message([](C& c) { c.position.added = AddedTable::patches; }).find("grid") != std::string::npos);
  const auto rope = [](auto change) {
    return [change](C& c) {
      c.position.rope = RopeKind::axial;
      change(c);
    };
  };
  CHECK(message(rope([](C&) {})) == "accepted");
  CHECK(message(rope([](C& c) { c.patch.size = 1, c.image.height = c.image.width = 1024; })) == "accepted");
  const auto mixed = [&](std::size_t edge) {  // factors of 12 blocks, 768 for each patch
    return message(rope([edge](C& c) {
      c.position.rope = RopeKind::mixed;
      c.patch.size = 1, c.image.height = c.image.width = edge;
    }));
  };
  CHECK(mixed(120) == "accepted");
  CHECK(mixed(121).find("121 x 121 patches needs 9216 rotation factors") != std::string::npos);
  CHECK(message(rope([](C& c) { c.embed_dim = 12 * 62; })).find("divisible by 4") != std::string::npos);
  CHECK(message(rope([](C& c) { c.position.theta = 0; })).find("theta") != std::string::npos);
  CHECK(message(rope([](C& c) { c.position.theta = 1e300; })).find("theta") != std::string::npos);
  CHECK(message(rope([](C& c) {
          c.position.rope_scaling = RopeScaling{.rule = RopeScalingRule::linear, .factor = -1};
        })).find("factor must be") != std::string::npos);
  CHECK(message(rope([](C& c) {
          c.position.coordinate_offset = std::numeric_limits<double>::infinity();
        })).find("offset") != std::string::npos);
  CHECK(message(rope([](C& c) {
          c.position.coordinates = CoordinateRule::scaled_to_reference;
        })).find("reference grid") != std::string::npos);
}

TEST_CASE(
    "config: relative positions, completed windows and pooled visual tokens that make no sense are refused") {
  const auto message = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config;
    config.position.relative = RelativeConfig{.grid = {14, 14}};
    validate(config);
    change(config);
    const auto error = test::error_of([&] { validate(config); });
    return error ? std::string(error->message()) : "accepted";
  };
  using C = ModelConfig;
  const auto axes = [](auto change) {
    return [change](C& c) {
      c.position.relative->kind = RelativeKind::axes;
      c.tokens.class_token = false;
      c.head.pooling = Pooling::patch_mean;
      change(c);
    };
  };
  const auto has = [&](const std::function<void(C&)>& change, const char* part) {
    return test::contains(message(change), part);
  };
  CHECK(message(axes([](C&) {})) == "accepted");
  CHECK(message(axes([](C& c) { c.attention.windows = WindowConfig{.size = 5, .pads = true}; })) ==
        "accepted");
  CHECK(has([](C& c) { c.position.relative->grid = {0, 14}; }, "relative positions' grid"));
  CHECK(has([](C& c) { c.position.relative->kind = RelativeKind::mlp; }, "mlp_dim of relative positions"));
  CHECK(has([](C& c) { c.tokens.num_registers = 4; }, "5 prefix tokens"));
  CHECK(
      has([](C& c) { c.patch.size = 1, c.image.height = c.image.width = 512; }, "at most 134217728 in all"));
  CHECK(has(axes([](C& c) { c.tokens.class_token = true; }), "1 prefix tokens"));
  CHECK(has(axes([](C& c) { c.position.relative->scope = RelativeScope::shared; }), "of each block"));
  CHECK(has(axes([](C& c) { c.attention.windows = WindowConfig{.size = 5}; }), "complete windows"));
  CHECK(has(axes([](C& c) { c.attention.windows = WindowConfig{.size = 257, .pads = true}; }),
            "256 are accepted"));
  CHECK(has(axes([](C& c) {
              c.attention.windows = WindowConfig{.size = 5, .pads = true};
              c.position.rope = RopeKind::axial;
            }),
            "without rotary positions"));
  CHECK(has([](C& c) { c.attention.differential = true; }, "without rotary or relative positions"));
  for (const BlockNorms norms : {BlockNorms::after, BlockNorms::of_sums})
    CHECK(has(
        [norms](C& c) {
          c.encoder.parallel = true;
          c.encoder.block_norms = norms;
        },
        "post_norm"));
  CHECK(message([](C& c) { c.encoder.parallel = true; }) == "accepted");
  CHECK(has([](C& c) { c.head.pools_merged = true; }, "need a merger"));
  CHECK(has(
      [](C& c) {
        c.merger.emplace().add(MergerPlace::convolution, MergerConvolution{.dim = 8, .stride = 3});
      },
      "stride of the merger's convolution"));
}

}  // namespace vit
