// vit detect and vit pose: lines, arrays, folders, boxes of one in the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/dense/boxes_file.h"
#include "tests/apps/program.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("dense");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string golden(const std::string& name) {
  return data_path("golden/boxes/" + name).string();
}

std::vector<Json> lines_of(const RunResult& run) {
  std::vector<Json> lines;
  std::string_view rest = run.out;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(parse_json(rest.substr(0, end), "line"));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

std::vector<double> box_of(const Json& value) {
  std::vector<double> out;
  for (std::size_t i = 0; i < value.size(); ++i) out.push_back(value[i].as_double());
  return out;
}

std::vector<std::string> words_arguments(const std::string& picture) {
  return {"detect",      "--model", golden("owlv2"), "--classes", "a cat, the remote control, dog",
          "--threshold", "0.3",     "--format",      "json",      picture};
}

}  // namespace

TEST_CASE("detect: one JSON line for each image, in the order of the inputs") {
  const RunResult run = run_vit(words_arguments(golden("owlv2/wide.png")));
  REQUIRE(run.exit_code == 0);
  const TensorFile expected = open_safetensors(golden("owlv2/expected.safetensors"));
  const std::vector<double> rows = to_double(expected.at("wide.detected"));
  const std::vector<Json> lines = lines_of(run);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("file").as_string() == golden("owlv2/wide.png"));
  const Json boxes = lines[0].at("boxes");
  REQUIRE(boxes.size() * 6 == rows.size());
  const std::vector<std::string> names{"a cat", "the remote control", "dog"};
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::size_t index = boxes[i].at("index").as_size();
    CHECK(static_cast<double>(index) == rows[6 * i]);
    CHECK(boxes[i].at("label").as_string() == names[index]);
    CHECK(boxes[i].at("score").as_double() == doctest::Approx(rows[6 * i + 1]).epsilon(1e-5));
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(boxes[i].at("box")[k].as_double() == doctest::Approx(rows[6 * i + 2 + k]).epsilon(1e-4));
  }
}

TEST_CASE("detect: arrays, raw and at the size of the image") {
  const TestFolder folder;
  const std::string out = folder / "boxes.safetensors";
  const RunResult run =
      run_vit({"detect", "--model", golden("yolos"), golden("yolos"), "--threshold", "0.3", "-o", out});
  REQUIRE(run.exit_code == 0);
  CHECK(lines_of(run).size() == 2);
  const TensorFile arrays = open_safetensors(out);
  CHECK(arrays.at("boxes.0").shape.back() == 4);
  CHECK(arrays.at("scores.1").shape.front() == arrays.at("classes.1").shape.front());
  REQUIRE(run_vit({"detect", "--model", golden("yolos"), golden("yolos/high.png"), "--raw", "-o", out})
              .exit_code == 0);
  const TensorFile raw = open_safetensors(out),
                   expected = open_safetensors(golden("yolos/expected.safetensors"));
  for (const char* const name : {"boxes", "logits"}) {
    const std::vector<double> found = to_double(raw.at(std::string(name) + ".0"));
    const std::vector<double> wanted = to_double(expected.at(std::string("high.") + name));
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  }
}

TEST_CASE("detect: a folder with pictures and COCO's lists, resumed") {
  const TestFolder folder;
  const std::vector<std::string> arguments{"detect",
                                           "--model",
                                           golden("yolos"),
                                           golden("yolos/high.png"),
                                           golden("yolos/no.png"),
                                           "--format",
                                           "color,coco",
                                           "-o",
                                           folder / "out/",
                                           "--html",
                                           folder / "page.html"};
  const RunResult run = run_vit(arguments);
  CHECK(run.exit_code == 1);  // of no.png
  CHECK(run.err.find("no.png") != std::string::npos);
  CHECK(std::filesystem::exists(folder / "out/high_color.png"));
  CHECK(load_json(folder / "out/high.json").is_array());
  CHECK(read_text(folder / "page.html").find("high.png") != std::string::npos);
  CHECK(run_vit(arguments).exit_code == 2);  // results of an earlier run
  std::vector<std::string> resumed = arguments;
  resumed.push_back("--resume");
  CHECK(run_vit(resumed).exit_code == 1);
}

