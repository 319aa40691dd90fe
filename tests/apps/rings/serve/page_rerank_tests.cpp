// /v1/rerank: documents in the order in which they match a query, as vit search has them.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/apps/rings/serve/server.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

}  // namespace

TEST_CASE("serve: pages are ranked by questions and by pages with the scores of vit search") {
  const TestFolder folder;
  const std::string model = data_path("golden/pages/colmodernvbert").string();
  const std::string images = data_path("golden/pages/images").string();
  const std::vector<std::string> names{"wide.png", "tall.png", "square.png"};
  const std::string index = folder / "index";
  REQUIRE(run_vit({"index", "--model", model, "--pages", images, "--output", index}).exit_code == 0);
  const auto searched = [&](const std::vector<std::string>& query) {
    std::vector<std::string> all{"search", index, "--format", "json"};
    all.insert(all.end(), query.begin(), query.end());
    const RunResult run = run_vit(all);
    REQUIRE(run.exit_code == 0);
    std::map<std::string, double> out;
    const Json results = parse_json(lines_of(run.out).at(0), "stdout").at("results");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string file(results[i].at("file").as_string());
      out[file.substr(file.rfind('/') + 1)] = results[i].at("score").as_double();
    }
    return out;
  };
  const ServeProcess server({"--model", "pages=" + model});
  std::string documents;
  for (const std::string& name : names)
    documents +=
        (documents.empty() ? "{\"image\": " : ", {\"image\": ") + quoted(data_uri(images + "/" + name)) + "}";
  const auto check = [&](const std::string& query, const std::map<std::string, double>& wanted) {
    const HttpAnswer answer = server.post(
        "/v1/rerank", R"({"model": "pages", "query": )" + query + R"(, "documents": [)" + documents + "]}");
    CAPTURE(answer.body.substr(0, 300));
    REQUIRE(answer.status == 200);
    const Json results = answer.json().at("results");
    REQUIRE(results.size() == names.size());
    double before = 1e9;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const double score = results[i].at("relevance_score").as_double();
      CHECK(score == wanted.at(names.at(results[i].at("index").as_size())));
      CHECK(score <= before);
      before = score;
    }
    CHECK(answer.json().at("usage").at("total_tokens").as_size() > 0);
  };
  check(quoted("revenue by quarter"), searched({"--text", "revenue by quarter"}));
  check("{\"image\": " + quoted(data_uri(images + "/tall.png")) + "}", searched({images + "/tall.png"}));
  const auto refused = [&](const std::string& body, const char* param) {
    const HttpAnswer answer = server.post("/v1/rerank", body);
    CAPTURE(answer.body);
    CHECK(answer.status == 400);
    CHECK(answer.json().at("error").at("param").as_string() == param);
  };
  const std::string some = "[" + documents + "]";
  refused(R"({"documents": )" + some + "}", "query");
  refused(R"({"query": "a"})", "documents");
  refused(R"({"query": "a", "documents": []})", "documents");
  refused(R"({"query": "a", "documents": ["a text"]})", "documents[0]");
  refused(R"({"query": "a", "images": ["http://example.com/a.png"]})", "images[0]");
  refused(R"({"query": "an <image>", "documents": )" + some + "}", "query");
  refused(R"({"query": ["a"], "documents": )" + some + "}", "query");
  refused(R"({"query": "a", "rank": 1, "documents": )" + some + "}", "rank");
  refused(R"({"query": "a", "return_documents": true, "documents": )" + some + "}", "return_documents");
  CHECK(server.post("/v1/rerank", R"({"query": "a", "top_n": 1, "documents": )" + some + "}")
            .json()
            .at("results")
            .size() == 1);
  CHECK(server.post("/v1/embeddings", R"({"input": "a"})").status == 400);  // a page has many vectors
}

TEST_CASE("serve: with two towers documents are ranked by cosines") {
  const TestFolder folder;
  const ServeProcess server({"--model", clip_model(folder)});
  const HttpAnswer answer =
      server.post("/v1/rerank", R"({"query": "a cat", "documents": ["a dog", "a cat", "two cats"]})");
  REQUIRE(answer.status == 200);
  const Json results = answer.json().at("results");
  CHECK(results[0].at("index").as_size() == 1);
  CHECK(results[0].at("relevance_score").as_double() == doctest::Approx(1).epsilon(1e-6));
  write_picture(folder / "a.ppm", 30, 30, 1);
  const HttpAnswer mixed = server.post(
      "/v1/rerank", R"({"query": "a cat", "images": [)" + quoted(data_uri(folder / "a.ppm")) + "]}");
  CHECK(mixed.status == 200);
}

TEST_SUITE_END();
