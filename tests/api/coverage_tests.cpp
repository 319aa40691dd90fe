// What the golden models must show, so that a clone without shared data compares every convention of rotary
// positions and every head with numbers of the reference libraries.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "vit/config.h"

namespace vit {
using namespace internal;
namespace {

struct Convention {
  const char* name;
  bool (*is_of)(const ModelConfig& config);
};

bool is_axial(const ModelConfig& c, AxisOrder order, RopePairing pairing) {
  const PositionConfig& p = c.position;
  return p.rope == RopeKind::axial && p.axis_order == order && p.pairing == pairing;
}

bool has_coordinates(const ModelConfig& c, CoordinateRule rule) {
  return c.position.rope == RopeKind::axial && c.position.coordinates == rule;
}

constexpr Convention kConventions[] = {
    {"rotary: x before y, neighboring channels",
     [](const ModelConfig& c) { return is_axial(c, AxisOrder::x_then_y, RopePairing::neighbors); }},
    {"rotary: y before x, neighboring channels",
     [](const ModelConfig& c) { return is_axial(c, AxisOrder::y_then_x, RopePairing::neighbors); }},
    {"rotary: y before x, halves",
     [](const ModelConfig& c) { return is_axial(c, AxisOrder::y_then_x, RopePairing::halves); }},
    {"rotary: indices", [](const ModelConfig& c) { return has_coordinates(c, CoordinateRule::index); }},
    {"rotary: coordinates scaled to a reference grid",
     [](const ModelConfig& c) { return has_coordinates(c, CoordinateRule::scaled_to_reference); }},
    {"rotary: centered coordinates",
     [](const ModelConfig& c) { return has_coordinates(c, CoordinateRule::centered); }},
    {"rotary: coordinates with an offset",
     [](const ModelConfig& c) { return c.position.coordinate_offset != 0.0; }},
    {"rotary: stored periods",
     [](const ModelConfig& c) { return c.position.frequencies == AxisFrequencies::stored; }},
    {"rotary: mixed", [](const ModelConfig& c) { return c.position.rope == RopeKind::mixed; }},
    {"rotary next to a learned table",
     [](const ModelConfig& c) {
       return c.position.rope != RopeKind::none && c.position.added != AddedTable::none;
     }},
    {"table: patches", [](const ModelConfig& c) { return c.position.added == AddedTable::patches; }},
    {"table: prefix and patches",
     [](const ModelConfig& c) { return c.position.added == AddedTable::prefix_and_patches; }},
    {"table: bicubic with antialias",
     [](const ModelConfig& c) {
       return c.position.added != AddedTable::none &&
              c.position.resampling == TableResampling::bicubic_antialias;
     }},
    {"table: bicubic",
     [](const ModelConfig& c) {
       return c.position.added != AddedTable::none && c.position.resampling == TableResampling::bicubic;
     }},
    {"table: cut from that of a square",
     [](const ModelConfig& c) { return c.position.table_grid == TableGrid::square; }},
    {"registers", [](const ModelConfig& c) { return c.tokens.num_registers != 0; }},
    {"no class token", [](const ModelConfig& c) { return !c.tokens.class_token; }},
    {"norm before the blocks", [](const ModelConfig& c) { return c.encoder.norm_pre; }},
    {"pixels are normalized inside",
     [](const ModelConfig& c) { return c.patch.pixels == PixelRule::stored; }},
    {"norm on projected patches", [](const ModelConfig& c) { return c.patch.embed_norm; }},
    {"RMSNorm", [](const ModelConfig& c) { return c.encoder.norm.kind == NormKind::rms; }},
    {"RMSNorm of queries and keys",
     [](const ModelConfig& c) { return c.attention.qk_norm == NormKind::rms; }},
    {"LayerNorm of queries and keys",
     [](const ModelConfig& c) { return c.attention.qk_norm == NormKind::layer; }},
    {"branches side by side", [](const ModelConfig& c) { return c.encoder.parallel; }},
    {"gated MLP", [](const ModelConfig& c) { return c.mlp.kind == MlpKind::gated; }},
    {"norm inside the MLP", [](const ModelConfig& c) { return c.mlp.norm; }},
    {"layer scale", [](const ModelConfig& c) { return c.encoder.layer_scale; }},
    {"head: class token", [](const ModelConfig& c) { return c.head.pooling == Pooling::class_token; }},
    {"head: mean of the patches", [](const ModelConfig& c) { return c.head.pooling == Pooling::patch_mean; }},
    {"head: mean of class and distillation token",
     [](const ModelConfig& c) { return c.head.pooling == Pooling::class_and_distillation; }},
    {"head: mean of the class tokens",
     [](const ModelConfig& c) { return c.head.pooling == Pooling::prefix_mean; }},
    {"head: class tokens side by side",
     [](const ModelConfig& c) { return c.head.pooling == Pooling::prefix_tokens; }},
    {"head: attention pooling", [](const ModelConfig& c) { return c.head.pooling == Pooling::attention; }},
    {"head: norm after pooling", [](const ModelConfig& c) { return c.head.pooled_norm; }},
    {"head: pooler", [](const ModelConfig& c) { return c.head.pooler; }},
    {"head: projection", [](const ModelConfig& c) { return c.head.projection.has_value(); }},
    {"classifier: class token and mean of the patches",
     [](const ModelConfig& c) {
       return c.head.num_classes != 0 && c.head.input == HeadInput::class_and_patch_mean;
     }},
    {"classifier: one for each of class and distillation token",
     [](const ModelConfig& c) {
       return c.head.num_classes != 0 && c.head.input == HeadInput::class_and_distillation;
     }},
};

}  // namespace

TEST_CASE("model: the golden models show every rotary convention and every head") {
  std::vector<ModelConfig> configs;
  for (const auto& folder : test::folders_in(test::data_path("golden/models")))
    configs.push_back(load_checkpoint(folder, test::options_of(folder)).config);
  for (const Convention& convention : kConventions) {
    CAPTURE(convention.name);
    CHECK(std::ranges::any_of(configs, convention.is_of));
  }
}

}  // namespace vit
