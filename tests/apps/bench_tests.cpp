// vit bench as scripts see it.
#include <doctest/doctest.h>

#include <array>

#include "tests/apps/program.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("apps: bench measures every combination") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--sizes", "24,16x40",
                                    "--batch", "1,2", "--threads", "1", "--seconds", "0.01", "--json"});
  CHECK(result.exit_code == 0);
  const Json json = parse_json(result.out, "bench");
  CHECK(json.at("machine").at("cpu").as_string().size() > 0);
  REQUIRE(json.at("results").size() == 4);
  const Json last = json.at("results")[3];
  CHECK(last.at("height").as_size() == 16);
  CHECK(last.at("width").as_size() == 40);
  CHECK(last.at("batch").as_size() == 2);
  CHECK(last.at("dtype").as_string() == "float32");
  for (std::size_t i = 0; i < 4; ++i) {
    const Json one = json.at("results")[i];
    CHECK(one.at("ms_min").as_double() > 0);
    CHECK(one.at("ms_per_image").as_double() >= one.at("ms_min").as_double());
    CHECK(one.at("gflops").as_double() > 0);
    CHECK(one.at("percent_of_peak").as_double() > 0);
    CHECK(one.at("tile_gflops").as_double() > 0);
    CHECK(one.at("percent_of_tile").as_double() > 0);
    const Json attention = one.at("attention");
    CHECK(attention.at("gflop_per_image").as_double() < one.at("gflop_per_image").as_double());
    CHECK(attention.at("peak_gflops").as_double() > 0);
    CHECK(attention.at("percent_of_peak").as_double() > 0);
  }
}

TEST_CASE("apps: bench --report measures every precision on every table of the processor") {
  const RunResult result = run_vit({"bench", "--report", "--model", golden_model("rope-axial"), "--threads",
                                    "1", "--seconds", "0", "--quiet"});
  CHECK(result.exit_code == 0);
  const Json json = parse_json(result.out, "bench");
  const Json kernels = json.at("machine").at("kernels"), results = json.at("results");
  REQUIRE(kernels.size() >= 2);
  CHECK(kernels[0].at("description").as_string().size() > 0);
  REQUIRE(results.size() % 3 == 0);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].at("kernels").as_string() == kernels[i / 3].at("name").as_string());
    CHECK(results[i].at("dtype").as_string() == std::array{"float32", "bfloat16", "int8"}[i % 3]);
  }
  CHECK(run_vit({"bench", "--report", "--dtype", "int8"}).exit_code == 2);
}

TEST_CASE("apps: bench measures a list of precisions, each with every combination") {
  const auto bench = [](const std::string& dtypes) {
    return run_vit({"bench", "--model", golden_model("rope-axial"), "--sizes", "24,16", "--dtype", dtypes,
                    "--threads", "1", "--seconds", "0", "--json"});
  };
  const Json results = parse_json(bench("int8,float32").out, "bench").at("results");
  REQUIRE(results.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(results[i].at("dtype").as_string() == (i < 2 ? "int8" : "float32"));
    CHECK(results[i].at("height").as_size() == (i % 2 == 0 ? 24 : 16));
  }
  CHECK(bench("int8,float16").exit_code == 2);
}

TEST_CASE("apps: bench names a combination that fails and measures the others") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--sizes", "24,3,16",
                                    "--threads", "1", "--seconds", "0", "--json"});
  CHECK(result.exit_code == 1);
  CHECK(parse_json(result.out, "bench").at("results").size() == 2);
  CHECK(contains(result.err, "vit: 3x3, batch 1, threads 1: "));
}

TEST_CASE("apps: bench without --sizes takes the one size of --size") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--size", "24x40",
                                    "--threads", "1", "--seconds", "0.01", "--json"});
  CHECK(result.exit_code == 0);
  const Json one = parse_json(result.out, "bench").at("results")[0];
  CHECK(one.at("height").as_size() == 24);
  CHECK(one.at("width").as_size() == 40);
}
