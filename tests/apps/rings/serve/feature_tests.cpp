// Features of images: those of vit embed --features.
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

TEST_CASE("serve: features of patches and blocks are those of vit embed") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm", model = golden_model("rope-axial");
  write_picture(file, 30, 40, 5);
  for (const char* const feature : {"patches", "block.0"})
    REQUIRE(run_vit({"embed", "--model", model, file, "--features", feature, "--output",
                     folder / (std::string(feature) + ".npy")})
                .exit_code == 0);
  const ServeProcess server({"--model", "m=" + model});
  const auto post = [&](const std::string& more) {
    return server.post("/v1/features", R"({"input": ")" + data_uri(file) + "\"" + more + "}");
  };
  const HttpAnswer answer = post(R"(, "features": "patches,block.0")");
  CAPTURE(answer.body.substr(0, 300));
  REQUIRE(answer.status == 200);
  const Json features = answer.json().at("data")[0].at("features");
  REQUIRE(features.size() == 2);
  for (const char* const feature : {"patches", "block.0"}) {
    // the file of the command has the images as its first dimension: the numbers are its end
    const std::string one = app::decode_base64(features.at(feature).as_string()).value(),
                      all = read_text(folder / (std::string(feature) + ".npy"));
    REQUIRE(one.size() == all.size());
    CHECK(one.substr(128) == all.substr(128));
  }
  CHECK(post(R"(, "features": ["nothing"])").status == 400);
  CHECK(post(R"(, "features": ["projected"])").status == 400);
  CHECK(post(R"(, "features": [])").status == 400);
}

TEST_SUITE_END();
