// vit depth, vit segment, and vit evaluate --task.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/truth_maps.h"
#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("dense");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string dense_model(const char* name) {
  return test::data_path("golden/dense").string() + "/" + name;
}

/// in/a.ppm, in/b.ppm, and what is no picture.
void write_inputs(const TestFolder& folder, bool with_broken = true) {
  std::filesystem::create_directories(folder / "in/sub");
  write_picture(folder / "in/a.ppm", 20, 31, 1);
  write_picture(folder / "in/sub/b.ppm", 27, 14, 2);
  if (with_broken) write_text(folder / "in/bad.png", "no picture at all");
}

RunResult run_dense(const char* command, const char* model, std::vector<std::string> arguments) {
  std::vector<std::string> all{command, "--model", dense_model(model)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_vit(all);
}

Json line(const std::string& text, std::size_t index) {
  return parse_json(lines_of(text).at(index), "stdout");
}

std::vector<std::int32_t> map_of(const TensorFile& file, const std::string& name) {
  const TensorEntry& entry = file.at(name);
  std::vector<std::int32_t> out(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

/// Runs of others and of the segment, alternating, down the columns.
std::vector<std::int64_t> runs_of(std::string_view letters) {
  std::vector<std::int64_t> runs;
  while (!letters.empty()) {
    std::int64_t value = 0;
    int bits = 0;
    bool more = true;
    for (; more && !letters.empty(); letters.remove_prefix(1), bits += 5) {
      const int letter = letters.front() - '0';
      value |= static_cast<std::int64_t>(letter & 0x1f) << bits;
      more = (letter & 0x20) != 0;
      if (!more && (letter & 0x10) != 0) value |= -1LL << (bits + 5);
    }
    runs.push_back(runs.size() > 2 ? value + runs[runs.size() - 2] : value);
  }
  return runs;
}

struct Refusal {
  const char* command;
  const char* model;
  std::vector<std::string> arguments;
  int exit_code;
  const char* words;
};

}  // namespace

TEST_CASE("apps: depth writes each kind of file for each image, and continues after a broken one") {
  const TestFolder folder;
  write_inputs(folder);
  const std::vector<std::string> arguments{folder / "in", "--output", folder / "out/", "--format",
                                           "png16,color,npy,pfm,ply,json"};
  const RunResult result = run_dense("depth", "hf-depth-anything", arguments);
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(contains(result.err, "bad.png"));
  REQUIRE(lines_of(result.out).size() == 2);
  const Json first = line(result.out, 0);
  CHECK(first.at("unit").as_string() == "metre");
  for (const char* const name : {"a", "sub/b"}) {
    for (const char* const ending : {".png", "_color.png", ".npy", ".pfm", ".ply"})
      CHECK(std::filesystem::exists(folder / ("out/" + std::string(name) + ending)));
  }
  const NpyArray depth = parse_npy(read_text(folder / "out/a.npy"));
  CHECK(depth.shape == std::vector<std::size_t>{20, 31});
  const std::vector<float> values = depth.floats();
  CHECK(*std::ranges::min_element(values) == static_cast<float>(first.at("min").as_double()));
  CHECK(read_text(folder / "out/a.ply").starts_with("ply"));
  // millimetres of 16 bits, and the same floats in PFM
  const Tensor<float> png = app::read_depth_map(folder / "out/a.png", 1000.0);
  const Tensor<float> pfm = app::read_depth_map(folder / "out/a.pfm", 1.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::abs(png.data()[i] - values[i]) <= 0.00051f);
    CHECK(pfm.data()[i] == values[i]);
  }

  SUBCASE("one file of one image") {
    const auto one = [&](const std::string& file, const std::vector<std::string>& more = {}) {
      std::vector<std::string> single{folder / "in/a.ppm", "--output", file};
      single.insert(single.end(), more.begin(), more.end());
      return run_dense("depth", "hf-depth-anything", single);
    };
    CHECK(one(folder / "one.png").exit_code == 0);
    CHECK(read_text(folder / "one.png") == read_text(folder / "out/a.png"));
    CHECK(one(folder / "color.png", {"--format", "color"}).exit_code == 0);
    CHECK(read_text(folder / "color.png") == read_text(folder / "out/a_color.png"));
    CHECK(one(folder / "one.pfm").exit_code == 0);
    CHECK(read_text(folder / "one.pfm") == read_text(folder / "out/a.pfm"));
    CHECK(one(folder / "one.png", {"--raw"}).exit_code == 2);
    CHECK(one(folder / "one.png", {folder / "in/sub/b.ppm"}).exit_code == 2);
  }
  SUBCASE("16 bits of other units, and depths beyond them") {
    const std::vector<std::string> finer{folder / "in/a.ppm", "--output", folder / "fine/", "--png-scale"};
    // with as many units a meter as the farthest depth leaves room for, all but the nearest pixels are cut
    const double scale = 65535.0 / (0.9 * first.at("max").as_double());
    std::vector<std::string> cut = finer;
    cut.push_back(std::to_string(scale));
    const RunResult of_cut = run_dense("depth", "hf-depth-anything", cut);
    CHECK(of_cut.exit_code == 0);
    const auto most = static_cast<float>(65535.0 / scale);
    const auto num_cut = std::ranges::count_if(values, [&](float value) { return value > most; });
    CHECK(num_cut > 0);
    CHECK(contains(of_cut.err, "vit: " + std::to_string(num_cut) + " pixel"));
    CHECK(contains(of_cut.err, "--png-scale"));
    const Tensor<float> coarse = app::read_depth_map(folder / "fine/a.png", scale);
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(std::abs(coarse.data()[i] - std::min(values[i], most)) <= 0.51f / static_cast<float>(scale));
    CHECK(result.num_errors() == 1);  // with millimeters none
    std::vector<std::string> wrong = finer;
    wrong.push_back("0");
    CHECK(run_dense("depth", "hf-depth-anything", wrong).exit_code == 2);
  }
  SUBCASE("a file that no run made is no result") {
    std::filesystem::create_directories(folder / "foreign");
    write_text(folder / "foreign/a.png", "my own file");
    const RunResult resumed =
        run_dense("depth", "hf-depth-anything",
                  {folder / "in/a.ppm", "--format", "png16", "--resume", "--output", folder / "foreign/"});
    CHECK(resumed.exit_code == 1);
    CHECK(resumed.err.find("foreign/a.png is there") != std::string::npos);
    CHECK(read_text(folder / "foreign/a.png") == "my own file");
  }
  SUBCASE("resumed, it does what is missing") {
    std::vector<std::string> again = arguments;
    CHECK(run_dense("depth", "hf-depth-anything", again).exit_code == 2);
    again.push_back("--resume");
    std::filesystem::remove(folder / "out/sub/b.pfm");
    const RunResult resumed = run_dense("depth", "hf-depth-anything", again);
    REQUIRE(lines_of(resumed.out).size() == 1);
    CHECK(lines_of(resumed.out)[0] == lines_of(result.out)[1]);
    CHECK(std::filesystem::exists(folder / "out/sub/b.pfm"));
    std::vector<std::string> other = again;
    other.insert(other.end(), {"--colormap", "turbo"});
    const RunResult mixed = run_dense("depth", "hf-depth-anything", other);
    CHECK(mixed.exit_code == 1);
    CHECK(contains(mixed.err, "colormap"));
    again[4] = "npy";
    CHECK(run_dense("depth", "hf-depth-anything", again).exit_code != 0);
  }
  SUBCASE("files of parts have the names of the whole run") {
    for (const char* const shard : {"0/3", "2/3"}) {
      run_dense(
          "depth", "hf-depth-anything",
          {folder / "in", "--shard", shard, "--output", folder / "parts/", "--resume", "--format", "npy"});
    }
    CHECK(std::filesystem::exists(folder / "parts/a.npy"));
    CHECK(std::filesystem::exists(folder / "parts/sub/b.npy"));
  }
  SUBCASE("parts of a run are the run") {
    std::string joined;
    for (const char* const shard : {"0/2", "1/2"}) {
      const RunResult part = run_dense(
          "depth", "hf-depth-anything",
          {folder / "in", "--format", "json", "--shard", shard, "--output", folder / "part.safetensors"});
      joined += part.out;
    }
    CHECK(joined == result.out);
    const TensorFile last = open_safetensors(folder / "part.safetensors");
    CHECK(last.find("depth.2") != nullptr);
    CHECK(last.find("depth.0") == nullptr);
  }
}

TEST_CASE("apps: segment gives ids, pictures and COCO's files that agree") {
  const TestFolder folder;
  write_inputs(folder, false);
  const std::vector<std::string> thresholds{"--threshold", "0.05"};
  for (const char* const task : {"semantic", "instance", "panoptic"}) {
    CAPTURE(task);
    std::vector<std::string> common{folder / "in", "--task", task};
    if (task != std::string("semantic")) common.insert(common.end(), thresholds.begin(), thresholds.end());
    std::vector<std::string> arrays = common, files = common;
    for (const std::string& word : {std::string("--output"), folder / (std::string(task) + ".safetensors")})
      arrays.push_back(word);
    for (const std::string& word : {std::string("--output"), folder / (std::string(task) + "/"),
                                    std::string("--format"), std::string("png,color,coco,json")})
      files.push_back(word);
    const RunResult of_arrays = run_dense("segment", "hf-eomt", arrays);
    const RunResult of_files = run_dense("segment", "hf-eomt", files);
    CAPTURE(of_files.err);
    REQUIRE(of_arrays.exit_code == 0);
    REQUIRE(of_files.exit_code == 0);
    CHECK(of_arrays.out == of_files.out);
    const Json found = line(of_files.out, 0);
    CHECK(found.at("task").as_string() == task);
    const TensorFile maps = open_safetensors(folder / (std::string(task) + ".safetensors"));
    const std::vector<std::int32_t> ids = map_of(maps, "segmentation.0");
    const Tensor<std::int32_t> picture = app::read_label_map(folder / (std::string(task) + "/a.png"));
    REQUIRE(picture.num_elements() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(picture.data()[i] == (ids[i] < 0 ? 255 : ids[i]));
    const Json coco = load_json(folder / (std::string(task) + "/a.json"));
    const Json segments = found.at("segments");
    if (task == std::string("panoptic")) {
      const Json annotation = coco.at("annotations")[0];
      const Tensor<std::int32_t> numbers =
          app::read_label_map(folder / ("panoptic/" + std::string(annotation.at("file_name").as_string())));
      for (std::size_t i = 0; i < ids.size(); ++i) CHECK(numbers.data()[i] == ids[i] + 1);
      CHECK(annotation.at("segments_info").size() == segments.size());
      continue;
    }
    REQUIRE(coco.size() == segments.size());
    for (std::size_t s = 0; s < coco.size(); ++s) {
      CHECK(coco[s].at("category_id").as_size() == segments[s].at("index").as_size());
      std::int64_t at = 0, area = 0, pixels = 0;
      const auto runs = runs_of(coco[s].at("segmentation").at("counts").as_string());
      for (std::size_t r = 0; r < runs.size(); at += runs[r++]) {
        area += r % 2 == 1 ? runs[r] : 0;
        for (std::int64_t k = at; r % 2 == 1 && k < at + runs[r]; ++k) {
          const std::size_t x = static_cast<std::size_t>(k) / 20, y = static_cast<std::size_t>(k) % 20;
          pixels += ids[y * 31 + x] == segments[s].at("id").as_integer() ? 1 : 0;
        }
      }
      CHECK(at == 20 * 31);
      CHECK(area == segments[s].at("area").as_integer());
      CHECK(pixels == area);
    }
  }
}

TEST_CASE("apps: depth and segment refuse what does not go together") {
  const TestFolder folder;
  write_inputs(folder, false);
  const std::string in = folder / "in", out = folder / "out/", file = folder / "x.safetensors";
  const std::vector<Refusal> refusals{
      {"segment", "hf-eomt", {in, "--task", "thing"}, 2, "semantic"},
      {"segment", "hf-eomt", {in, "--threshold", "1.5"}, 2, "--threshold"},
      {"segment", "hf-eomt", {in, "--task", "semantic", "--threshold", "0.5"}, 2, "instance and panoptic"},
      {"segment", "hf-eomt", {in, "--task", "instance", "--overlap", "0.5"}, 2, "panoptic"},
      {"segment", "hf-eomt", {in, "--stuff", "sky,horse"}, 2, "horse"},
      {"segment", "hf-eomt", {in, "--stuff", "3"}, 2, "0 to 2"},
      {"segment", "hf-eomt", {in, "--stuff", "1,,2"}, 2, "classes"},
      {"segment", "hf-eomt", {in, "--raw", "--output", out}, 2, "--raw"},
      {"segment", "hf-eomt", {in, "--resume", "--output", file}, 2, "--resume"},
      {"segment", "hf-eomt", {in, "--output", folder / "x.txt"}, 2, ".safetensors"},
      {"segment", "hf-eomt", {in, "--output", out, "--format", "ply"}, 2, "coco"},
      {"segment", "hf-eomt", {in, "--size", "24"}, 1, "12 x 12"},
      {"segment", "hf-depth-anything", {in}, 1, "classes"},
      {"segment", "dinov2-heads", {in}, 1, "no head"},
      {"depth", "hf-eomt", {in}, 1, "depth"},
      {"depth", "hf-depth-anything", {in, "--focal", "0"}, 2, "--focal"},
      {"depth", "hf-depth-anything", {in, "--colormap", "mud"}, 2, "mud"},
      {"evaluate", "hf-depth-anything", {in, "--task", "depth"}, 2, "--truth"},
      {"evaluate",
       "hf-depth-anything",
       {in, "--task", "depth", "--truth", in, "--reduce-labels"},
       2,
       "segment"},
      {"evaluate",
       "hf-depth-anything",
       {in, "--task", "segment", "--truth", in, "--align", "none"},
       2,
       "depth"},
      {"evaluate", "hf-depth-anything", {in, "--truth", in}, 2, "--task"},
      {"evaluate",
       "hf-depth-anything",
       {in, "--task", "depth", "--truth", in, "--depth-limits", "3,1"},
       2,
       "MIN"},
  };
  for (const Refusal& refusal : refusals) {
    const RunResult result = run_dense(refusal.command, refusal.model, refusal.arguments);
    CAPTURE(refusal.arguments.back());
    CAPTURE(result.err);
    CHECK(result.exit_code == refusal.exit_code);
    CHECK(contains(result.err, refusal.words));
  }
}

TEST_CASE("apps: options that would have no effect on maps are refused") {
  const TestFolder folder;
  write_inputs(folder, false);
  const std::string image = folder / "in/a.ppm";
  const std::vector<std::vector<std::string>> of_model{
      {"--max-depth", "10"}, {"--depth-range", "1,2"}, {"--taps", "0"}, {"--expert", "7"}};
  for (const std::vector<std::string>& option : of_model) {
    const RunResult result = run_dense("depth", "hf-depth-anything", {image, option[0], option[1]});
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "has no effect"));
  }
  CHECK(run_dense("depth", "hf-depth-anything", {image, "--max-depth", "20"}).exit_code == 0);  // its own
  const std::vector<std::vector<std::string>> of_output{{"--format", "npy"},
                                                        {"--raw"},
                                                        {"--format", "npy", "--output", folder / "y.png"},
                                                        {"--format", "png16", "--output", folder / "y.npz"},
                                                        {"--format", "json,color"}};
  for (const std::vector<std::string>& options : of_output) {
    std::vector<std::string> arguments{image};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const RunResult result = run_dense("depth", "hf-depth-anything", arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
  }
}

TEST_CASE("apps: colors, scales and focal lengths of files that are not written are refused") {
  const TestFolder folder;
  write_inputs(folder, false);
  const std::string in = folder / "in/a.ppm", out = folder / "out/";
  const std::vector<Refusal> refusals{
      {"depth", "hf-depth-anything", {in, "--colormap", "turbo"}, 2, "--colormap has no effect"},
      {"depth",
       "hf-depth-anything",
       {in, "--colormap", "turbo", "--format", "png16", "--output", out},
       2,
       "--colormap has no effect"},
      {"depth", "hf-depth-anything", {in, "--focal", "3", "--output", out}, 2, "--focal has no effect"},
      {"depth",
       "hf-depth-anything",
       {in, "--png-scale", "3", "--format", "color", "--output", out},
       2,
       "--png-scale has no effect"},
      {"segment", "hf-eomt", {in, "--palette", "voc"}, 2, "--palette has no effect"},
      {"segment", "hf-eomt", {in, "--palette", "voc", "--task", "instance", "--output", out}, 2, "semantic"},
      {"segment", "hf-eomt", {in, "--prompt-rule", "library"}, 2, "--prompt-rule is for prompts"},
      {"segment", "hf-eomt", {in, "--like", in + ":1,1", "--palette", "voc"}, 2, "--palette"}};
  for (const Refusal& refusal : refusals) {
    const RunResult result = run_dense(refusal.command, refusal.model, refusal.arguments);
    CAPTURE(refusal.words);
    CAPTURE(result.err);
    CHECK(result.exit_code == refusal.exit_code);
    CHECK(contains(result.err, refusal.words));
  }
  const std::string page = folder / "page.html";
  CHECK(run_dense("depth", "hf-depth-anything", {in, "--colormap", "turbo", "--html", page}).exit_code == 0);
  CHECK(run_dense("segment", "hf-eomt",
                  {in, "--palette", "voc", "--task", "semantic", "--output", folder / "colors/"})
            .exit_code == 0);
}

TEST_CASE("apps: lists with commas have spaces around words, and no empty words") {
  const TestFolder folder;
  write_inputs(folder, false);
  const std::string in = folder / "in/a.ppm";
  CHECK(run_dense("segment", "hf-eomt", {in, "--task", "panoptic", "--stuff", "0, 2"}).exit_code == 0);
  CHECK(run_dense("segment", "hf-eomt", {in, "--task", "panoptic", "--stuff", "0, ,2"}).exit_code == 2);
  const std::string out = folder / "out/";
  CHECK(run_dense("depth", "hf-depth-anything", {in, "--format", "npy, pfm", "--output", out}).exit_code ==
        0);
  CHECK(std::filesystem::exists(out + "a.npy"));
  CHECK(std::filesystem::exists(out + "a.pfm"));
}

TEST_CASE("apps: more regions than 16 bits hold have no PNG, and COCO's file has each once") {
  SegmentMap map{.map = Tensor<std::int32_t>(Shape{300, 220}), .segments = {}};
  for (std::size_t i = 0; i < map.map.num_elements(); ++i) {
    map.map.data()[i] = static_cast<std::int32_t>(i);
    map.segments.push_back({.id = static_cast<std::int32_t>(i), .index = 0, .label = "a", .area = 1});
  }
  CHECK_ERROR(ErrorKind::unsupported, ("66000 segments", ".npz"),
              app::segment_png(map, SegmentTask::instance, std::vector<app::Color>{{1, 2, 3}}));
  const Json coco = parse_json(app::coco_results(map, "a", "a.ppm"), "coco");
  REQUIRE(coco.size() == 66000);
  for (const std::size_t i : {std::size_t{0}, std::size_t{221}, std::size_t{65999}}) {
    const std::size_t place = i % 220 * 300 + i / 220;  // down the columns
    const std::vector<std::int64_t> runs = runs_of(coco[i].at("segmentation").at("counts").as_string());
    CHECK(runs.at(0) == static_cast<std::int64_t>(place));
    CHECK(runs.at(1) == 1);
    CHECK(runs.size() == (place == 65999 ? 2 : 3));
    CHECK(coco[i].at("bbox")[0].as_size() == i % 220);
    CHECK(coco[i].at("bbox")[1].as_size() == i / 220);
    CHECK(coco[i].at("bbox")[2].as_size() == 1);
  }
}

TEST_CASE("apps: results with other labels do not continue a run") {
  const TestFolder folder;
  write_inputs(folder, false);
  write_text(folder / "one.txt", "sky\nearth\nsea\n");
  write_text(folder / "two.txt", "wall\nfloor\ndoor\n");
  const auto labeled = [&](const char* labels) {
    return run_dense(
        "segment", "hf-eomt",
        {folder / "in/a.ppm", "--labels", folder / labels, "--output", folder / "maps/", "--resume"});
  };
  CHECK(labeled("one.txt").exit_code == 0);
  CHECK(labeled("one.txt").exit_code == 0);
  CHECK(labeled("two.txt").exit_code == 1);
}

TEST_CASE("apps: files of different images that would have one name are refused") {
  const TestFolder folder;
  write_inputs(folder, false);
  const auto refused = [&](const char* command, const char* model, const char* name, const char* format) {
    const std::filesystem::path input = std::filesystem::path(folder / "in") / name;
    std::filesystem::copy_file(folder / "in/a.ppm", input);
    const RunResult result =
        run_dense(command, model, {folder / "in", "--output", folder / "out/", "--format", format});
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "--output: "));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
    CHECK(run_dense(command, model, {folder / "in", "--output", folder / "one/", "--format", "color"})
              .exit_code == 0);
    std::filesystem::remove(input);
    std::filesystem::remove_all(folder / "one");
  };
  refused("depth", "hf-depth-anything", "a_color.ppm", "color,png16");
  refused("segment", "hf-eomt", "a_panoptic.ppm", "png,coco");
  refused("segment", "hf-eomt", "run.ppm", "coco");
}

