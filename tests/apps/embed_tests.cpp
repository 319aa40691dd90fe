// vit embed: the numbers, their independence of batch and threads, and every format.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/json_numbers.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

/// Runs embed with a golden model and returns the exit code.
int embed(const std::string& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"embed", "--model", golden_model(model)});
  const RunResult result = run_vit(arguments);
  CAPTURE(result.err);
  CHECK(result.out.empty());
  return result.exit_code;
}

/// Thirteen images of four sizes.
std::vector<std::string> write_pictures(const TestFolder& folder) {
  constexpr std::array<std::array<std::size_t, 2>, 4> kSizes{{{40, 30}, {24, 24}, {33, 71}, {40, 30}}};
  std::vector<std::string> paths;
  for (unsigned i = 0; i < 13; ++i) {
    paths.push_back(folder / ("in/" + std::to_string(100 + i) + ".ppm"));
    write_picture(paths.back(), kSizes[i % 4][0], kSizes[i % 4][1], i);
  }
  return paths;
}

}  // namespace

TEST_CASE("apps: embed reproduces the golden numbers from preprocessed pixels") {
  for (const std::string model : {"rope-axial", "rope-mixed-ape", "hf-vit", "timm-deit-distilled"}) {
    CAPTURE(model);
    const FixtureTensors golden(golden_model(model) + "/expected.safetensors");
    for (const std::string input : {"native", "wide"}) {
      const TestFolder folder;
      write_npy(folder / "x.npy", golden.floats(input + ".pixels").view());
      REQUIRE(
          embed(model, {folder / "x.npy", "--features", "tokens,pooled,logits,block.0,cls,patches,block.-1",
                        "--output", folder / "x.npz"}) == 0);
      const auto arrays = read_npz(folder / "x.npz");
      std::vector<std::string> names;
      for (std::size_t i = 0; i < golden.shape(input + ".pixels")[0]; ++i) {
        names.push_back((folder / "x.npy") + "[" + std::to_string(i) + "]");
      }
      CHECK(arrays.at("files").strings() == names);
      for (const std::string name : {"tokens", "pooled", "logits", "block.0", "block.1"}) {
        CAPTURE(name);
        const std::vector<double> expected = golden.doubles(input + "." + name);
        const std::vector<float> found = arrays.at(name).floats();
        CHECK(arrays.at(name).shape == golden.shape(input + "." + name));
        REQUIRE(found.size() == expected.size());
        double largest = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          largest = std::max(largest, std::abs(static_cast<double>(found[i]) - expected[i]));
        }
        CHECK(largest < 5e-5);  // float32 of the reference is up to 1e-5 from its own float64
      }
      // cls and patches are parts of tokens
      const std::vector<std::size_t> shape = arrays.at("tokens").shape, grid = arrays.at("patches").shape;
      const std::vector<float> tokens = arrays.at("tokens").floats(), patches = arrays.at("patches").floats();
      const std::vector<float> cls = arrays.at("cls").floats();
      const std::size_t width = shape[2], num_prefix = shape[1] - grid[1] * grid[2];
      REQUIRE(grid[3] == width);
      CHECK(std::equal(cls.begin(), cls.begin() + static_cast<std::ptrdiff_t>(width), tokens.begin()));
      CHECK(std::equal(patches.begin(),
                       patches.begin() + static_cast<std::ptrdiff_t>(grid[1] * grid[2] * width),
                       tokens.begin() + static_cast<std::ptrdiff_t>(num_prefix * width)));
    }
  }
}

TEST_CASE("apps: the files of embed do not depend on batch and threads, bit for bit") {
  const TestFolder folder;
  write_pictures(folder);
  for (const std::string size : {"model", "native"}) {
    std::string reference;
    for (const char* batch : {"1", "2", "3", "8", "13"}) {
      for (const char* threads : {"1", "2", "3"}) {
        CAPTURE(size);
        CAPTURE(batch);
        CAPTURE(threads);
        REQUIRE(embed("rope-axial",
                      {folder / "in", "--size", size, "--batch", batch, "--threads", threads, "--features",
                       "pooled,patches,block.0,logits", "--output", folder / "x.npz"}) == 0);
        const std::string bytes = read_text(folder / "x.npz");
        if (reference.empty()) reference = bytes;
        CHECK(bytes == reference);
      }
    }
  }
}

TEST_CASE("apps: all formats hold the same numbers") {
  const TestFolder folder;
  const std::vector<std::string> paths = write_pictures(folder);
  for (const char* extension : {"npz", "safetensors", "jsonl", "npy"}) {
    REQUIRE(embed("rope-axial", {folder / "in", "--output", folder / ("x." + std::string(extension))}) == 0);
  }
  const auto arrays = read_npz(folder / "x.npz");
  CHECK(arrays.at("files").strings() == paths);
  const std::vector<float> pooled = arrays.at("pooled").floats();
  const NpyArray npy = parse_npy(read_text(folder / "x.npy"));
  CHECK(npy.bytes == arrays.at("pooled").bytes);
  CHECK(npy.shape == std::vector<std::size_t>{13, 36});

  const TensorFile tensors = open_safetensors(folder / "x.safetensors");
  const Tensor<float> stored = to_float(tensors.at("pooled"));
  CHECK(std::equal(pooled.begin(), pooled.end(), stored.flat().begin(), stored.flat().end()));
  const Json files = parse_json(tensors.metadata().at("files"), "files");
  REQUIRE(files.size() == 13);
  CHECK(files[12].as_string() == paths[12]);

  std::vector<float> from_lines;
  const std::string lines = read_text(folder / "x.jsonl");
  std::size_t begin = 0;
  for (std::size_t row = 0; row < 13; ++row) {
    const std::size_t end = lines.find('\n', begin);
    const Json line = parse_json(std::string_view(lines).substr(begin, end - begin), "line");
    CHECK(line.at("file").as_string() == paths[row]);
    for (const double value : numbers_of(line.at("pooled"))) from_lines.push_back(static_cast<float>(value));
    begin = end + 1;
  }
  CHECK(from_lines == pooled);
}

