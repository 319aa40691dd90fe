// --shard I/N: the outputs of the parts, joined in order, are the output of one run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

/// Seven images below in/, and one that is missing among them.
std::vector<std::string> write_images(const TestFolder& folder) {
  std::vector<std::string> paths;
  for (unsigned i = 0; i < 7; ++i) {
    paths.push_back(folder / ("in/" + std::to_string(i) + ".ppm"));
    write_picture(paths.back(), 24 + i, 30, i);
  }
  paths.insert(paths.begin() + 3, folder / "missing.jpg");
  return paths;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_CASE("apps: parts are contiguous, complete and as even as possible") {
  for (const std::size_t size : {0u, 1u, 2u, 7u, 12u, 1000u}) {
    for (const std::size_t count : {1u, 2u, 3u, 5u, 12u, 13u}) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const app::Shard shard{.index = i, .count = count};
        CHECK(shard.begin(size) == next);
        next = shard.end(size);
        const std::size_t part = next - shard.begin(size);
        CHECK(part >= size / count);
        CHECK(part <= size / count + 1);
      }
      CHECK(next == size);
    }
  }
}

TEST_CASE("apps: joined parts are the output of one run") {
  const TestFolder folder;
  const std::vector<std::string> images = write_images(folder);
  const auto run = [&](const std::string& command, const std::vector<std::string>& arguments) {
    const RunResult result = run_vit(with_model(command, joined(arguments, images)));
    CHECK(result.exit_code <= 1);
    return result;
  };
  for (const char* format : {"text", "json", "csv"}) {
    std::string parts, errors;
    for (const char* shard : {"0/3", "1/3", "2/3"}) {
      const RunResult part = run("classify", {"--format", format, "--shard", shard});
      parts += part.out;
      errors += part.err;
    }
    const RunResult whole = run("classify", {"--format", format});
    CHECK(parts == whole.out);
    CHECK(errors == whole.err);  // the missing file is reported once
  }
  for (const char* command : {"embed", "preprocess"}) {
    const std::vector<std::string> size{"--size", "32"};
    run(command, joined(size, {"--output", folder / "whole.npy"}));
    std::vector<float> rows;
    for (const char* shard : {"0/9", "1/9", "2/9", "3/9", "4/9", "5/9", "6/9", "7/9", "8/9"}) {
      run(command, joined(size, {"--shard", shard, "--output", folder / "part.npy"}));
      const NpyArray part = parse_npy(read_text(folder / "part.npy"));
      const NpyArray whole = parse_npy(read_text(folder / "whole.npy"));
      CHECK(std::vector(part.shape.begin() + 1, part.shape.end()) ==
            std::vector(whole.shape.begin() + 1, whole.shape.end()));
      const std::vector<float> numbers = part.floats();
      rows.insert(rows.end(), numbers.begin(), numbers.end());
    }
    CHECK(rows == parse_npy(read_text(folder / "whole.npy")).floats());
  }
  std::string lines;
  for (const char* shard : {"0/2", "1/2"}) {
    run("embed", {"--shard", shard, "--output", folder / "part.jsonl"});
    lines += read_text(folder / "part.jsonl");
  }
  run("embed", {"--output", folder / "whole.jsonl"});
  CHECK(lines == read_text(folder / "whole.jsonl"));
}

TEST_CASE("apps: a part without inputs is a valid file without rows") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 24, 24, 1);
  const auto run = [&](const std::string& name) {
    const RunResult result = run_vit(with_model(
        "embed", {folder / "a.ppm", "--shard", "0/2", "--features", "pooled", "--output", folder / name}));
    const RunResult empty = run_vit(with_model("embed", {folder / "a.ppm", "--shard", "1/2", "--features",
                                                         "pooled,patches", "--output", folder / name}));
    CHECK(result.exit_code == 0);
    CHECK(empty.exit_code == 0);
  };
  run("x.npz");
  const auto arrays = read_npz(folder / "x.npz");
  CHECK(arrays.at("pooled").shape == std::vector<std::size_t>{0, 36});
  CHECK(arrays.at("patches").shape.size() == 4);
  CHECK(arrays.at("files").shape == std::vector<std::size_t>{0});
  run("x.safetensors");
  const TensorFile tensors = open_safetensors(folder / "x.safetensors");
  CHECK(tensors.metadata().at("files") == "[]");
  run("x.jsonl");
  CHECK(read_text(folder / "x.jsonl").empty());
}

TEST_CASE("apps: parts that do not exist are wrong usage") {
  for (const char* shard :
       {"3/3", "-1/3", "1", "a/b", "0/0", "", "1/2/3", " 0/1", "0/99999999999999999999"}) {
    const RunResult result = run_vit(with_model("classify", {"--shard", shard, "a.ppm"}));
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "--shard"));
  }
}

TEST_CASE("apps: parts of texts joined are the texts of one run") {
  const TestFolder folder;
  write_text(folder / "texts.txt", "a cat\na dog\ntwo dogs\n");
  const auto texts = [&](const std::vector<std::string>& arguments) {
    const RunResult result = run_vit(joined(
        {"embed", "--model", data_path("golden/text/hf-clip").string(), "--text-file", folder / "texts.txt"},
        arguments));
    CHECK(result.exit_code == 0);
    return parse_npy(read_text(folder / "x.npy"));
  };
  std::vector<float> rows;
  for (const char* shard : {"0/4", "1/4", "2/4", "3/4"}) {
    const NpyArray part = texts({"--shard", shard, "--output", folder / "x.npy"});
    CHECK(part.shape.size() == 2);
    const std::vector<float> numbers = part.floats();
    rows.insert(rows.end(), numbers.begin(), numbers.end());
  }
  CHECK(rows == texts({"--output", folder / "x.npy"}).floats());
  CHECK(run_vit({"embed", "--text", "a cat", "a.ppm", "--shard", "0/2", "--output", folder / "x.npz"})
            .exit_code == 2);
}
