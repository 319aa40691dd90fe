// Banks as models of the server: the results of vit anomaly score.
#include <doctest/doctest.h>

#include <string>

#include "apps/vit/ground/base64.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("serve: a bank is a model, whose scores and maps are those of vit anomaly score") {
  const TestFolder folder;
  for (unsigned i = 0; i < 4; ++i)
    write_picture(folder / ("good/" + std::to_string(i) + ".ppm"), 40, 48, 2 * i);
  const std::string file = folder / "new.ppm", bank = folder / "bank.safetensors";
  write_picture(file, 44, 40, 9);
  REQUIRE(run_vit({"anomaly", "fit", folder / "good", "--size", "native", "--output", bank}).exit_code == 0);
  const RunResult run = run_vit({"anomaly", "score", bank, file, "--format", "json", "--maps",
                                 folder / "maps/", "--map-formats", "npy"});
  REQUIRE(run.exit_code == 0);
  const Json printed = parse_json(lines_of(run.out).at(0), "stdout");
  const ServeProcess server({"--model", "part=" + bank, "--model", "vit=" + data_path("model").string()});
  const auto post = [&](const std::string& more) {
    return server.post("/v1/anomaly", R"({"input": ")" + data_uri(file) + "\"" + more + "}");
  };
  const HttpAnswer answer = post(R"(, "format": "npy")");
  CAPTURE(answer.body.substr(0, 300));
  REQUIRE(answer.status == 200);
  CHECK(answer.json().at("model").as_string() == "part");
  const Json one = answer.json().at("data")[0];
  CHECK(one.at("score").as_double() == printed.at("score").as_double());
  CHECK(one.at("threshold").as_double() == printed.at("threshold").as_double());
  CHECK(one.at("anomalous").as_bool() == printed.at("anomalous").as_bool());
  CHECK(app::decode_base64(one.at("map").as_string()) == read_text(folder / "maps/new.npy"));
  CHECK(post("").json().at("data")[0].at("map_max").as_double() ==
        doctest::Approx(2 * printed.at("threshold").as_double()));
  CHECK(post(R"(, "threshold": 1e6, "format": "json")").json().at("data")[0].at("anomalous").as_bool() ==
        false);
  CHECK(post(R"(, "model": "vit")").status == 400);
  CHECK(post(R"(, "sigma": -1)").status == 400);
}

TEST_SUITE_END();