TEST_CASE("apps: grids of different sizes are written one array per image") {
  const TestFolder folder;
  write_pictures(folder);
  REQUIRE(embed("rope-axial", {folder / "in", "--size", "native", "--features", "patches,pooled,block.-2",
                               "--output", folder / "x.npz"}) == 0);
  const auto arrays = read_npz(folder / "x.npz");
  CHECK(arrays.at("patches.0").shape == std::vector<std::size_t>{5, 3, 36});
  CHECK(arrays.at("patches.2").shape == std::vector<std::size_t>{4, 8, 36});
  CHECK(arrays.at("block.0.2").shape == std::vector<std::size_t>{33, 36});
  CHECK(arrays.at("pooled").shape == std::vector<std::size_t>{13, 36});
  CHECK(!arrays.contains("patches"));

  const RunResult npy = run_vit({"embed", "--model", golden_model("rope-axial"), folder / "in", "--size",
                                 "native", "--features", "patches", "--output", folder / "x.npy"});
  CHECK(npy.exit_code == 1);
  CHECK(npy.num_errors() == 6);  // the images of two other grids
  CHECK(parse_npy(read_text(folder / "x.npy")).shape == std::vector<std::size_t>{7, 5, 3, 36});
}

TEST_CASE("apps: a killed run of JSON lines is continued where it stopped") {
  const TestFolder folder;
  write_pictures(folder);
  REQUIRE(embed("rope-axial", {folder / "in", "--output", folder / "whole.jsonl"}) == 0);
  const std::string whole = read_text(folder / "whole.jsonl");
  std::size_t cut = 0;
  for (int line = 0; line < 5; ++line) cut = whole.find('\n', cut) + 1;
  write_text(folder / "x.jsonl.partial", whole.substr(0, cut + 40));
  write_text(folder / ".x.jsonl.run.json", read_text(folder / ".whole.jsonl.run.json"));
  REQUIRE(embed("rope-axial", {folder / "in", "--resume", "--output", folder / "x.jsonl"}) == 0);
  CHECK(read_text(folder / "x.jsonl") == whole);
  CHECK(folder.names() == std::vector<std::string>{".whole.jsonl.run.json", ".x.jsonl.run.json", "in",
                                                   "whole.jsonl", "x.jsonl"});
  CHECK(embed("rope-axial",
              {folder / "in", "--resume", "--features", "cls", "--output", folder / "x.jsonl"}) == 1);
  CHECK(read_text(folder / "x.jsonl") == whole);
  std::filesystem::remove(folder / ".x.jsonl.run.json");
  const RunResult unknown = run_vit({"embed", "--model", golden_model("rope-axial"), folder / "in",
                                     "--resume", "--output", folder / "x.jsonl"});
  CHECK(unknown.exit_code == 0);
  CHECK(contains(unknown.err, "x.jsonl: has no record of its run (.x.jsonl.run.json)"));
  CHECK_FALSE(std::filesystem::exists(folder / ".x.jsonl.run.json"));  // it would say more than is known
}

TEST_CASE("apps: default features and inputs that a model cannot take") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 40, 1);
  Tensor<float> small(Shape{3, 7, 40});  // below the patch size of 8
  write_npy(folder / "small.npy", small.view());
  const RunResult result = run_vit({"embed", "--model", golden_model("rope-axial"), folder / "small.npy",
                                    folder / "a.ppm", "--output", folder / "x.npz"});
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(result.err.find("small.npy[0]") != std::string::npos);
  const auto arrays = read_npz(folder / "x.npz");
  CHECK(arrays.at("pooled").shape == std::vector<std::size_t>{1, 36});
}

TEST_CASE("apps: only vectors of images are normalized, not every row of numbers") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 40, 1);
  const auto floats = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{folder / "a.ppm", "--features", "pooled,rollout.-1.0", "--output",
                                       folder / "x.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(embed("hf-dinov3", arguments) == 0);
    const auto arrays = read_npz(folder / "x.npz");
    return std::pair(arrays.at("pooled").floats(), arrays.at("rollout.1.0").floats());
  };
  const auto [pooled, rollout] = floats({});
  const auto [normalized, same] = floats({"--normalize"});
  CHECK(same == rollout);
  CHECK(normalized != pooled);
}

TEST_CASE("apps: embed writes the attention of blocks") {
  const FixtureTensors expected(data_path("golden/attention/hf-dinov3.safetensors"));
  const TestFolder folder;
  write_npy(
      folder / "x.npy",
      FixtureTensors(golden_model("hf-dinov3") + "/expected.safetensors").floats("native.pixels").view());
  REQUIRE(embed("hf-dinov3", {folder / "x.npy", "--features", "attention.0,attention.-1", "--output",
                              folder / "x.npz"}) == 0);
  const auto arrays = read_npz(folder / "x.npz");
  for (const std::string block : {"0", "1"}) {
    const std::vector<double> numbers = expected.doubles("block." + block);
    const std::vector<float> found = arrays.at("attention." + block).floats();
    CHECK(arrays.at("attention." + block).shape == expected.shape("block." + block));
    REQUIRE(found.size() == numbers.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(std::abs(static_cast<double>(found[i]) - numbers[i]) < 1e-5);
  }
  CHECK(embed("hf-dinov3", {folder / "x.npy", "--features", "attention.2", "--output", folder / "y.npz"}) ==
        2);
}
