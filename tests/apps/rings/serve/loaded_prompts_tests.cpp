// Prompts of the server: segments and boxes are those of the commands, and an image is looked at once.
#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/rings/serve/work/kept_images.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string prompt_model() {
  return data_path("golden/prompts/sam3").string();
}
std::string drawing() {
  return data_path("golden/prompts/images/drawing.png").string();
}

std::string asked_of(const std::string& file, const std::string& more) {
  return R"({"input": ")" + data_uri(file) + "\", " + more + "}";
}

Json data_of(const HttpAnswer& answer, std::size_t index = 0) {
  CAPTURE(answer.body.substr(0, 300));
  REQUIRE(answer.status == 200);
  return answer.json().at("data")[index];
}

std::string param_of(const HttpAnswer& answer) {
  return std::to_string(answer.status) + " " +
         std::string(answer.json().at("error").find_string("param").value_or(""));
}

std::string bytes_in(const Json& object, const std::string& member) {
  return app::decode_base64(object.at(member).as_string()).value();
}

/// What the command prints and writes.
Json printed(const std::vector<std::string>& more, const std::string& command = "segment") {
  std::vector<std::string> arguments{command, "--model", prompt_model(), drawing(), "--format", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult run = run_vit(arguments);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_json(lines_of(run.out).at(0), "stdout");
}

/// Segments of the server, which may say more of each than those of the command.
void check_segments(const Json& found, const Json& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].at("label").as_string() == expected[i].at("label").as_string());
    for (const char* const member : {"index", "score"})
      CHECK(found[i].at(member).as_double() == expected[i].at(member).as_double());
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(found[i].at("box")[k].as_double() == expected[i].at("box")[k].as_double());
  }
}

void write_lines(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

constexpr const char* kNoThreshold = R"("classes": "a cat, a dog", "threshold": 0.05)";

}  // namespace