TEST_CASE("detect: options and models that do not match are refused") {
  CHECK(run_vit({"detect", "--model", golden("owlv2"), golden("owlv2/wide.png")}).exit_code == 2);
  CHECK(run_vit({"detect", "--model", golden("yolos"), "--classes", "cat", golden("owlv2/wide.png")})
            .exit_code == 2);
  CHECK(run_vit({"detect", "--model", golden("vitpose"), golden("owlv2/wide.png")}).exit_code == 1);
  CHECK(run_vit({"detect", "--model", golden("yolos"), "--threshold", "2", golden("owlv2/wide.png")})
            .exit_code == 2);
  CHECK(run_vit({"pose", "--model", golden("yolos"), golden("owlv2/wide.png")}).exit_code == 1);
  CHECK(run_vit({"pose", "--model", golden("vitpose"), "--label", "person", golden("owlv2/wide.png")})
            .exit_code == 2);
}

TEST_CASE("pose: boxes of a file, of other images none") {
  const TestFolder folder;
  const std::string wide = golden("vitpose/wide.png"), high = golden("vitpose/high.png");
  write_text(folder / "boxes.jsonl",
             "{\"file\": \"" + wide +
                 "\", \"boxes\": [{\"label\": \"person\", \"box\": [10.5, 4.25, 31.5, 34.25]}, "
                 "{\"label\": \"dog\", \"bbox\": [1, 1, 5, 5]}, "
                 "{\"label\": \"person\", \"bbox\": [-6, 15, 30, 12.5]}]}\n");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"pose", "--model", golden("vitpose"), "--boxes", folder / "boxes.jsonl"});
    return run_vit(more);
  };
  const RunResult found = run({"--label", "person", "--format", "json", wide, high});
  CHECK(found.exit_code == 1);
  CHECK(found.err.find("has this file") != std::string::npos);
  const std::vector<Json> lines = lines_of(found);
  REQUIRE(lines.size() == 1);
  const Json poses = lines[0].at("poses");
  REQUIRE(poses.size() == 2);
  CHECK(box_of(poses[1].at("box")) == std::vector<double>{-6, 15, 24, 27.5});
  const TensorFile expected = open_safetensors(golden("vitpose/expected.safetensors"));
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<double> wanted = to_double(expected.at("wide." + std::to_string(i) + ".keypoints"));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      CHECK(poses[i].at("keypoints")[k / 3][k % 3].as_double() == doctest::Approx(wanted[k]).epsilon(1e-4));
  }
  CHECK(run({wide, "-o", folder / "out/"}).exit_code == 0);
  CHECK(std::filesystem::exists(folder / "out/wide_color.png"));
  REQUIRE(run({wide, "-o", folder / "poses.safetensors"}).exit_code == 0);
  CHECK(open_safetensors(folder / "poses.safetensors").at("keypoints.0").shape ==
        std::vector<std::size_t>{3, 4, 3});
}

TEST_CASE("pose: a run is not resumed with another file of boxes of the same name") {
  const TestFolder folder;
  const std::string picture = golden("vitpose/high.png");
  const auto run = [&](const char* box) {
    write_text(folder / "boxes.jsonl", "{\"file\": \"" + picture + "\", \"boxes\": [" + box + "]}\n");
    return run_vit({"pose", "--model", golden("vitpose"), picture, "--boxes", folder / "boxes.jsonl",
                    "--resume", "-o", folder / "out/"});
  };
  CHECK(run("[0, 0, 10, 10]").exit_code == 0);
  CHECK(run("[0, 0, 10, 10]").exit_code == 0);
  const RunResult other = run("[2, 2, 12, 12]");
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "made with boxes"));
}

TEST_CASE("pose: without boxes the whole image, of preprocessed pixels their own") {
  const RunResult run =
      run_vit({"pose", "--model", golden("vitpose"), golden("vitpose/high.png"), "--format", "json"});
  REQUIRE(run.exit_code == 0);
  const std::vector<Json> lines = lines_of(run);
  CHECK(box_of(lines[0].at("poses")[0].at("box")) == std::vector<double>{0, 0, 26, 33});
}

