// vit segment and vit detect with prompts: lines, arrays, files, objects, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/dense/prompts_file.h"
#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("prompts");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string model() {
  return data_path("golden/prompts/sam3").string();
}
std::string drawing() {
  return data_path("golden/prompts/images/drawing.png").string();
}

Json line_of(const RunResult& run) {
  return parse_json(std::string_view(run.out).substr(0, run.out.find('\n')), "line");
}

RunResult segment(std::vector<std::string> more) {
  std::vector<std::string> arguments{"segment", "--model", model(), drawing()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_vit(arguments);
}

}  // namespace

TEST_CASE("prompts: segments of several phrases, in falling score, with arrays and files") {
  const TestFolder folder;
  const std::string out = folder / "found.safetensors";
  const RunResult run = segment({"--classes", "a cat, a dog", "--threshold", "0.05", "-o", out});
  REQUIRE(run.exit_code == 0);
  const Json line = line_of(run);
  CHECK(line.at("file").as_string() == drawing());
  CHECK(line.at("task").as_string() == "instance");
  const Json segments = line.at("segments");
  REQUIRE(segments.size() > 1);
  const TensorFile arrays = open_safetensors(out);
  CHECK(arrays.at("masks.0").shape == std::vector<std::size_t>{segments.size(), 52, 75});
  CHECK(arrays.at("masks.0").dtype == Dtype::u8);
  CHECK(arrays.at("boxes.0").shape == std::vector<std::size_t>{segments.size(), 4});
  CHECK(arrays.at("segmentation.0").shape == std::vector<std::size_t>{52, 75});
  const std::vector<double> scores = to_double(arrays.at("scores.0")),
                            boxes = to_double(arrays.at("boxes.0"));
  CHECK(std::ranges::is_sorted(scores, std::ranges::greater()));
  bool has_cat = false, has_dog = false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    CHECK(segments[i].at("id").as_size() == i);
    CHECK(segments[i].at("score").as_double() == doctest::Approx(scores[i]));
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(segments[i].at("box")[k].as_double() == doctest::Approx(boxes[4 * i + k]).epsilon(1e-5));
    (segments[i].at("label").as_string() == "a cat" ? has_cat : has_dog) = true;
  }
  CHECK(has_cat);
  CHECK(has_dog);
  const std::string maps = folder / "maps/";
  REQUIRE(segment({"--classes", "a cat", "--threshold", "0.25", "-o", maps, "--format", "png,color,coco"})
              .exit_code == 0);
  const Json coco = load_json(maps + "drawing.json");
  REQUIRE(coco.size() > 0);
  CHECK(coco[0].at("category").as_string() == "a cat");
  CHECK(coco[0].at("segmentation").at("size")[0].as_size() == 52);
}

TEST_CASE("prompts: the model's own numbers, and pixels of classes") {
  const TestFolder folder;
  const std::string out = folder / "raw.npz", pixels = folder / "pixels.safetensors";
  CHECK(segment({"--classes", "a cat,a dog", "--raw", "-o", out}).exit_code == 0);
  const std::string raw = folder / "raw.safetensors";
  REQUIRE(segment({"--classes", "a cat,a dog", "--raw", "-o", raw}).exit_code == 0);
  const TensorFile arrays = open_safetensors(raw);
  CHECK(arrays.at("class_logits.0").shape == std::vector<std::size_t>{2, 6});
  CHECK(arrays.at("presence_logits.0").shape == std::vector<std::size_t>{2});
  CHECK(arrays.at("boxes.0").shape == std::vector<std::size_t>{2, 6, 4});
  CHECK(arrays.at("mask_logits.0").shape == std::vector<std::size_t>{2, 6, 24, 24});
  CHECK(arrays.at("semantic_logits.0").shape == std::vector<std::size_t>{2, 24, 24});
  const TensorFile expected = open_safetensors(data_path("golden/prompts/sam3/expected.safetensors"));
  const std::vector<double> wanted = to_double(expected.at("drawing.T.pred_logits.f64"));
  const std::vector<double> found = to_double(arrays.at("class_logits.0"));
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  REQUIRE(segment({"--classes", "a cat,a dog", "--task", "semantic", "-o", pixels}).exit_code == 0);
  CHECK(open_safetensors(pixels).at("segmentation.0").dtype == Dtype::i32);
}

