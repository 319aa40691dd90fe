// The rotary positions of models, from configuration to factors, compared with the conformance vectors of
// data/positions: the choices that the vectors state, and those that the page of each family sets while it
// loads a checkpoint.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/conformance_vectors.h"
#include "tests/support/golden_models.h"
#include "vit/position/position.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::internal {
namespace {

using test::ConformanceCase;

bool is_of_configuration(const ConformanceCase& c) {
  const bool has_rule =
      c.coordinates == "index" || c.coordinates == "scaled_to_reference" || c.coordinates == "centered";
  return c.is_axial && has_rule && c.frames == 1 && !c.is_merged && c.axes == 2;
}

PositionConfig config_of(const ConformanceCase& c) {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.coordinate_offset = c.offset;
  config.reference_grid = c.reference;
  config.pairing =
      c.layout == "halves" || c.layout == "halves_by_axis" ? RopePairing::halves : RopePairing::neighbors;
  if (c.coordinates == "scaled_to_reference") config.coordinates = CoordinateRule::scaled_to_reference;
  if (c.coordinates == "centered") config.coordinates = CoordinateRule::centered;
  config.axis_order = c.axis_order == "x_then_y" ? AxisOrder::x_then_y : AxisOrder::y_then_x;
  config.theta = c.theta;
  config.angle_scale = c.angle_scale;
  if (c.second_axis_shift != 0.0) config.frequencies = AxisFrequencies::alternating;
  config.per_window = c.from_corner;
  config.class_angles = c.has("class_angles");
  return config;
}

/// Largest error of the cosines and sines of the patches.
double factor_error(const ConformanceCase& c, const PositionConfig& config) {
  std::vector<float> class_angles;
  if (config.class_angles) {
    for (const double angle : c.doubles("class_angles")) class_angles.push_back(static_cast<float>(angle));
  }
  const PositionShape shape{.embed_dim = c.head_dim,
                            .depth = 1,
                            .num_heads = 1,
                            .head_dim = c.head_dim,
                            .num_prefix = c.prefix,
                            .window = c.window};
  const PositionContext context =
      Position(config, shape, {.class_angles = class_angles}).build_context(c.grid);
  const position::RopeFactors factors = context.factors(0);
  const std::vector<double> cos = c.doubles("cos"), sin = c.doubles("sin");
  const std::size_t of_prefix = factors.num_patches * factors.pairs - cos.size();
  double worst = 0.0;
  for (std::size_t i = 0; i < cos.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(factors.cos[of_prefix + i]) - cos[i]));
    worst = std::max(worst, std::abs(static_cast<double>(factors.sin[of_prefix + i]) - sin[i]));
  }
  return worst;
}

constexpr double kRounded = 0x1p-24 + 1e-13;  // rounded once to float32, from angles up to 24

struct LoadedFamily {
  const char* folder;  // of data/golden
  const char* convention;
  bool has_own_grid = false;  // coordinates are scaled to the grid or window of the model
};

constexpr LoadedFamily kFamilies[] = {
    {"models/rope-axial", "rope-vit"},
    {"models/rope-axial-ape", "rope-vit"},
    {"models/timm-eva02", "eva02"},
    {"models/timm-pe-core", "perception-encoder-timm", true},
    {"models/hf-dinov3", "dinov3"},
    {"towers/sapiens2", "dinov3"},
    {"towers/qwen3-vl", "qwen2-vl"},
    {"towers/qwen2.5-vl-shards", "qwen2-vl"},
    {"towers/glm5", "qwen2-vl"},
    {"towers/ernie4.5-vl", "qwen2-vl"},
    {"towers/exaone4.5", "qwen2-vl"},
    {"towers/mistral3", "pixtral"},
    {"towers/rice", "mlcd"},
    {"towers/sam3", "sam3", true},
    {"towers/sam3", "sam3-windows", true},
};

}  // namespace

TEST_CASE("position: the configuration of every published axial family agrees with the conformance vectors") {
  for (const ConformanceCase& c : test::conformance_cases()) {
    if (!is_of_configuration(c)) continue;
    CAPTURE(c.name);
    CAPTURE(c.title);
    CHECK(factor_error(c, config_of(c)) <= kRounded);
  }
}

TEST_CASE("position: loaded families rotate as their conventions") {
  const std::vector<ConformanceCase> cases = test::conformance_cases();
  for (const LoadedFamily& family : kFamilies) {
    CAPTURE(family.folder);
    CAPTURE(family.convention);
    const std::filesystem::path folder = test::data_path(std::string("golden/") + family.folder);
    const PositionConfig loaded = load_checkpoint(folder, test::options_of(folder)).config.position;
    std::size_t num_held = 0;
    for (const ConformanceCase& c : cases) {
      if (c.name != family.convention || c.title != "plain") continue;
      CAPTURE(c.title);
      PositionConfig config = loaded;  // only the rotation
      config.added = AddedTable::none;
      config.added_prefix_rows = 0;
      config.between_blocks = false;
      config.rope_scaling.reset();
      if (family.has_own_grid)
        config.reference_grid = c.window != 0 ? GridSize{c.window, c.window} : c.reference;
      config.per_window = loaded.per_window && c.window != 0;
      CHECK(factor_error(c, config) <= kRounded);
      config.axis_order =
          loaded.axis_order == AxisOrder::x_then_y ? AxisOrder::y_then_x : AxisOrder::x_then_y;
      CHECK(factor_error(c, config) > 0.01);
      CHECK(loaded.pairing == config_of(c).pairing);  // factors do not show the channels of a pair
      num_held += 1;
    }
    CHECK(num_held == 1);
  }
}

}  // namespace vit::internal
