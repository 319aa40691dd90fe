// What requests to vit serve may hold, and how it is named when they may not.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "apps/vit/rings/serve/work/member_names.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string refusal_of(const HttpAnswer& answer) {
  const Json error = answer.json().at("error");
  return std::to_string(answer.status) + " " +
         std::string(error.is_string() ? error.as_string() : error.at("message").as_string());
}

std::string param_of(const HttpAnswer& answer) {
  return std::to_string(answer.status) + " " +
         std::string(answer.json().at("error").find_string("param").value_or(""));
}

std::string image_and(const std::string& file, const std::string& more) {
  return R"({"modality": "image", "input": ")" + data_uri(file) + "\", " + more + "}";
}

}  // namespace

TEST_CASE("serve: tensors without elements, and with more than a request takes, are refused") {
  const TestFolder folder;
  const ServeProcess server({"--model", "m=" + clip_model(folder), "--log", "none"});
  const auto infer = [&](const std::string& tensor, const std::string& header = "X: y") {
    return refusal_of(server.post("/v2/models/m/infer", R"({"inputs": [{)" + tensor + "}]}",
                                  {"Content-Type: application/json", header}));
  };
  const std::string none = "400 inputs[0] has no elements";
  CHECK(infer(R"("name": "image", "datatype": "BYTES", "shape": [0], "data": [])") == none);
  CHECK(infer(R"("name": "text", "datatype": "BYTES", "shape": [0], "data": [])") == none);
  for (const std::string name : {"image", "text"}) {
    const std::string tensor =
        "\"name\": \"" + name +
        R"(", "datatype": "BYTES", "shape": [0], "parameters": {"binary_data_size": 0})";
    const std::size_t length = tensor.size() + std::string(R"({"inputs": [{}]})").size();
    CHECK(infer(tensor, "Inference-Header-Content-Length: " + std::to_string(length)) == none);
  }
  CHECK(
      contains(infer(R"("name": "pixels", "datatype": "FP32", "shape": [0, 3, 1, 1], "data": [])"), "400 "));
  CHECK(
      infer(
          R"("name": "pixels", "datatype": "FP32", "shape": [2097152, 3, 2097152, 2097152], "data": [1])") ==
      "400 inputs[0]: 2097152 inputs; a request takes 2048");
  CHECK(server.post("/vectorize", R"({"texts": [], "images": []})").status == 200);
  CHECK(server.get("/health").status == 200);
}