TEST_CASE("serve: prompts of phrases are answered as by vit segment, and the image is looked at once") {
  const TestFolder folder;
  const std::string out = folder / "found.safetensors";
  const Json expected =
      printed({"--classes", "a cat, a dog", "--threshold", "0.05", "-o", out}).at("segments");
  REQUIRE(expected.size() > 1);
  const TensorFile arrays = open_safetensors(out);
  const ServeProcess server({"--model", "sam3=" + prompt_model(), "--threads", "2"});
  const auto ask = [&](const std::string& more) {
    return server.post("/v1/segment", asked_of(drawing(), kNoThreshold + more));
  };
  const Json found = data_of(ask(""));
  CHECK(found.at("task").as_string() == "instance");
  CHECK(found.at("width").as_size() == 75);
  CHECK(found.at("height").as_size() == 52);
  check_segments(found.at("segments"), expected);
  CHECK(bytes_in(found.at("segments")[0], "mask").starts_with("\x89PNG"));
  CHECK(bytes_in(found, "segmentation").starts_with("\x89PNG"));
  CHECK(server.metric("vit_images_total") == 1);
  CHECK(server.metric("vit_kept_images") == 1);
  CHECK(server.metric("vit_kept_bytes") > 0);

  const Json numbers = data_of(ask(R"(, "format": "npy")"));
  for (const char* const name : {"masks", "boxes", "scores", "segmentation"}) {
    const std::string file = bytes_in(numbers, name);
    const std::vector<std::byte> bytes = arrays.at(std::string(name) + ".0").bytes.copy();
    CHECK(file.ends_with(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  REQUIRE(run_vit({"segment", "--model", prompt_model(), drawing(), "--classes", "a cat, a dog",
                   "--threshold", "0.05", "--output", folder / "maps/", "--format", "png,color,coco"})
              .exit_code == 0);
  CHECK(bytes_in(found, "segmentation") == read_text(folder / "maps/drawing.png"));
  CHECK(bytes_in(data_of(ask(R"(, "format": "color")")), "segmentation") ==
        read_text(folder / "maps/drawing_color.png"));
  const Json runs = data_of(ask(R"(, "format": "coco")")).at("segments");
  const Json coco = load_json(folder / "maps/drawing.json");
  REQUIRE(runs.size() == coco.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    CHECK(runs[i].at("segmentation").at("counts").as_string() ==
          coco[i].at("segmentation").at("counts").as_string());
  CHECK(!data_of(ask(R"(, "format": "json")")).find("segmentation"));

  const Json pixels = printed({"--classes", "a cat, a dog", "--task", "semantic"});
  const Json semantic = data_of(server.post(
      "/v1/segment", asked_of(drawing(), R"("classes": ["a cat", "a dog"], "task": "semantic")")));
  CHECK(semantic.at("task").as_string() == "semantic");
  REQUIRE(semantic.at("segments").size() == pixels.at("segments").size());
  for (std::size_t i = 0; i < semantic.at("segments").size(); ++i)
    CHECK(semantic.at("segments")[i].at("area").as_size() == pixels.at("segments")[i].at("area").as_size());

  const Json boxes = printed({"--classes", "a cat", "--threshold", "0.05"}, "detect").at("boxes");
  const Json detected =
      data_of(server.post("/v1/detect", asked_of(drawing(), R"("classes": "a cat", "threshold": 0.05)")));
  check_segments(detected.at("boxes"), boxes);
  CHECK(server.metric("vit_images_total") == 1);  // of all these questions
  CHECK(server.metric("vit_kept_hits_total") == 6);
}

TEST_CASE("serve: prompts of boxes and objects are answered as by vit segment") {
  const TestFolder folder;
  write_lines(
      folder / "boxes.jsonl",
      R"({"file": ")" + drawing() +
          R"(", "boxes": [{"box": [10, 8, 40, 30], "positive": true}, {"box": [50, 5, 70, 20], "positive": false}]})");
  const Json by_boxes =
      printed({"--boxes", folder / "boxes.jsonl", "--threshold", "0.05", "-o", folder / "a.npz"});
  const Json by_points = printed({"--points", "20,15", "--points", "60,40,-", "-o", folder / "b.npz"});
  const Json by_box = printed({"--box", "10,8,40,30", "--all-masks", "-o", folder / "c.npz"});
  const ServeProcess server({"--model", prompt_model(), "--threads", "1"});
  const auto segments = [&](const std::string& more) {
    return data_of(server.post("/v1/segment", asked_of(drawing(), more))).at("segments");
  };
  check_segments(segments(R"("threshold": 0.05, "boxes": [{"box": [10, 8, 40, 30]},
                             {"box": [50, 5, 70, 20], "positive": false}])"),
                 by_boxes.at("segments"));
  check_segments(segments(R"("points": [[20, 15], [60, 40, 0]])"), by_points.at("segments"));
  check_segments(segments(R"("box": [10, 8, 40, 30], "all_masks": true)"), by_box.at("segments"));
  const Json objects = segments(R"("objects": [{"points": [[20, 15], [60, 40, 0]]},
                                               {"box": [10, 8, 40, 30], "multimask": false}])");
  REQUIRE(objects.size() == 2);
  CHECK(objects[0].at("score").as_double() == by_points.at("segments")[0].at("score").as_double());
  CHECK(objects[1].at("label").as_string() == "object 1");

  // the logits of a mask are a prompt again
  const Json first = data_of(server.post(
      "/v1/segment",
      asked_of(drawing(), R"("points": [[20, 15]], "all_masks": true, "raw": true, "format": "npy")")));
  const std::string logits = bytes_in(first, "mask_logits");
  const std::size_t edge = 4 * 84 / 14, bytes = edge * edge * sizeof(float);
  REQUIRE(logits.size() > 3 * bytes);
  write_lines(
      folder / "mask.npy", "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + [&] {
        std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(edge) +
                           ", " + std::to_string(edge) + "), }";
        head.resize(0x75, ' ');
        return head + "\n";
      }() + logits.substr(logits.size() - bytes));
  write_lines(folder / "objects.jsonl",
              R"({"file": ")" + drawing() + R"(", "objects": [{"points": [[20, 15]], "mask": "mask.npy"}]})");
  const Json refined = printed({"--objects", folder / "objects.jsonl", "-o", folder / "d.npz"});
  check_segments(segments(R"("objects": [{"points": [[20, 15]], "mask": ")" +
                          app::encode_base64(read_text(folder / "mask.npy")) + "\"}]"),
                 refined.at("segments"));
  CHECK(server.metric("vit_images_total") == 1);
}

TEST_CASE("serve: prompts of several images, and without memory for their features") {
  const ServeProcess server({"--model", prompt_model(), "--keep-images", "0", "--threads", "2"});
  const std::string two = R"({"input": [")" + data_uri(drawing()) + "\", \"" +
                          data_uri(data_path("images/cat_tabby.jpg").string()) + "\"], ";
  const auto ask = [&](const std::string& more) { return server.post("/v1/segment", two + more + "}"); };
  const Json data = ask(R"("classes": "a cat", "threshold": 0.05)").json().at("data");
  REQUIRE(data.size() == 2);
  CHECK(data[0].at("width").as_size() == 75);
  CHECK(data[1].at("index").as_size() == 1);
  const Json objects =
      ask(R"("objects": [[{"points": [[3, 4]]}], [{"box": [1, 2, 30, 40]}, {"points": [[9, 9]]}]])")
          .json()
          .at("data");
  CHECK(objects[0].at("segments").size() == 1);
  CHECK(objects[1].at("segments").size() == 2);
  CHECK(server.metric("vit_images_total") == 4);
  CHECK(server.metric("vit_kept_images") == 0);
  CHECK(param_of(ask(R"("points": [[3, 4]])")) == "400 points");
  CHECK(param_of(ask(R"("boxes": [[1, 2, 3, 4]])")) == "400 boxes");
  CHECK(param_of(ask(R"("boxes": [[[1, 2, 30, 40]], []])")) == "400 classes");
}