TEST_CASE("prompts: objects by points and boxes") {
  const TestFolder folder;
  const std::string out = folder / "object.safetensors";
  const RunResult run = segment({"--points", "30,20.5", "--points", "60,44,-", "--all-masks", "-o", out});
  REQUIRE(run.exit_code == 0);
  CHECK(line_of(run).at("segments").size() == 3);
  CHECK(open_safetensors(out).at("masks.0").shape == std::vector<std::size_t>{3, 52, 75});
  const RunResult best = run_vit(
      {"segment", "--model", model(), "--points", "30,20.5", "60,44,-", drawing(), "--format", "json"});
  REQUIRE(best.exit_code == 0);
  CHECK(line_of(best).at("segments").size() == 1);
  CHECK(line_of(best).at("segments")[0].at("score").as_double() ==
        line_of(run).at("segments")[0].at("score").as_double());
  const std::string objects = folder / "objects.jsonl";
  std::ofstream(objects)
      << R"({"file": ")" << drawing()
      << R"(", "objects": [{"box": [12, 10, 50, 40], "multimask": false}, {"points": [[30, 20]]}]})";
  const RunResult two = segment({"--objects", objects, "--raw", "-o", out});
  REQUIRE(two.exit_code == 0);
  CHECK(open_safetensors(out).at("mask_logits.0").shape == std::vector<std::size_t>{4, 24, 24});
  CHECK(open_safetensors(out).at("object_logits.0").shape == std::vector<std::size_t>{2});
}

