// vit embed to a folder of parts: what the parts hold, that they survive any end of the run, and what is not
// continued.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/sha256.h"
#include "tests/apps/program.h"
#include "tests/support/rng.h"
#include "tests/support/sha256.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/io/source_file.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBroken = 4;  // of the inputs

/// Eleven images below in/, one of which is broken.
std::vector<std::string> write_images(const TestFolder& folder) {
  std::vector<std::string> paths;
  for (unsigned i = 0; i < 11; ++i) {
    paths.push_back(folder / ("in/" + std::to_string(100 + i) + ".ppm"));
    write_picture(paths.back(), 24 + i, 30, i);
  }
  write_text(paths[kBroken], "P6\n30 30\n255\ncut");
  return paths;
}

RunResult embed(std::vector<std::string> arguments, const RunOptions& options = {}) {
  return run_vit(with_model("embed", std::move(arguments)), options);
}

/// The bytes of all files of a folder.
std::map<std::string, std::string> bytes_of(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out[entry.path().filename()] = read_text(entry.path());
  return out;
}

std::vector<std::string> names_of(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& [name, bytes] : bytes_of(folder)) out.push_back(name);
  return out;
}

TEST_CASE("apps: SHA-256 and its HMAC give the values of FIPS 180-4 and RFC 4231") {
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  CHECK(app::sha256(bytes("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const TestFolder folder;
  const auto hmac = [&](const std::string& key, const std::string& content) {
    test::write_text(folder / "content", content);
    return app::hmac_sha256(bytes(key), internal::SourceFile(folder / "content", "test"));
  };
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace

TEST_CASE("apps: parts hold the rows of one run, and a row of NaN for what failed") {
  const TestFolder folder;
  const std::vector<std::string> images = write_images(folder);
  const RunResult result = embed({folder / "in", "--output", folder / "out/", "--part-size", "4"});
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(result.err.starts_with("vit: " + images[kBroken] + ": "));
  CHECK(names_of(folder / "out") ==
        std::vector<std::string>{"part-00000.jsonl", "part-00000.npy", "part-00001.jsonl", "part-00001.npy",
                                 "part-00002.jsonl", "part-00002.npy", "run.json"});
  CHECK(embed({folder / "in", "--output", folder / "whole.npy"}).exit_code == 1);
  const std::vector<float> expected = parse_npy(read_text(folder / "whole.npy")).floats();
  std::vector<float> numbers;
  std::size_t row = 0;
  for (const char* part : {"out/part-00000", "out/part-00001", "out/part-00002"}) {
    const NpyArray array = parse_npy(read_text(folder / (std::string(part) + ".npy")));
    const std::vector<std::string> lines = lines_of(read_text(folder / (std::string(part) + ".jsonl")));
    REQUIRE(array.shape == std::vector<std::size_t>{lines.size(), 36});
    const std::vector<float> rows = array.floats();
    for (std::size_t i = 0; i < lines.size(); ++i, ++row) {
      const Json line = parse_json(lines[i], "line");
      const auto first = rows.begin() + static_cast<std::ptrdiff_t>(36 * i);
      CHECK(line.at("file").as_string() == images[row]);
      if (row == kBroken) {
        CHECK(line.size() == 2);
        CHECK(contains(line.at("error").as_string(), "truncated"));
        CHECK(std::all_of(first, first + 36, [](float x) { return std::isnan(x); }));
        continue;
      }
      CHECK(line.size() == 4);
      CHECK(line.at("width").as_size() == 30);
      CHECK(line.at("height").as_size() == 24 + row);
      const std::string bytes = read_text(images[row]);
      CHECK(line.at("sha256").as_string() == sha256(bytes.data(), bytes.size()));
      numbers.insert(numbers.end(), first, first + 36);
    }
  }
  CHECK(row == 11);
  CHECK(numbers == expected);
}

TEST_CASE("apps: parts of safetensors take any features, of shapes of their own too") {
  const TestFolder folder;
  const std::vector<std::string> images = write_images(folder);
  const std::vector<std::string> common{folder / "in", "--size", "native", "--features", "pooled,patches"};
  std::vector<std::string> arguments = common;
  arguments.insert(arguments.end(),
                   {"--output", folder / "out/", "--format", "safetensors", "--part-size", "11"});
  CHECK(embed(arguments).exit_code == 1);
  const TensorFile part = open_safetensors(folder / "out/part-00000.safetensors");
  CHECK(part.at("pooled").shape == std::vector<std::size_t>{11, 36});
  CHECK(part.at("patches.10").shape == std::vector<std::size_t>{4, 3, 36});
  CHECK(part.at("patches.4").shape == std::vector<std::size_t>{3, 3, 36});  // of NaN
  arguments[arguments.size() - 3] = "npy";
  const RunResult npy = embed(arguments);
  CHECK(npy.exit_code == 2);
  CHECK(contains(npy.err, "exactly one feature"));
  CHECK(embed({folder / "in", "--size", "native", "--features", "patches", "--output", folder / "other/"})
            .exit_code == 2);
}

TEST_CASE("apps: digests are SHA-256, of members and of pixels as well") {
  for (const std::size_t size : {0u, 1u, 63u, 64u, 1000u}) {
    const std::string bytes(size, 'x');
    CHECK(app::sha256(std::as_bytes(std::span(bytes))) == sha256(bytes.data(), bytes.size()));
  }
  const TestFolder folder;
  Tensor<float> pixels(Shape{2, 3, 24, 32});
  write_npy(folder / "x.npy", pixels);
  CHECK(embed({folder / "x.npy", "--output", folder / "out/"}).exit_code == 0);
  const std::string file = read_text(folder / "x.npy");
  for (const std::string& line : lines_of(read_text(folder / "out/part-00000.jsonl")))
    CHECK(contains(
        line, "\"width\": 32, \"height\": 24, \"sha256\": \"" + sha256(file.data(), file.size()) + "\""));
}

TEST_CASE("apps: a run to parts that is killed and resumed writes the same bytes") {
  const TestFolder folder;
  write_images(folder);
  const auto arguments = [&](const std::string& output) {
    return std::vector<std::string>{folder / "in",   folder / "in", "--output",
                                    folder / output, "--part-size", "2",
                                    "--resume",      "--batch",     "1"};
  };
  const auto start = std::chrono::steady_clock::now();
  const RunResult whole = embed(arguments("whole/"));
  const auto needed =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  CHECK(whole.exit_code == 1);
  Rng rng(1);
  double longest = static_cast<double>(needed.count());
  for (int num_kills = 0; num_kills < 6;) {
    const auto after = std::chrono::milliseconds(1 + static_cast<int>(longest * rng.uniform(0.0, 1.0)));
    if (embed(arguments("killed/"), {.signal_after = after}).exit_code != 128 + 9) {  // it had ended: sooner
      fs::remove_all(folder / "killed");
      longest /= 2;
      num_kills = 0;
      continue;
    }
    ++num_kills;
    if (!fs::exists(folder / "killed")) continue;
    for (const auto& [name, bytes] : bytes_of(folder / "killed")) {
      if (!name.starts_with("part-") || !name.ends_with(".npy")) continue;
      const std::size_t rows =
          lines_of(read_text(folder / ("killed/" + name.substr(0, 10) + ".jsonl"))).size();
      CHECK(parse_npy(bytes).shape == std::vector<std::size_t>{rows, 36});
    }
  }
  const RunResult last = embed(arguments("killed/"));
  CHECK(last.exit_code == 1);
  CHECK(last.err == whole.err);  // failures are reported again
  CHECK(bytes_of(folder / "killed") == bytes_of(folder / "whole"));
}

TEST_CASE("apps: parts that are short, damaged or left over are rewritten") {
  const TestFolder folder;
  const std::vector<std::string> images = write_images(folder);
  const std::vector<std::string> arguments{folder / "in", "--output", folder / "out/",
                                           "--part-size", "4",        "--resume"};
  CHECK(embed(arguments).exit_code == 1);
  const auto whole = bytes_of(folder / "out");
  fs::remove(folder / "out/part-00001.npy");
  write_text(folder / "out/part-00002.jsonl.part-1-0", "left");
  write_text(folder / "out/.part-00001.npy", "left");
  CHECK(embed(arguments).exit_code == 1);
  CHECK(bytes_of(folder / "out") == whole);
  const std::string lines = read_text(folder / "out/part-00002.jsonl");
  write_text(folder / "out/part-00002.jsonl", lines.substr(0, lines.find('\n') + 1));
  CHECK(embed(arguments).exit_code == 1);
  CHECK(bytes_of(folder / "out") == whole);
  write_picture(folder / "in/200.ppm", 24, 24, 5);  // one input more: the short part grows
  CHECK(embed(arguments).exit_code == 1);
  CHECK(lines_of(read_text(folder / "out/part-00002.jsonl")).size() == 4);
}

TEST_CASE("apps: results of another model, size or precision are not continued") {
  const TestFolder folder;
  const std::vector<std::string> images = write_images(folder);
  for (const std::string output : {"out/", "x.jsonl"}) {
    const std::vector<std::string> arguments{images[0], images[1], "--output", folder / output};
    CHECK(embed(arguments).exit_code == 0);
    const auto refuses = [&](const std::vector<std::string>& more, const std::vector<std::string>& named) {
      std::vector<std::string> resumed = arguments;
      resumed.push_back("--resume");
      resumed.insert(resumed.end(), more.begin(), more.end());
      const RunResult result = embed(resumed);
      CAPTURE(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      for (const std::string& name : named) CHECK(contains(result.err, name));
    };
    refuses({"--dtype", "bfloat16"}, {"float32", "bfloat16"});
    refuses({"--size", "48"}, {"size model", "size 48x48"});
    refuses({"--normalize"}, {"normalized no", "has yes"});
    refuses({"--exif", "apply"}, {"without --exif", "--exif apply"});
    std::vector<std::string> other{"embed", "--model", golden_model("rope-mixed"), "--resume"};
    other.insert(other.end(), arguments.begin(), arguments.end());
    const RunResult result = run_vit(other);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err.substr(0, result.err.find('\n')), "rope-axial"));
    CHECK(contains(result.err.substr(0, result.err.find('\n')), "rope-mixed"));
  }
  const auto refuses = [&](std::vector<std::string> arguments, int code, const std::string& cause) {
    arguments.insert(arguments.end(), {"--output", folder / "out"});
    const RunResult result = embed(arguments);
    CHECK(result.exit_code == code);
    CHECK(contains(result.err, cause));
  };
  refuses({images[0], images[1]}, 2, "continue it with --resume");
  refuses({images[0], images[1], "--resume", "--part-size", "5"}, 1, "part_size 10000, but this run has 5");
  refuses({images[0], images[2], "--resume"}, 1, "101.ppm");
  refuses({images[0], "--resume"}, 1, "more inputs than the 1");
  CHECK(embed({images[0], "--part-size", "5", "--output", folder / "unnamed"}).exit_code == 0);
  CHECK(fs::exists(folder / "unnamed/part-00000.npy"));
  const RunResult loop = [&] {
    fs::create_symlink("loop", folder / "loop");
    return embed({images[0], "--output", folder / "loop/"});
  }();
  CHECK(loop.exit_code == 1);
  CHECK(contains(loop.err, "the folder cannot be created"));
  CHECK(embed({images[0], "--output", folder / "unnamed_too"}).exit_code == 2);
  CHECK(embed({images[0], "--format", "npy", "--output", folder / "x.npy"}).exit_code == 2);
  CHECK(embed({images[0], "--part-size", "0", "--output", folder / "new/"}).exit_code == 2);
}

TEST_CASE("apps: after an interrupt the rows that are done are written and the run can be resumed") {
  const TestFolder folder;
  std::vector<std::string> arguments{"--output", folder / "out/", "--resume", "--batch", "1"};
  const std::vector<std::string> images = write_images(folder);
  for (int i = 0; i < 300; ++i) arguments.insert(arguments.end(), images.begin(), images.begin() + kBroken);
  const auto has_begun = [&] { return fs::exists(folder / "out/run.json"); };
  const RunResult result = embed(arguments, {.signal_when = has_begun, .signal = SIGINT});
  CHECK((result.exit_code == 130 || result.exit_code == 0));
  CHECK(result.err.empty());
  if (fs::exists(folder / "out/part-00000.npy"))
    CHECK(parse_npy(read_text(folder / "out/part-00000.npy")).shape.front() ==
          lines_of(read_text(folder / "out/part-00000.jsonl")).size());
  CHECK(embed(arguments).exit_code == 0);
  CHECK(lines_of(read_text(folder / "out/part-00000.jsonl")).size() == 1200);
}
