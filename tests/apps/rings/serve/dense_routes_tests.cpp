// Maps, boxes and keypoints of the server: those of the commands.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string boxes_model(const std::string& name) {
  return data_path("golden/boxes/" + name).string();
}

std::string dense_model(const std::string& name) {
  return data_path("golden/dense/" + name).string();
}

std::string request_of(const std::string& file, const std::string& more = "") {
  return R"({"input": ")" + data_uri(file) + "\"" + more + "}";
}

/// The bytes that a member holds in base64.
std::string file_of(const Json& object, const std::string& member) {
  return app::decode_base64(object.at(member).as_string()).value();
}

/// Whether both are the same JSON.
bool are_same(const Json& a, const Json& b) {
  if (a.kind() != b.kind() || a.size() != b.size()) return false;
  switch (a.kind()) {
    case Json::Kind::number: return a.as_double() == b.as_double();
    case Json::Kind::string: return a.as_string() == b.as_string();
    case Json::Kind::boolean: return a.as_bool() == b.as_bool();
    default: break;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].key() != b[i].key() || !are_same(a[i], b[i])) return false;
  }
  return true;
}

std::string refusal_of(const HttpAnswer& answer) {
  return std::to_string(answer.status) + " " +
         std::string(answer.json().at("error").find_string("param").value_or(""));
}

Json first_of(const HttpAnswer& answer) {
  CAPTURE(answer.body.substr(0, 300));
  REQUIRE(answer.status == 200);
  return answer.json().at("data")[0];
}

Json line_of(const RunResult& run) {
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_json(lines_of(run.out).at(0), "stdout");
}

}  // namespace

