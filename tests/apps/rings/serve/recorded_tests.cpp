// vit serve and the requests that other programs send: see requests/README.md.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/outputs.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::filesystem::path requests_folder() {
  return source_path("tests/apps/rings/serve/requests");
}

std::vector<float> vector_of(const Json& value) {
  std::vector<float> out;
  if (value.is_string()) {
    const std::string bytes = app::decode_base64(value.as_string()).value();
    out.resize(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (std::size_t i = 0; i < value.size(); ++i) out.push_back(static_cast<float>(value[i].as_double()));
  return out;
}

/// The numbers after the JSON of an answer with a binary tensor.
std::vector<float> binary_vector_of(const HttpAnswer& answer) {
  const std::size_t start = std::stoul(answer.headers.at("inference-header-content-length"));
  std::vector<float> out((answer.body.size() - start) / sizeof(float));
  std::memcpy(out.data(), answer.body.data() + start, out.size() * sizeof(float));
  return out;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

TEST_CASE("serve: requests that clients sent once are answered") {
  const TestFolder folder;
  const std::string model = clip_model(folder), image = (requests_folder() / "image.jpg").string();
  REQUIRE(run_vit({"embed", "--model", model, "--text", "a cat", "--text", "a small boat", "--output",
                   folder / "e.jsonl", image})
              .exit_code == 0);
  std::map<std::string, std::vector<float>> expected;
  for (const std::string& line : lines_of(read_text(folder / "e.jsonl"))) {
    const Json object = parse_json(line, "e.jsonl");
    const bool is_image = object.find("file").has_value();
    const std::string name = is_image ? "image" : std::string(object.at("name").as_string());
    expected[name] = vector_of(object.at(is_image ? "projected" : "text"));
  }
  REQUIRE(expected.size() == 3);
  const std::vector<std::vector<float>> texts{expected.at("a cat"), expected.at("a small boat")},
      images{expected.at("image")};
  const auto embeddings = [](const Json& answer) {
    std::vector<std::vector<float>> out;
    for (std::size_t i = 0; i < answer.at("data").size(); ++i)
      out.push_back(vector_of(answer.at("data")[i].at("embedding")));
    return out;
  };
  const auto of_length_one = [](std::vector<std::vector<float>> vectors) {
    for (std::vector<float>& vector : vectors) normalize_vector(vector);
    return vectors;
  };
  const auto rows = [](const Json& list) {
    std::vector<std::vector<float>> out;
    for (std::size_t i = 0; i < list.size(); ++i) out.push_back(vector_of(list[i]));
    return out;
  };
  const auto joined = [](const std::vector<std::vector<float>>& vectors) {
    std::vector<float> out;
    for (const std::vector<float>& vector : vectors) out.insert(out.end(), vector.begin(), vector.end());
    return out;
  };
  const auto tensor = [](const Json& answer) { return vector_of(answer.at("outputs")[0].at("data")); };
  // immich's preprocessing of an image differs a little, its vectors are normalized
  const auto is_near = [](const Json& answer, const std::vector<float>& vector, double least) {
    const std::vector<float> found = vector_of(parse_json(answer.at("clip").as_string(), "clip"));
    return std::abs(dot(found, found) - 1) < 1e-6 &&
           dot(found, vector) > least * std::sqrt(dot(vector, vector));
  };
  const std::map<std::string, std::function<bool(const Json&)>> checks{
      {"openai-python-texts", [&](const Json& answer) { return embeddings(answer) == texts; }},
      {"openai-python-images", [&](const Json& answer) { return embeddings(answer) == images; }},
      {"langchain-openai", [&](const Json& answer) { return embeddings(answer) == texts; }},
      {"llama-index-openai", [&](const Json& answer) { return embeddings(answer) == texts; }},
      {"infinity-client-texts", [&](const Json& answer) { return embeddings(answer) == texts; }},
      {"infinity-client-images", [&](const Json& answer) { return embeddings(answer) == images; }},
      {"tritonclient-texts", [&](const Json& answer) { return tensor(answer) == joined(texts); }},
      {"tritonclient-images",
       [&](const Json& answer) {
         return answer.at("id").as_string() == "7" && tensor(answer) == joined(images);
       }},
      {"weaviate-img2vec", [&](const Json& answer) { return vector_of(answer.at("vector")) == images[0]; }},
      {"meilisearch-rest", [&](const Json& answer) { return embeddings(answer) == texts; }},
      {"weaviate-clip",
       [&](const Json& answer) {
         return rows(answer.at("textVectors")) == of_length_one(texts) &&
                rows(answer.at("imageVectors")) == of_length_one(images);
       }},
      {"weaviate-clip-images",
       [&](const Json& answer) {
         return answer.at("textVectors").size() == 0 &&
                rows(answer.at("imageVectors")) == of_length_one(images);
       }},
      {"immich-image",
       [&](const Json& answer) {
         return answer.at("imageHeight").as_size() == 16 && answer.at("imageWidth").as_size() == 24 &&
                is_near(answer, images[0], 0.98);
       }},
      {"immich-text", [&](const Json& answer) { return is_near(answer, texts[1], 1 - 1e-6); }}};

  const std::map<std::string, std::vector<float>> binary_answers{
      {"tritonclient-binary-texts", joined(texts)}, {"tritonclient-binary-images", joined(images)}};
  const ServeProcess server({"--model", "clip=" + model});
  std::size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(requests_folder())) {
    if (entry.path().extension() != ".http") continue;
    ++num_files;
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    Client client(server.port());
    client.send(read_text(entry.path()));
    const HttpAnswer answer = client.read();
    REQUIRE(answer.status == 200);
    if (const auto binary = binary_answers.find(name); binary != binary_answers.end()) {
      CHECK(binary_vector_of(answer) == binary->second);
    } else {
      CHECK(checks.at(name)(answer.json()));
    }
    client.send(http_request("GET", "/health"));  // the request ended where its client says
    CHECK(client.read().status == 200);
  }
  CHECK(num_files == checks.size() + binary_answers.size());
}
