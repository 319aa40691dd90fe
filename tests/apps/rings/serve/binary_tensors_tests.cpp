// Binary tensors of the Open Inference Protocol, as tritonclient sends them.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/binary_tensors.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string length_and(const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

/// A body of one input with these bytes, and its header.
struct Binary {
  std::string body, header;
};
Binary binary_request_of(const std::string& input, const std::string& bytes, const std::string& more = "") {
  const std::string json = R"({"inputs": [{)" + input + R"(, "parameters": {"binary_data_size": )" +
                           std::to_string(bytes.size()) + "}}]" + more + "}";
  return {json + bytes, "Inference-Header-Content-Length: " + std::to_string(json.size())};
}

std::vector<float> floats_after(const HttpAnswer& answer) {
  const std::size_t start = std::stoul(answer.headers.at("inference-header-content-length"));
  std::vector<float> out((answer.body.size() - start) / sizeof(float));
  std::memcpy(out.data(), answer.body.data() + start, out.size() * sizeof(float));
  return out;
}

std::vector<float> floats_in(const HttpAnswer& answer) {
  const Json data = answer.json().at("outputs")[0].at("data");
  std::vector<float> out;
  for (std::size_t i = 0; i < data.size(); ++i) out.push_back(static_cast<float>(data[i].as_double()));
  return out;
}

std::string refusal(const std::string& body, const std::string& length) {
  app::HttpRequest request;
  request.body = body;
  request.json_length = length;
  try {
    app::InferBody infer(request, 1 << 20, 1000);
    const Json input = infer.json().at("inputs")[0];
    if (const auto bytes = infer.take(input, "inputs[0]")) app::split_strings(*bytes, 2, "inputs[0]");
    infer.check_end();
  } catch (const app::ApiError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("serve: binary tensors in and out are those of JSON") {
  const TestFolder folder;
  const ServeProcess server({"--model", "clip=" + clip_model(folder)});
  const std::string path = "/v2/models/clip/infer",
                    asked = R"(, "outputs": [{"name": "embedding", "parameters": {"binary_data": true}}])";
  const auto post = [&](const Binary& request) { return server.post(path, request.body, {request.header}); };
  const HttpAnswer json = server.post(
      path,
      R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a cat", "a boat"]}]})");
  REQUIRE(json.status == 200);
  const std::string texts = length_and("a cat") + length_and("a boat");
  const std::string input = R"("name": "text", "datatype": "BYTES", "shape": [2])";
  const HttpAnswer in = post(binary_request_of(input, texts));
  REQUIRE(in.status == 200);
  CHECK(floats_in(in) == floats_in(json));
  for (const std::string& more : {asked, std::string(R"(, "parameters": {"binary_data_output": true})")}) {
    const HttpAnswer both = post(binary_request_of(input, texts, more));
    REQUIRE(both.status == 200);
    CHECK(both.headers.at("content-type") == "application/octet-stream");
    CHECK(floats_after(both) == floats_in(json));
    const std::string head =
        both.body.substr(0, std::stoul(both.headers.at("inference-header-content-length")));
    const Json output = parse_json(head, "answer").at("outputs")[0];
    CHECK(output.at("shape")[0].as_size() == 2);
    CHECK(output.at("parameters").at("binary_data_size").as_size() == 4 * floats_in(json).size());
    CHECK_FALSE(output.find("data"));
  }
  const std::string file = read_text(source_path("tests/apps/rings/serve/requests/image.jpg"));
  const std::string of_image = R"("name": "image", "datatype": "BYTES", "shape": [1])";
  const HttpAnswer image = post(binary_request_of(of_image, length_and(file), asked));
  const HttpAnswer uri = post(binary_request_of(
      of_image, length_and(data_uri(source_path("tests/apps/rings/serve/requests/image.jpg").string())),
      asked));
  REQUIRE(image.status == 200);
  CHECK(floats_after(image) == floats_after(uri));
  std::vector<float> pixels(3 * 16 * 16);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 17) / 8.0f - 1.0f;
  const std::string bytes(reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof(float));
  const std::string of_pixels = R"("name": "pixels", "datatype": "FP32", "shape": [1, 3, 16, 16])";
  CHECK(post(binary_request_of(of_pixels, bytes, asked)).status == 200);
  CHECK(post(binary_request_of(of_pixels, bytes.substr(4), asked)).status == 400);
  CHECK(post(binary_request_of(of_pixels, bytes + "1234", asked)).status == 400);
}

TEST_CASE("serve: binary tensors of no numbers are empty") {
  CHECK(app::floats_of({}, 0, "inputs").empty());
}

TEST_CASE("serve: binary tensors that do not fit their description are refused") {
  const std::string json = R"({"inputs": [{"parameters": {"binary_data_size": 9}}]})";
  const std::string size = std::to_string(json.size());
  CHECK(refusal(json + length_and("a cat"), size).empty());
  CHECK(contains(refusal(json + length_and("a cat") + "x", size), "1 bytes after the JSON"));
  CHECK(contains(refusal(json + "abc", size), "binary_data_size is 9, and 3 bytes follow"));
  CHECK(contains(refusal(json + length_and("a cat"), "99999"), "bytes of JSON"));
  CHECK(contains(refusal(json + length_and("a cat"), "-1"), "bytes of JSON"));
  CHECK(contains(refusal(json + length_and("a cat"), "5x"), "bytes of JSON"));
  CHECK(contains(refusal(json + length_and("a cat"), ""), ""));
  CHECK(contains(refusal(json + std::string(9, '\xff'), size), "a string of 4294967295 bytes, and 5 follow"));
  CHECK(contains(refusal(json + std::string(8, '\0') + "x", size), "a string without its length"));
  const std::string many = R"({"inputs": [{"parameters": {"binary_data_size": 12}}]})";
  CHECK_FALSE(
      refusal(many + std::string(12, '\0'), std::to_string(many.size())).empty());  // three of two strings
}

TEST_SUITE_END();