TEST_CASE("serve: depth and segments are the files of vit depth and vit segment") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 27, 40, 3);
  const std::string depth = dense_model("hf-depth-anything"), segment = dense_model("hf-eomt");
  const Json printed = line_of(run_vit({"depth", "--model", depth, file, "--output", folder / "d/",
                                        "--format", "png16,color,npy,json", "--png-scale", "900"}));
  const Json segments = line_of(run_vit({"segment", "--model", segment, file, "--output", folder / "s/",
                                         "--format", "png,color,json", "--threshold", "0.3"}));
  REQUIRE(run_vit({"segment", "--model", segment, file, "--output", folder / "s.npz", "--task", "semantic"})
              .exit_code == 0);
  const ServeProcess server({"--model", "depth=" + depth, "--model", "segment=" + segment, "--threads", "2"});

  const Json map = first_of(server.post("/v1/depth", request_of(file, R"(, "png_scale": 900)")));
  for (const char* const member : {"unit", "min", "max"}) CHECK(are_same(map.at(member), printed.at(member)));
  CHECK(map.at("width").as_size() == 40);
  CHECK(file_of(map, "depth") == read_text(folder / "d/a.png"));
  CHECK(file_of(first_of(server.post("/v1/depth", request_of(file, R"(, "format": "color")"))), "depth") ==
        read_text(folder / "d/a_color.png"));
  CHECK(file_of(first_of(server.post("/v1/depth", request_of(file, R"(, "format": "npy")"))), "depth") ==
        read_text(folder / "d/a.npy"));
  CHECK(!first_of(server.post("/v1/depth", request_of(file, R"(, "format": "json")"))).find("depth"));

  const Json found = first_of(server.post("/v1/segment", request_of(file, R"(, "threshold": 0.3)")));
  for (const char* const member : {"task", "segments"})
    CHECK(are_same(found.at(member), segments.at(member)));
  CHECK(file_of(found, "segmentation") == read_text(folder / "s/a.png"));
  CHECK(file_of(first_of(server.post("/v1/segment", request_of(file, R"(, "threshold": 0.3,
                                                                        "format": "color")"))),
                "segmentation") == read_text(folder / "s/a_color.png"));
  const std::string ids = file_of(
      first_of(server.post("/v1/segment", request_of(file, R"(, "task": "semantic", "format": "npy")"))),
      "segmentation");
  const std::vector<float> found_ids = parse_npy(ids).floats();  // as all maps of the server
  const NpyArray stored = read_npz(folder / "s.npz").at("segmentation.0");
  REQUIRE(stored.bytes.size() == found_ids.size() * sizeof(std::int32_t));
  for (std::size_t i = 0; i < found_ids.size(); ++i) {
    std::int32_t id = 0;
    std::memcpy(&id, stored.bytes.data() + i * sizeof id, sizeof id);
    REQUIRE(found_ids[i] == static_cast<float>(id));
  }

  CHECK(refusal_of(server.post("/v1/depth", request_of(file, R"(, "model": "segment")"))) == "400 model");
  CHECK(refusal_of(server.post("/v1/depth", request_of(file, R"(, "raw": true)"))) == "400 raw");
  CHECK(refusal_of(server.post("/v1/depth", request_of(file, R"(, "colormap": "x")"))) == "400 colormap");
  CHECK(refusal_of(server.post("/v1/depth", request_of(file, R"(, "png_scale": 0)"))) == "400 png_scale");
  CHECK(refusal_of(server.post("/v1/depth", request_of(file, R"(, "format": "x")"))) == "400 format");
  CHECK(refusal_of(server.post("/v1/segment", request_of(file, R"(, "threshold": 2)"))) == "400 threshold");
  CHECK(refusal_of(server.post("/v1/segment", request_of(file, R"(, "task": "semantic", "overlap": 0.5)"))) ==
        "400 input[0]");
  CHECK(refusal_of(server.post("/v1/segment", request_of(file, R"(, "stuff": "horse")"))) == "400 input[0]");
  CHECK(refusal_of(server.post("/v1/depth", R"({"input": "bm8gaW1hZ2U="})")) == "400 input[0]");
  CHECK(refusal_of(server.post("/v1/pose", request_of(file))) == "400 model");
}

TEST_CASE("serve: boxes and keypoints are those of vit detect and vit pose") {
  const TestFolder folder;
  const std::string file = boxes_model("owlv2") + "/wide.png";
  const std::string words = R"(, "classes": "a cat, the remote control, dog", "threshold": 0.3)";
  const ServeProcess server({"--model", "owl=" + boxes_model("owlv2"), "--model",
                             "yolos=" + boxes_model("yolos"), "--model", "pose=" + boxes_model("vitpose")});
  const Json of_words =
      line_of(run_vit({"detect", "--model", boxes_model("owlv2"), "--classes",
                       "a cat, the remote control, dog", "--threshold", "0.3", "--format", "json", file}));
  REQUIRE(of_words.at("boxes").size() > 0);
  for (int round = 0; round < 2; ++round) {  // the second time with vectors that were kept
    const Json served = first_of(server.post("/v1/detect", request_of(file, R"(, "model": "owl")" + words)));
    CHECK(are_same(served.at("boxes"), of_words.at("boxes")));
  }
  const Json of_classes = line_of(
      run_vit({"detect", "--model", boxes_model("yolos"), "--threshold", "0", "--format", "json", file}));
  const Json served =
      first_of(server.post("/v1/detect", request_of(file, R"(, "model": "yolos", "threshold": 0)")));
  REQUIRE(of_classes.at("boxes").size() > 0);
  CHECK(are_same(served.at("boxes"), of_classes.at("boxes")));

  const std::string boxes = R"([[4, 3, 30, 28], [900, 900, 950, 950], {"bbox": [1, 2, 20, 30]}])";
  write_text(folder / "boxes.jsonl", R"({"file": ")" + file + R"(", "boxes": )" + boxes + "}\n");
  const Json poses = line_of(run_vit({"pose", "--model", boxes_model("vitpose"), "--boxes",
                                      folder / "boxes.jsonl", "--format", "json", file}));
  const Json keypoints = first_of(server.post("/v1/pose", request_of(file, R"(, "boxes": )" + boxes)));
  REQUIRE(keypoints.at("poses").size() == 3);
  CHECK(keypoints.at("poses")[1].at("keypoints").size() == 0);
  CHECK(are_same(keypoints.at("poses"), poses.at("poses")));
  const Json whole = line_of(run_vit({"pose", "--model", boxes_model("vitpose"), "--format", "json", file}));
  CHECK(are_same(first_of(server.post("/v1/pose", request_of(file))).at("poses"), whole.at("poses")));
  // what /v1/detect answers is what /v1/pose takes
  const HttpAnswer lines =
      server.post("/v1/pose", R"({"input": [")" + data_uri(file) + R"(", ")" + data_uri(file) + R"("],
                     "boxes": [{"boxes": [{"box": [4, 3, 30, 28], "label": "a"}]}, []]})",
                  {"Content-Type: application/json", "Accept: application/x-ndjson"});
  REQUIRE(lines.status == 200);
  REQUIRE(lines_of(lines.body).size() == 2);
  CHECK(are_same(parse_json(lines_of(lines.body)[0], "line").at("poses")[0], poses.at("poses")[0]));

  CHECK(refusal_of(server.post("/v1/detect", request_of(file))) == "400 model");
  CHECK(refusal_of(server.post("/v1/detect", request_of(file, R"(, "model": "owl")"))) == "400 classes");
  CHECK(refusal_of(server.post("/v1/detect", request_of(file, R"(, "model": "yolos", "classes": "a")"))) ==
        "400 classes");
  CHECK(refusal_of(server.post("/v1/detect", request_of(file, R"(, "model": "owl", "classes": "a,,b")"))) ==
        "400 classes");
  CHECK(refusal_of(server.post("/v1/pose", request_of(file, R"(, "boxes": [[3, 3, 3, 9]])"))) == "400 boxes");
  CHECK(refusal_of(server.post("/v1/pose", request_of(file, R"(, "boxes": [[[1, 1, 3, 9]], []])"))) ==
        "400 boxes");
  CHECK(refusal_of(server.post("/v1/pose", request_of(file, R"(, "label": "person")"))) == "400 label");
}

TEST_CASE("serve: many maps at once are each their own, and count among what waits") {
  const TestFolder folder;
  std::vector<std::string> files, expected;
  std::string inputs;
  const ServeProcess server({"--model", dense_model("hf-depth-anything"), "--threads", "2", "--batch", "4"});
  for (std::size_t i = 0; i < 9; ++i) {
    files.push_back(folder / (std::to_string(i) + ".ppm"));
    write_picture(files.back(), 20 + i, 40 - 2 * i, static_cast<unsigned>(i));
    inputs += (i == 0 ? "\"" : ", \"") + data_uri(files.back()) + "\"";
    expected.push_back(file_of(first_of(server.post("/v1/depth", request_of(files.back()))), "depth"));
  }
  const HttpAnswer all = server.post("/v1/depth", "{\"input\": [" + inputs + ", \"bm8gaW1hZ2U=\"]}",
                                     {"Accept: application/x-ndjson"});
  REQUIRE(all.status == 200);
  const std::vector<std::string> lines = lines_of(all.body);
  REQUIRE(lines.size() == files.size() + 1);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Json one = parse_json(lines[i], "line");
    CHECK(one.at("index").as_size() == i);
    CHECK(file_of(one, "depth") == expected[i]);
  }
  CHECK(parse_json(lines.back(), "line").find("error"));
  CHECK(contains(server.get("/metrics").body, "vit_queue_depth 0\n"));
  CHECK(contains(server.get("/openapi.json").body, "/v1/depth"));
}

TEST_SUITE_END();