TEST_CASE("pose: a box outside of the image is reported and has no keypoints; the others have theirs") {
  const TestFolder folder;
  const std::string wide = golden("vitpose/wide.png"), high = golden("vitpose/high.png");
  write_text(folder / "b.jsonl", "{\"file\": \"" + wide +
                                     "\", \"boxes\": [[400, 0, 420, 9], [0, 0, 9, 9]]}\n{\"file\": \"" +
                                     high + "\", \"boxes\": []}\n");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"pose", "--model", golden("vitpose"), "--boxes", folder / "b.jsonl", wide, high});
    return run_vit(more);
  };
  const RunResult found = run({"--format", "json"});
  CHECK(found.exit_code == 0);
  CHECK(
      found.err.find("wide.png: no keypoints in the box (400, 0, 420, 9), which lies outside of the image") !=
      std::string::npos);
  const std::vector<Json> lines = lines_of(found);
  REQUIRE(lines.size() == 2);
  const Json poses = lines[0].at("poses");
  REQUIRE(poses.size() == 2);
  CHECK(box_of(poses[0].at("box")) == std::vector<double>{400, 0, 420, 9});
  CHECK(poses[0].at("keypoints").size() == 0);
  CHECK(poses[1].at("keypoints").size() == 4);
  CHECK(lines[1].at("poses").size() == 0);
  CHECK(run({}).out.find("outside of the image: no keypoints") != std::string::npos);
  REQUIRE(run({"-o", folder / "poses.safetensors"}).exit_code == 0);
  const std::vector<double> points =
      to_double(open_safetensors(folder / "poses.safetensors").at("keypoints.0"));
  CHECK(std::isnan(points[0]));
  CHECK(points[2] == 0.0);
  CHECK(points[4 * 3] == doctest::Approx(poses[1].at("keypoints")[0][0].as_double()));
  REQUIRE(run({"--raw", "-o", folder / "raw.safetensors"}).exit_code == 0);
  const std::vector<double> maps = to_double(open_safetensors(folder / "raw.safetensors").at("heatmaps.0"));
  CHECK(std::isnan(maps[maps.size() / 2 - 1]));
  CHECK(std::isfinite(maps[maps.size() / 2]));
}

TEST_CASE("pose: files of boxes that are none say where") {
  const auto cause_of = [](const char* line, std::vector<std::string> labels = {}) {
    try {
      app::BoxesFile(std::string("{\"file\": \"a\", \"boxes\": []}\n") + line, "b.jsonl", labels);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(cause_of("{\"file\": \"a\", \"boxes\": [[0, 0, 1, 1]]}\n\n") == "");
  for (const char* const line :
       {"[]", "{}", "{\"file\": 3, \"boxes\": []}", "{\"file\": \"a\"}", "{\"file\": \"a\", \"boxes\": 4}",
        "{\"file\": \"a\", \"boxes\": [[1, 2, 3]]}", "{\"file\": \"a\", \"boxes\": [[1, 2, 1, 5]]}",
        "{\"file\": \"a\", \"boxes\": [[3, 2, 1, 5]]}", "{\"file\": \"a\", \"boxes\": [[0, 0, NaN, 5]]}",
        "{\"file\": \"a\", \"boxes\": [[0, 0, 1e300, 5]]}",
        "{\"file\": \"a\", \"boxes\": [{\"bbox\": [0, 0, -1, 5]}]}",
        "{\"file\": \"a\", \"boxes\": [{\"label\": \"x\"}]}",
        "{\"file\": \"a\", \"boxes\": [[\"0\", 0, 1, 5]]}", "x"}) {
    CAPTURE(line);
    CHECK(cause_of(line).find("b.jsonl line 2") != std::string::npos);
  }
  CHECK(cause_of("{\"file\": \"a\", \"boxes\": [[0, 0, 1, 1]]}", {"person"}).find("no label") !=
        std::string::npos);
}