TEST_CASE("serve: a key that is removed while a body comes is refused") {
  const TestFolder folder;
  const std::string keys = folder / "keys", model = golden_model("rope-axial");
  write_text(keys, "first models=a\nsecond\n");
  write_picture(folder / "a.ppm", 20, 20, 1);
  const ServeProcess server({"--model", "a=" + model, "--model", "b=" + model, "--api-keys", keys});
  const auto send = [&](const std::string& key) {
    return http_request("POST", "/v1/embeddings", image_and(folder / "a.ppm", R"("model": "b")"),
                        {"Authorization: Bearer " + key});
  };
  const std::string request = send("first");
  Client client(server.port());
  client.send(request.substr(0, request.size() - 9));
  write_text(keys, "third\n");
  ::kill(server.process(), SIGHUP);
  const auto third = [&] { return server.get("/v1/models", {"Authorization: Bearer third"}).status; };
  for (int i = 0; i < 600 && third() != 200; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  REQUIRE(third() == 200);
  client.send(request.substr(request.size() - 9));
  CHECK(client.read().status == 401);
  Client other(server.port());
  other.send(send("third"));
  CHECK(other.read().status == 200);
}

TEST_CASE("serve: bodies have a bound, of one client too, and those that are small have room") {
  using app::Room;
  using app::room_for_body;
  constexpr std::size_t kMebibyte = std::size_t{1} << 20, kMost = 512 * kMebibyte;
  const auto room = [](std::size_t held, std::size_t of_client, std::size_t bytes) {
    return room_for_body(kMost, held * kMebibyte, of_client * kMebibyte, bytes * kMebibyte);
  };
  CHECK(room(0, 0, 384) == Room::given);
  CHECK(room(384, 384, 1) == Room::none_for_client);
  CHECK(room(416, 30, 32) == Room::given);
  CHECK(room(447, 30, 2) == Room::none);  // an eighth is left for those that hold little
  CHECK(room(511, 0, 1) == Room::given);
  CHECK(room(512, 0, 1) == Room::none);
}

TEST_CASE("serve: classes in words are a list or words with commas, under one name") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 20, 20, 1);
  const ServeProcess server({"--model", "clip=" + clip_model(folder), "--model",
                             "owl=" + data_path("golden/boxes/owlv2").string(), "--log", "none"});
  const auto post = [&](const std::string& path, const std::string& model, const std::string& more) {
    return server.post(path, image_and(file, "\"model\": \"" + model + "\", " + more));
  };
  const HttpAnswer words = post("/v1/classify", "clip", R"("candidate_labels": "cat, dog")");
  CHECK(words.status == 200);
  CHECK(words.body == post("/v1/classify", "clip", R"("candidate_labels": ["cat", "dog"])").body);
  CHECK(refusal_of(post("/v1/classify", "clip", R"("candidate_labels": ["cat", ""])")) ==
        "400 candidate_labels: a name is empty");
  CHECK(refusal_of(post("/v1/classify", "clip", R"("candidate_labels": ["cat", "cat"])")) ==
        "400 candidate_labels: 'cat' is there twice");
  CHECK(post("/v1/detect", "owl", R"("candidate_labels": "cat, dog")").body ==
        post("/v1/detect", "owl", R"("classes": ["cat", "dog"])").body);
  CHECK(param_of(post("/v1/detect", "owl", R"("classes": "cat", "candidate_labels": "dog")")) ==
        "400 candidate_labels");
}

TEST_CASE("serve: members that have no effect are refused by their names") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 40, 30, 1);
  const ServeProcess server({"--model", "sam=" + data_path("golden/prompts/sam3").string(), "--model",
                             "seg=" + data_path("golden/dense/hf-eomt").string(), "--model",
                             "depth=" + data_path("golden/dense/hf-depth-anything").string(), "--log",
                             "none"});
  const auto post = [&](const std::string& path, const std::string& model, const std::string& more) {
    return server.post(path,
                       R"({"input": ")" + data_uri(file) + R"(", "model": ")" + model + "\", " + more + "}");
  };
  const std::string point = R"("points": [[3, 4]], "format": "json")";
  CHECK(post("/v1/segment", "sam", point).status == 200);
  CHECK(param_of(post("/v1/segment", "sam", point + R"(, "threshold": 0.5)")) == "400 threshold");
  CHECK(param_of(post("/v1/segment", "sam", point + R"(, "mask_threshold": 0.5)")) == "400 mask_threshold");
  CHECK(param_of(post("/v1/segment", "sam", R"("classes": "cat", "task": "semantic", "threshold": 0.5)")) ==
        "400 threshold");
  CHECK(param_of(post("/v1/segment", "sam", R"("classes": "cat", "candidate_labels": "dog")")) ==
        "400 candidate_labels");
  CHECK(refusal_of(post("/v1/segment", "seg", R"("task": "semantic", "threshold": 0.5)")) ==
        "400 threshold is for task instance and panoptic");
  CHECK(param_of(post("/v1/depth", "depth", R"("format": "npy", "png_scale": 900)")) == "400 png_scale");
  CHECK(param_of(post("/v1/depth", "depth", R"("colormap": "gray")")) == "400 colormap");
  CHECK(app::of_members("--mask-threshold, --overlap and '--stuff' are for --task panoptic -- a-b 3--4") ==
        "mask_threshold, overlap and 'stuff' are for task panoptic -- a-b 3--4");
}