TEST_CASE("prompts: boxes as examples, and boxes as results") {
  const TestFolder folder;
  const std::string boxes = folder / "boxes.jsonl";
  std::ofstream(boxes) << R"({"file": ")" << drawing() << R"(", "boxes": [{"box": [20, 5, 70, 45]}]})";
  const RunResult shown = segment({"--boxes", boxes, "--threshold", "0.3", "--format", "json"});
  REQUIRE(shown.exit_code == 0);
  CHECK(line_of(shown).at("segments").size() > 0);
  const RunResult found = run_vit(
      {"detect", "--model", model(), "--boxes", boxes, "--threshold", "0.3", drawing(), "--format", "json"});
  REQUIRE(found.exit_code == 0);
  const Json segments = line_of(shown).at("segments"), results = line_of(found).at("boxes");
  REQUIRE(results.size() == segments.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    CHECK(results[i].at("score").as_double() == segments[i].at("score").as_double());
  std::ofstream(boxes) << R"({"file": "./other.png", "boxes": [{"box": [20, 5, 70, 45]}]})";
  const RunResult unused = segment({"--classes", "a cat", "--boxes", boxes, "--format", "json"});
  CHECK(unused.exit_code == 0);
  CHECK(contains(unused.err, "boxes of ./other.png are not used"));
}

TEST_CASE("prompts: what is refused, in one line") {
  const TestFolder folder;
  const auto refusal = [&](std::vector<std::string> more, int code) {
    const RunResult run = segment(std::move(more));
    CHECK(run.exit_code == code);
    CHECK(std::ranges::count(run.err, '\n') == 1);
    return run.err;
  };
  CHECK(contains(refusal({}, 2), "--classes"));
  CHECK(contains(run_vit({"detect", "--model", model(), drawing()}).err, "--classes"));
  CHECK(contains(refusal({"--points", "3"}, 2), "X,Y"));
  CHECK(contains(refusal({"--points", "3,4", "--classes", "a cat"}, 2), "one object each"));
  CHECK(contains(refusal({"--classes", "a cat", "--task", "panoptic"}, 2), "panoptic"));
  CHECK(contains(refusal({"--all-masks"}, 2), "--points"));
  CHECK(contains(refusal({"--points", "3,4", "--threshold", "0.5"}, 2), "--threshold is for --classes"));
  CHECK(contains(refusal({"--box", "1,2,30,40", "--mask-threshold", "0.5"}, 2), "--mask-threshold is for"));
  CHECK(contains(refusal({"--points", "3,4", "--palette", "voc"}, 2), "--palette"));
  CHECK(contains(refusal({"--classes", "a cat,,a dog"}, 2), "class 1 has no name"));
  CHECK(contains(refusal({"--points", "3,4", drawing()}, 2), "one image"));
  const std::string boxes = folder / "boxes.jsonl";
  std::ofstream(boxes) << R"({"file": "other.png", "boxes": [{"box": [1, 2, 3, 4], "label": "a bird"}]})";
  CHECK(contains(refusal({"--classes", "a cat,a dog", "--boxes", boxes}, 2), "a bird"));
  CHECK(contains(refusal({"--boxes", boxes}, 1), "no boxes of this image"));
  std::ofstream(boxes) << R"({"file": "other.png", "boxes": [{"box": [3, 2, 3, 4]}]})";
  CHECK(contains(refusal({"--boxes", boxes}, 1), "is empty"));
}

TEST_CASE("prompts: damaged files of prompts") {
  const auto boxes = [](const std::string& text) {
    return message_of([&] { app::parse_example_boxes(text, "f"); });
  };
  const auto objects = [](const std::string& text) {
    return message_of([&] { app::parse_objects(text, "f"); });
  };
  CHECK(boxes("{\"file\": \"a\", \"boxes\": [[1, 2, 3, 4]]}\n\n").empty());
  CHECK(contains(boxes("\n{\"file\": \"a\", \"boxes\": [[1, 2, 1, 4]]}"), "line 2"));
  CHECK(contains(boxes("{\"file\": \"a\"}"), "boxes"));
  CHECK(contains(boxes("{\"file\": \"a\", \"boxes\": [[1e9, 2, 3e9, 4]]}"), "pixels"));
  CHECK(contains(boxes("[]"), "line 1"));
  CHECK(boxes(R"({"file": "a", "boxes": [{"box": [1, 2, 3, 4], "label": "b", "score": 0.5, "index": 1}]})")
            .empty());
  CHECK(contains(boxes(R"({"file": "a", "boxes": [{"box": [1, 2, 3, 4], "postive": false}]})"), "postive"));
  CHECK(contains(objects(R"({"file": "a", "objects": [{"box": [1, 2, 3, 4], "multi": true}]})"),
                 "unknown key"));
  CHECK(contains(objects("{\"file\": \"a\", \"objects\": [{}]}"), "points, a box or a mask"));
  CHECK(contains(objects("{\"file\": \"a\", \"objects\": [{\"points\": [[1, 2, 3]]}]}"), "expected 1"));
  CHECK(contains(objects("{\"file\": \"a\", \"objects\": [{\"points\": [[1]]}]}"), "[x, y]"));
  CHECK(objects("{\"file\": \"a\", \"objects\": [{\"points\": [[1, 2]], \"multimask\": false}]}").empty());
}

TEST_CASE("prompts: bench --phrase measures a look, further phrases and clicks in each type") {
  const RunResult run = run_vit({"bench", "--model", model(), "--phrase", "a cat", "--dtype",
                                 "float32,bfloat16", "--threads", "1", "--seconds", "0", "--json"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const Json results = parse_json(run.out, "bench").at("results");
  REQUIRE(results.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json one = results[i];
    for (const char* const name :
         {"ms_per_image", "ms_per_phrase", "ms_per_click", "weights_bytes", "features_bytes"})
      CHECK(one.at(name).as_double() > 0);
    CHECK(one.at("percent_of_first").as_double() < 100);
    CHECK(one.at("instances").as_size() > 0);
  }
  CHECK(!results[0].find("iou_with_first"));
  const double iou = results[1].at("iou_with_first").at("mean").as_double();
  CHECK((iou > 0.8 && iou <= 1.0));
  CHECK(results[0].at("weights_bytes").as_double() == 2 * results[1].at("weights_bytes").as_double());
  CHECK(run_vit({"bench", "--model", model(), "--phrase", "a cat", "--sizes", "84"}).exit_code == 2);
  const RunResult other = run_vit({"bench", "--model", data_path("model").string(), "--phrase", "a cat"});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "prompts"));
}

TEST_CASE("prompts: a run that asks otherwise does not continue an earlier one") {
  const TestFolder folder;
  const auto asked = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.end(), {"--format", "png", "--output", folder / output});
    return segment(std::move(more));
  };
  const auto refuses = [&](const std::string& output, std::vector<std::string> first,
                           std::vector<std::string> second) {
    REQUIRE(asked(output, first).exit_code == 0);
    first.push_back("--resume");
    CHECK(asked(output, first).exit_code == 0);
    second.push_back("--resume");
    const RunResult run = asked(output, second);
    CHECK(run.exit_code == 1);
    CHECK(run.err.find("made with") != std::string::npos);
  };
  refuses("points/", {"--points", "20,20"}, {"--points", "5,30"});
  refuses("signs/", {"--points", "20,20", "5,30"}, {"--points", "20,20", "5,30,-"});
  refuses("box/", {"--box", "5,5,30,30"}, {"--box", "5,5,30,31"});
  const std::string file = folder / "objects.jsonl";
  const auto write_objects = [&](const char* point) {
    write_text(file, R"({"file": ")" + drawing() + R"(", "objects": [{"points": [)" + point + "]}]}\n");
  };
  write_objects("[20, 20, 1]");
  REQUIRE(asked("objects/", {"--objects", file}).exit_code == 0);
  write_objects("[5, 30, 1]");
  CHECK(asked("objects/", {"--objects", file, "--resume"}).exit_code == 1);
}

TEST_CASE("prompts: a mask that is not there is named") {
  const TestFolder folder;
  const std::string file = folder / "objects.jsonl";
  write_text(file, R"({"file": ")" + drawing() +
                       R"(", "objects": [{"points": [[20, 20, 1]], "mask": "missing.npy"}]})" + "\n");
  const RunResult run = segment({"--objects", file});
  CHECK(run.exit_code == 1);
  CHECK(run.err.find(folder / "missing.npy") != std::string::npos);
  CHECK(run.err.find("no such file") != std::string::npos);
}
