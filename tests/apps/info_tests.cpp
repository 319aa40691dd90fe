// vit info as scripts see it.
#include <doctest/doctest.h>

#include <string>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("apps: info describes machine and model") {
  const RunResult machine = run_vit({"info", "--json"});
  CHECK(machine.exit_code == 0);
  const Json json = parse_json(machine.out, "info");
  CHECK(json.at("kernels").at("available").size() >= 1);
  CHECK(!json.find("model"));
  CHECK(contains(run_vit({"info", "--kernels"}).out, "reference"));
  CHECK(contains(run_vit({"info", "--kernels"}).out, "--dtype bfloat16: "));
  const std::string listed = run_vit({"info", "--kernels", "--model", golden_model("rope-axial")}).out;
  CHECK(contains(listed, "* chosen: "));
  CHECK(contains(listed, "architecture  "));
  const std::string measured = run_vit({"info", "--kernels", "--peak", "--threads", "1"}).out;
  CHECK(contains(measured, "* chosen: "));
  CHECK(contains(measured, "GFLOP/s"));
  CHECK(json.at("kernels").at("available")[0].at("bfloat16").as_string().size() > 0);
  for (const char* const name : {":portable", ":portable:portable", "reference:portable", "none"}) {
    const RunResult named = run_vit({"info", "--json"}, {.environment = {{"VIT_KERNELS", name}}});
    CAPTURE(named.err);
    CHECK(named.num_errors() == (named.exit_code == 0 ? 0 : 1));  // sse4 has none that are portable
    CHECK(named.exit_code <= 1);
  }
  CHECK(contains(run_vit({"info", "--json"}, {.environment = {{"VIT_KERNELS", "reference"}}}).out,
                 "VIT_KERNELS"));

  const RunResult model = run_vit({"info", "--model", golden_model("rope-axial"), "--tensors", "--json"});
  CHECK(model.exit_code == 0);
  const Json facts = parse_json(model.out, "info").at("model");
  CHECK(facts.at("family").as_string().size() > 0);
  CHECK(facts.at("config").at("embed_dim").as_size() == 36);
  CHECK(facts.at("config").at("position").at("rope").as_string() == "axial");
  CHECK(facts.at("preprocessing_steps").size() >= 3);
  std::size_t parameters = 0;
  for (std::size_t i = 0; i < facts.at("tensors").size(); ++i) {
    const Json tensor = facts.at("tensors")[i];
    if (tensor.at("use").as_string().starts_with("ignored")) continue;
    std::size_t elements = 1;
    for (std::size_t d = 0; d < tensor.at("shape").size(); ++d) elements *= tensor.at("shape")[d].as_size();
    parameters += elements;
  }
  CHECK(facts.at("parameters").as_size() == parameters);
  // 9 patches and a class token, 36 wide, 54 hidden, 2 blocks, 6 classes
  const double expected =
      2.0 * 9 * 36 * 192 + 2 * (2.0 * 10 * 36 * 144 + 4.0 * 10 * 10 * 36 + 4.0 * 10 * 36 * 54) + 2.0 * 36 * 6;
  CHECK(facts.at("flops_per_image").at("total").as_double() == expected);
  const RunResult text = run_vit({"info", "--model", golden_model("rope-axial")});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "crop the center 24 x 24"));
}

TEST_CASE("apps: info knows the heads that give maps") {
  struct Head {
    const char* folder;
    const char* kind;
    const char* output;
  };
  for (const Head& head :
       {Head{"dense/hf-depth-anything", "dpt", "depth"}, Head{"dense/hf-eomt", "masks", "masks_of_segments"},
        Head{"boxes/yolos", "boxes", "classes_of_boxes"}, Head{"boxes/owlv2", "boxes", "vectors_of_boxes"},
        Head{"boxes/vitpose", "heatmaps", "heat_maps_of_keypoints"}}) {
    CAPTURE(head.folder);
    const std::string folder = data_path(std::string("golden/") + head.folder).string();
    const RunResult run = run_vit({"info", folder, "--tensors", "--json"});
    REQUIRE(run.exit_code == 0);
    const Json facts = parse_json(run.out, "info").at("model");
    const Json found = facts.at("dense_head"), branch = found.at("branches")[0];
    CHECK(branch.at("kind").as_string() == head.kind);
    CHECK(branch.at("outputs").at(head.output).at("channels").as_size() != 0);
    CHECK(branch.at("taps").size() != 0);
    CHECK(found.at("flops").at("total").as_double() > 0.0);
    std::size_t parameters = 0, tensors = 0;
    for (std::size_t i = 0; i < facts.at("tensors").size(); ++i) {
      const Json tensor = facts.at("tensors")[i];
      if (!tensor.at("use").as_string().starts_with("dense.")) continue;
      std::size_t elements = 1;
      for (std::size_t d = 0; d < tensor.at("shape").size(); ++d) elements *= tensor.at("shape")[d].as_size();
      parameters += elements;
      ++tensors;
    }
    CHECK(found.at("tensors").as_size() == tensors);
    CHECK(found.at("parameters").as_size() == parameters);
    CHECK(parameters != 0);
    CHECK(contains(run_vit({"info", folder}).out, text("branch.0.kind: ", head.kind)));
  }
  const RunResult plain = run_vit({"info", "--model", golden_model("rope-axial"), "--json"});
  CHECK(!parse_json(plain.out, "info").at("model").find("dense_head"));
}