TEST_CASE("serve: inputs of another kind, escapes of paths, and types of answers") {
  const TestFolder folder;
  const ServeProcess server({"--model", "clip=" + clip_model(folder), "--log", "none"});
  const auto embed = [&](const std::string& input) {
    return refusal_of(server.post("/v1/embeddings", R"({"input": )" + input + "}"));
  };
  const std::string ids = "token ids";
  for (const char* const input : {"3", "true", R"([["a"]])", "[[]]"}) {
    CAPTURE(input);
    CHECK(contains(embed(input), "must be a string"));
    CHECK(!contains(embed(input), ids));
  }
  for (const char* const input : {"[3, 4]", "[[3, 4]]"}) CHECK(contains(embed(input), ids));
  const std::string tensor =
      R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}]})";
  CHECK(server.post("/v2/models/cli%70/infer", tensor).body ==
        server.post("/v2/models/clip/infer", tensor).body);
  CHECK(server.get("/v2/models/cl%69p/ready").status == 200);
  CHECK(server.get("/v1/models/cl%69p").status == 200);
  CHECK(app::without_escapes("%6d%2F%2f%zz%6") == "m//%zz%6");
  const auto type_for = [&](const std::string& accept) {
    return server
        .post("/v1/embeddings", R"({"input": "a"})", {"Content-Type: application/json", "Accept: " + accept})
        .headers.at("content-type");
  };
  CHECK(type_for("application/json, application/x-ndjson") == "application/x-ndjson");
  CHECK(type_for("application/X-NDJSON;charset=utf-8") == "application/x-ndjson");
  CHECK(type_for("application/json, application/x-ndjson;q=0") == "application/json");
  CHECK(type_for("*/*") == "application/json");
  CHECK(app::accepted("a;x=0;q=0.5, b", "a") == true);
  CHECK(app::accepted("a ; Q = 0.0", "A") == false);
  CHECK(!app::accepted("ab, , b;q=1", "a"));
}

TEST_CASE("serve: img2vec-neural names no model, and gets the first that gives vectors of images") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 20, 20, 1);
  const ServeProcess server({"--model", "yolos=" + data_path("golden/boxes/yolos").string(), "--model",
                             "clip=" + clip_model(folder), "--log", "none"});
  const HttpAnswer vector = server.post("/vectors", R"({"id": "7", "image": ")" + data_uri(file) + "\"}");
  CAPTURE(vector.body.substr(0, 200));
  REQUIRE(vector.status == 200);
  CHECK(vector.json().at("id").as_string() == "7");
  CHECK(vector.json().at("vector").size() == vector.json().at("dim").as_size());
}

TEST_CASE("serve: what cannot be done in time is found out by the time since the request began") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 20, 20, 1);
  const ServeProcess server({"--model", "m=" + data_path("model").string(), "--threads", "1", "--size", "160",
                             "--timeout", "10", "--log", "none"});
  REQUIRE(server.post("/v1/embeddings", image_and(file, R"("model": "m")")).status == 200);
  std::string inputs = "\"" + data_uri(file) + "\"";
  for (int i = 1; i < 2000; ++i) inputs += ", \"" + data_uri(file) + "\"";
  const std::string request =
      http_request("POST", "/v1/embeddings", R"({"modality": "image", "input": [)" + inputs + "]}");
  Client client(server.port());
  client.send(request.substr(0, request.size() / 2));
  std::this_thread::sleep_for(std::chrono::seconds(5));
  client.send(request.substr(request.size() / 2));
  const HttpAnswer answer = client.read();
  CAPTURE(answer.body);
  REQUIRE(answer.status == 413);
  const std::string message = refusal_of(answer);
  const std::size_t end = message.find(" s are left"), begin = message.rfind(' ', end - 1) + 1;
  CHECK(std::stoul(message.substr(begin, end - begin)) < 5);
}

TEST_SUITE_END();