TEST_CASE("apps: maps evaluated against themselves are perfect") {
  const TestFolder folder;
  write_inputs(folder, false);
  const auto figures = [&](const char* model, std::vector<std::string> arguments) {
    std::vector<std::string> all{folder / "in", "--format", "json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const RunResult result = run_dense("evaluate", model, all);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    return parse_json(result.out, "evaluate");
  };
  SUBCASE("depth") {
    run_dense("depth", "hf-depth-anything",
              {folder / "in", "--format", "npy", "--output", folder / "truth/"});
    const Json found = figures("hf-depth-anything", {"--task", "depth", "--truth", folder / "truth"});
    CHECK(found.at("abs_rel").as_double() == 0.0);
    CHECK(found.at("delta1").as_double() == doctest::Approx(1.0));
    CHECK(found.at("rmse").as_double() == 0.0);
    CHECK(found.at("images").as_size() == 2);
    std::filesystem::remove(folder / "truth/a.npy");
    const RunResult missing = run_dense("evaluate", "hf-depth-anything",
                                        {folder / "in", "--task", "depth", "--truth", folder / "truth"});
    CHECK(missing.exit_code == 1);
    CHECK(contains(missing.err, "no map of this name"));
    CHECK(contains(missing.out, "of 1 images"));
  }
  SUBCASE("classes") {
    run_dense("segment", "hf-eomt",
              {folder / "in", "--task", "semantic", "--format", "png", "--output", folder / "truth/"});
    const Json found = figures("hf-eomt", {"--task", "segment", "--truth", folder / "truth"});
    CHECK(found.at("miou").as_double() == 1.0);
    CHECK(found.at("accuracy").as_double() == 1.0);
    // other numbers of classes: 1 becomes 0, and 0 none
    const Json reduced =
        figures("hf-eomt", {"--task", "segment", "--truth", folder / "truth", "--reduce-labels"});
    CHECK(reduced.at("miou").as_double() < 1.0);
  }
  SUBCASE("panoptic segments") {
    run_dense("segment", "hf-eomt",
              {folder / "in", "--format", "coco", "--threshold", "0.8", "--output", folder / "truth/"});
    // the annotations of both images in one file, as a data set has them
    std::string joined = "{\"annotations\": [";
    for (const char* const name : {"a", "sub/b"}) {
      const std::string text = read_text(folder / ("truth/" + std::string(name) + ".json"));
      const std::size_t begin = text.find('[') + 1;
      joined += (joined.back() == '[' ? "" : ",") + text.substr(begin, text.rfind(']') - begin);
    }
    std::filesystem::rename(folder / "truth/sub/b_panoptic.png", folder / "truth/b_panoptic.png");
    write_text(folder / "truth.json", joined + "]}");
    const Json found = figures("hf-eomt", {"--task", "segment", "--truth", folder / "truth.json"});
    CHECK(found.at("pq").as_double() == doctest::Approx(found.at("classes").size() != 0 ? 1.0 : 0.0));
  }
}

TEST_CASE("vit show --data: the segments of vit segment, as the same type") {
  const TestFolder folder;
  write_inputs(folder, /*with_broken=*/false);
  REQUIRE(run_dense("segment", "hf-eomt", {folder / "in", "--output", folder / "s.npz"}).exit_code == 0);
  REQUIRE(run_dense("show", "hf-eomt", {folder / "in", "--what", "segments", "--data", folder / "d.npz"})
              .exit_code == 0);
  const auto segments = read_npz(folder / "s.npz"), shown = read_npz(folder / "d.npz");
  for (const char* const name : {"segmentation.0", "segmentation.1"}) {
    CHECK(shown.at(name).descr == "<i4");
    CHECK(shown.at(name).shape == segments.at(name).shape);
    CHECK(shown.at(name).bytes == segments.at(name).bytes);
  }
}
