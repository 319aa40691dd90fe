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
  const HttpAnswer refused = post(R"({"text": "a", "parameters": "nprobe=2"})");  // of a plain index
  CHECK(refused.status == 400);
  CHECK(refused.json().at("error").at("param").as_string() == "parameters");
  // the vectors are there as well
  CHECK(server.post("/v1/embeddings", R"({"input": "a cat"})").status == 200);
  Client stranger(server.port());
  stranger.send("POST /v1/search HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(stranger.read().status == 421);
}

TEST_CASE("serve: searches with parameters are those of vit search with them") {
  const TestFolder folder;
  for (unsigned i = 0; i < 60; ++i)
    write_picture(folder / ("photos/" + std::to_string(i) + ".ppm"), 16, 16 + i % 5, 3 * i);
  const std::string index = folder / "photos.index", model = clip_model(folder);
  const RunResult made =
      run_vit({"index", "--model", model, folder / "photos", "--output", index, "--type", "IVF8,Flat"});
  if (made.exit_code != 0 && contains(made.err, "FAISS")) {
    MESSAGE("skipped: built without FAISS");
    return;
  }
  REQUIRE(made.exit_code == 0);
  const ServeProcess server({"--model", "photos=" + index});
  for (const char* const parameters : {"nprobe=8", "nprobe=1", "nprobe=8"}) {
    CAPTURE(parameters);
    const RunResult run = run_vit(
        {"search", index, "--format", "json", "--top", "20", "--text", "a cat", "--parameters", parameters});
    REQUIRE(run.exit_code == 0);
    const HttpAnswer answer = server.post(
        "/v1/search", std::string(R"({"top": 20, "text": "a cat", "parameters": ")") + parameters + "\"}");
    REQUIRE(answer.status == 200);
    check_same_results(answer.json().at("data")[0].at("results"),
                       parse_json(lines_of(run.out).at(0), "stdout").at("results"));
  }
  CHECK(server.post("/v1/search", R"({"text": "a cat", "parameters": "probe=1"})").status == 400);
}

TEST_SUITE_END();
