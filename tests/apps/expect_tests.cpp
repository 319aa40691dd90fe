// vit info --expect: a layout file that is wrong in a choice that no tensor determines is found and
// corrected.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"

namespace vit::test {
namespace {

using namespace internal;

/// The golden model with rotation, gated MLP and registers, pixels and the logits of its layout.
class OwnModel {
 public:
  OwnModel() : layout_(read_text(data_path("golden/layouts/own-rope/layout.json"))) {
    Rng random(91);
    const Tensor<float> pixels = random.tensor<float>(Shape{2, 3, 24, 24});
    write_npy(folder_ / "pixels.npy", pixels);
    write_layout(layout_);
    const RunResult run = run_vit({"embed", folder_ / "pixels.npy", "--model", model(), "--layout", layout(),
                                   "--features", "logits", "--output", folder_ / "logits.npy"});
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  }
  std::string model() const { return data_path("golden/layouts/own-rope/model.pth").string(); }
  std::string layout() const { return folder_ / "layout.json"; }
  const std::string& text() const { return layout_; }
  void write_layout(const std::string& text) const { write_text(layout(), text); }

  RunResult expect(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"info",
                                       "--model",
                                       model(),
                                       "--layout",
                                       layout(),
                                       "--expect",
                                       folder_ / "pixels.npy",
                                       folder_ / "logits.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  }

 private:
  TestFolder folder_;
  std::string layout_;
};

}  // namespace

TEST_CASE("expect: the layout as it is agrees") {
  const OwnModel model;
  const RunResult result = model.expect({"--json"});
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  const Json found = parse_json(result.out, "stdout");
  CHECK(found.at("agrees").as_bool());
  CHECK(found.at("feature").as_string() == "logits");
  CHECK(found.at("error").as_double() < 1e-5);
  CHECK(found.at("try").size() == 0);
}

TEST_CASE("expect: each wrong choice is found, and corrected") {
  const OwnModel model;
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"("pairing": "halves")", R"("pairing": "neighbors")"},
      {R"("axis_order": "y_then_x")", R"("axis_order": "x_then_y")"},
      {R"("coordinates": "index")", R"("coordinates": "centered")"},
      {R"("theta": 30)", R"("theta": 10000)"},
      {R"("activation": "silu")", R"("activation": "gelu")"},
      {R"("rows": [0, 2])", R"("rows": [2, 2])"},  // made [1, 2] below: gate and fc1 exchanged
      {R"("trunk.stage.{block}.attn.query.*",
      "trunk.stage.{block}.attn.key.*")",
       R"("trunk.stage.{block}.attn.key.*",
      "trunk.stage.{block}.attn.query.*")"},
      {R"("trunk.stage.{block}.attn.key.*",
      "trunk.stage.{block}.attn.value.*")",
       R"("trunk.stage.{block}.attn.value.*",
      "trunk.stage.{block}.attn.key.*")"},
      {R"("pooling": "patch_mean")", R"("pooling": "prefix_mean")"}};
  for (const auto& mistake : mistakes) {
    const auto& right = mistake.first;
    const auto& wrong = mistake.second;
    CAPTURE(wrong);
    std::string layout = replaced(model.text(), right, wrong);
    if (wrong == R"("rows": [2, 2])")
      layout =
          replaced(replaced(layout, R"("rows": [1, 2])", R"("rows": [0, 2])"), wrong, R"("rows": [1, 2])");
    model.write_layout(layout);
    const RunResult result = model.expect({"--json"});
    CHECK_MESSAGE(result.exit_code == 1, result.err);
    const Json found = parse_json(result.out, "stdout");
    CHECK(!found.at("agrees").as_bool());
    REQUIRE(found.at("try").size() > 0);
    CHECK(found.at("try")[0].at("error").as_double() < 1e-5);
    CHECK(found.at("error").as_double() > 1e-3);

    // The corrected layout is one that agrees.
    const std::size_t start = result.out.find("\"layout\":") + 9;
    std::size_t depth = 0, end = start;
    do {
      depth += result.out[end] == '{' ? 1 : 0;
      depth -= result.out[end] == '}' ? 1 : 0;
      ++end;
    } while (depth > 0);
    model.write_layout(result.out.substr(start, end - start));
    CHECK(model.expect().exit_code == 0);
  }
}

TEST_CASE("expect: two wrong choices are found in pairs") {
  const OwnModel model;
  model.write_layout(replaced(replaced(model.text(), R"("pairing": "halves")", R"("pairing": "neighbors")"),
                              R"("activation": "silu")", R"("activation": "relu")"));
  const RunResult result = model.expect({"--json"});
  CHECK(result.exit_code == 1);
  const Json best = parse_json(result.out, "stdout").at("try")[0];
  CHECK(best.at("change").at("pairing").as_string() == "halves");
  CHECK(best.at("change").at("activation").as_string() == "silu");
  CHECK(best.at("error").as_double() < 1e-5);
  const RunResult words = model.expect();
  CHECK(contains(words.out, "corrected layout"));
}

TEST_CASE("expect: wrong usage") {
  const OwnModel model;
  CHECK(run_vit({"info", "--expect", "a.npy", "b.npy"}).exit_code == 2);
  CHECK(run_vit({"info", "--model", model.model(), "--feature", "pooled"}).exit_code == 2);
  const RunResult missing =
      run_vit({"info", "--model", model.model(), "--layout", model.layout(), "--expect", "a.npy", "b.npy"});
  CHECK(missing.exit_code == 1);
  CHECK(missing.num_errors() == 1);
  CHECK(contains(missing.err, "a.npy"));
}

}  // namespace vit::test
