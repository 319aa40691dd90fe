// Indexes as models of the server: the results of vit search.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

void check_same_results(const Json& found, const Json& printed) {
  REQUIRE(found.size() == printed.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].at("rank").as_size() == printed[i].at("rank").as_size());
    CHECK(found[i].at("file").as_string() == printed[i].at("file").as_string());
    CHECK(found[i].at("score").as_double() == printed[i].at("score").as_double());
  }
}

}  // namespace

TEST_CASE("serve: an index is a model, searched by images and words as vit search does") {
  const TestFolder folder;
  std::vector<std::string> files;
  for (unsigned i = 0; i < 5; ++i) {
    files.push_back(folder / ("photos/" + std::to_string(i) + ".ppm"));
    write_picture(files.back(), 30 + i, 40, 3 * i);
  }
  const std::string index = folder / "photos.index", model = clip_model(folder);
  REQUIRE(run_vit({"index", "--model", model, folder / "photos", "--output", index}).exit_code == 0);
  const auto search = [&](std::vector<std::string> arguments) {
    std::vector<std::string> all{"search", index, "--format", "json", "--top", "3"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const RunResult run = run_vit(all);
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    return parse_json(lines_of(run.out).at(0), "stdout").at("results");
  };
  const ServeProcess server({"--model", "photos=" + index});
  const auto post = [&](const std::string& body) { return server.post("/v1/search", body); };
  const auto first = [&](const std::string& body) {
    const HttpAnswer answer = post(body);
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
    return answer.json().at("data")[0].at("results");
  };
  const std::string image = "\"" + data_uri(files[1]) + "\"", other = "\"" + data_uri(files[3]) + "\"";
  check_same_results(first(R"({"model": "photos", "top": 3, "input": )" + image + "}"), search({files[1]}));
  check_same_results(first(R"({"top": 3, "text": "a cat"})"), search({"--text", "a cat"}));
  check_same_results(first(R"({"top": 3, "input": [)" + image + ", " + other + "]}"),
                     search({files[1], files[3]}));
  CHECK(post(R"({"each": true, "input": [)" + image + ", " + other + "]}").json().at("data").size() == 2);
  CHECK(post(R"({"text": "a", "input": )" + image + "}").status == 400);
  CHECK(post(R"({"top": 0, "text": "a"})").status == 400);
  CHECK(post("{}").status == 400);
  // the vectors are there as well
  CHECK(server.post("/v1/embeddings", R"({"input": "a cat"})").status == 200);
  Client stranger(server.port());
  stranger.send("POST /v1/search HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(stranger.read().status == 421);
}

TEST_SUITE_END();