TEST_CASE("serve: prompts that cannot be answered are refused by the member that is wrong") {
  const ServeProcess server({"--model", "sam3=" + prompt_model(), "--model",
                             "vit=" + data_path("model").string(), "--model",
                             "eomt=" + data_path("golden/dense/hf-eomt").string(), "--threads", "1"});
  const auto refusal = [&](const std::string& more, const std::string& path = "/v1/segment") {
    return param_of(server.post(path, asked_of(drawing(), R"("model": "sam3")" + more)));
  };
  CHECK(refusal("") == "400 classes");
  CHECK(refusal(R"(, "classes": "a", "points": [[1, 2]])") == "400 classes");
  CHECK(refusal(R"(, "classes": "a", "threshold": 2)") == "400 threshold");
  CHECK(refusal(R"(, "classes": "a", "overlap": 0.5)") == "400 overlap");
  CHECK(refusal(R"(, "classes": "a", "raw": true)") == "400 raw");
  CHECK(refusal(R"(, "classes": "a", "task": "panoptic")") == "400 task");
  CHECK(refusal(R"(, "classes": "a", "task": "semantic", "format": "coco")") == "400 format");
  CHECK(refusal(R"(, "classes": "a", "prompt_rule": "x")") == "400 prompt_rule");
  CHECK(refusal(R"(, "classes": "a", "boxes": [{"box": [1, 2, 9, 9], "label": "b"}])") == "400 boxes");
  CHECK(refusal(R"(, "classes": "a, b", "boxes": [[1, 2, 9, 9]])") == "400 boxes");
  CHECK(refusal(R"(, "boxes": [[9, 2, 1, 9]])") == "400 boxes");
  CHECK(refusal(R"(, "boxes": [{"box": "x"}])") == "400 boxes");
  CHECK(refusal(R"(, "boxes": 3)") == "400 boxes");
  CHECK(refusal(R"(, "boxes": [[900, 2, 910, 9]])") == "400 input[0]");
  CHECK(refusal(R"(, "points": [[1, 2, 3]])") == "400 points");
  CHECK(refusal(R"(, "points": "1,2")") == "400 points");
  CHECK(refusal(R"(, "box": [1, 2])") == "400 box");
  CHECK(refusal(R"(, "objects": [{}])") == "400 objects");
  CHECK(refusal(R"(, "objects": [{"points": [[1, 2]], "mask": "bm8gbWFzaw=="}])") == "400 objects");
  CHECK(refusal(R"(, "objects": [{"points": [[1, 2]], "mask": "!"}])") == "400 objects");
  CHECK(refusal(R"(, "points": [[1, 2]], "task": "semantic")") == "400 task");
  CHECK(refusal(R"(, "classes": ")" + std::string(500, 'x') + " " + std::string(500, 'y') + "\"") ==
        "400 input[0]");
  CHECK(refusal(R"(, "classes": "a", "template": "{}")", "/v1/detect") == "400 template");
  CHECK(refusal(R"(, "points": [[1, 2]])", "/v1/detect") == "400 points");
  CHECK(param_of(server.post("/v1/segment", asked_of(drawing(), R"("model": "eomt", "classes": "a")"))) ==
        "400 classes");
  CHECK(param_of(server.post("/v1/segment", asked_of(drawing(), R"("model": "vit", "classes": "a")"))) ==
        "400 model");
  // what takes prompts is found without a name only if nothing else cuts out
  CHECK(param_of(server.post("/v1/segment", asked_of(drawing(), R"("classes": "a")"))) == "400 model");
  const Json models = server.get("/v1/models").json().at("data");
  CHECK(models[0].at("tasks").size() == 2);
  CHECK(models[0].at("tasks")[0].as_string() == "phrases");
  CHECK(models[0].at("tasks")[1].as_string() == "objects");
}

TEST_CASE("serve: images are kept for their client, the least recently used ones dropped first") {
  const auto image = [](std::size_t bytes) {
    return std::make_shared<const app::KeptImage>(
        app::KeptImage{.features = nullptr, .size = {1, 1}, .num_bytes = bytes, .by = nullptr});
  };
  app::KeptImages kept(100);
  kept.add({0, "a", "x"}, image(40));
  kept.add({0, "a", "y"}, image(40));
  CHECK(!kept.has({0, "b", "x"}));
  CHECK(!kept.has({1, "a", "x"}));
  CHECK(kept.find({0, "a", "x"}) != nullptr);  // used again: y is the oldest now
  kept.add({0, "a", "z"}, image(30));
  CHECK(kept.has({0, "a", "x"}));
  CHECK(!kept.has({0, "a", "y"}));
  CHECK(kept.num_bytes() == 70);
  kept.add({0, "a", "large"}, image(101));
  CHECK(!kept.has({0, "a", "large"}));
  CHECK(kept.num_images() == 2);
  kept.add({0, "a", "x"}, image(100));
  CHECK(kept.num_images() == 1);
  CHECK(kept.num_bytes() == 100);
  CHECK(kept.find({0, "a", "y"}) == nullptr);
  CHECK(kept.num_hits() == 1);
  kept.drop({0, "a", "x"});
  CHECK(kept.num_bytes() == 0);
  kept.add({0, "a", "x"}, image(1));
  kept.clear();
  CHECK(kept.num_images() == 0);
}

TEST_SUITE_END();
