// vit rope as a user runs it: the list, tables by family and by choices, and identification of files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/vit/inputs/npy.h"
#include "tests/apps/program.h"
#include "tests/support/files.h"
#include "vit/io/json.h"
#include "vit/io/npz.h"
#include "vit/io/safetensors.h"
#include "vit/position/conventions.h"

namespace vit::test {
namespace {

using namespace internal;

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> out;
  for (std::size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    out.push_back(parse_json(text.substr(start, end - start), "stdout"));
  return out;
}

Json identify(const std::string& path, int exit_code, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"rope", "identify", path, "--format", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = run_vit(arguments);
  CHECK_MESSAGE(result.exit_code == exit_code, result.err);
  REQUIRE(!result.out.empty());
  return parse_json(result.out, "stdout");
}

std::string name_in(const Json& found) {
  return std::string(found.find("convention") ? found.at("convention").as_string() : "none");
}

}  // namespace

TEST_CASE("rope: the list names every convention with its choices") {
  const RunResult result = run_vit({"rope", "--list", "--format", "json"});
  CHECK(result.exit_code == 0);
  const std::vector<Json> lines = json_lines(result.out);
  REQUIRE(lines.size() == position::rope_conventions().size());
  for (const Json& line : lines) {
    CHECK(position::find_rope_convention(line.at("name").as_string()) != nullptr);
    CHECK(line.at("families").size() > 0);
    for (const char* key : {"coordinates", "order", "pairing", "frequencies", "formula"})
      CHECK(!line.at(key).as_string().empty());
  }
  CHECK(run_vit({"rope", "--list"}).out.find("dinov3") != std::string::npos);
}

TEST_CASE("rope: tables of every family are identified, in both formats, with and without vectors") {
  const TestFolder folder;
  for (const Json& line : json_lines(run_vit({"rope", "--list", "--format", "json"}).out)) {
    const std::string name(line.at("name").as_string());
    for (const std::string file : {"tables.safetensors", "tables.npz"}) {
      for (const bool vectors : {false, true}) {
        CAPTURE(name);
        CAPTURE(file);
        CAPTURE(vectors);
        const bool is_line = line.at("order").as_string() == "x";
        std::vector<std::string> arguments{
            "rope",       "--family", name,       "--grid",     is_line ? "1x130" : "5x26",
            "--head-dim", "48",       "--output", folder / file};
        if (vectors) arguments.insert(arguments.end(), {"--vectors", "--prefix", "2"});
        const RunResult written = run_vit(arguments);
        REQUIRE_MESSAGE(written.exit_code == 0, written.err);
        const Json found = identify(folder / file, 0);
        // Tables have no class token, and those of a column per pair no pairing; a .safetensors file states
        // its convention.
        const bool is_stated = file.ends_with("safetensors");
        const bool is_alike = name == "mlcd" || name == "gemma4" || name == "pixtral" || name == "llama4";
        if (is_stated || !is_alike || (vectors && name != "llama4")) CHECK(name_in(found) == name);
        if (vectors && name != "vjepa2") CHECK(found.at("prefix").as_size() == 2);
        CHECK(found.at("error").as_double() < 1e-11);  // of angles up to 10000
      }
    }
  }
}

TEST_CASE("rope: numbers of the tables") {
  const TestFolder folder;
  const std::string file = folder / "tables.npz";
  REQUIRE(run_vit({"rope", "--family", "DINOv3", "--grid", "3x5", "--head-dim", "16", "--vectors", "--prefix",
                   "1", "--output", file, "--png", folder / "rope.png"})
              .exit_code == 0);
  CHECK(std::filesystem::file_size(folder / "rope.png") > 100);
  const TensorFile tables = open_npz(file);
  CHECK(tables.at("coords").shape == std::vector<std::size_t>{15, 2});
  CHECK(tables.at("q_rotated").shape == std::vector<std::size_t>{1, 16, 2, 16});
  CHECK(tables.at("scores").shape == std::vector<std::size_t>{2, 16, 16});
  const std::vector<double> coords = to_double(tables.at("coords")), angles = to_double(tables.at("angles"));
  const std::vector<double> cos = to_double(tables.at("cos")), sin = to_double(tables.at("sin"));
  CHECK(coords[2 * 7] == 2.0 * (2 + 0.5) / 5 - 1.0);  // patch 7 is row 1, column 2
  CHECK(coords[2 * 7 + 1] == 2.0 * (1 + 0.5) / 3 - 1.0);
  const double expected = 2.0 * 3.141592653589793 * (2.0 * (2 + 0.5) / 3 - 1.0) * std::pow(100.0, -0.25);
  CHECK(angles[10 * 8 + 1] == doctest::Approx(expected).epsilon(1e-15));  // row 2, pair 1 of y
  CHECK(cos[10 * 8 + 1] == std::cos(angles[10 * 8 + 1]));
  CHECK(sin[10 * 8 + 1] == std::sin(angles[10 * 8 + 1]));
  const std::vector<double> q = to_double(tables.at("q")), rotated = to_double(tables.at("q_rotated"));
  const std::size_t row = 11 * 2 * 16;  // token 11, head 0
  CHECK(rotated[row + 1] == doctest::Approx(q[row + 1] * cos[81] - q[row + 9] * sin[81]));
  CHECK(std::equal(q.begin(), q.begin() + 32, rotated.begin()));  // the prefix
}

TEST_CASE("rope: the one array of a .npy file is complex factors, cosines and sines, or angles") {
  const TestFolder folder;
  REQUIRE(run_vit({"rope", "--family", "dinov3", "--grid", "6x9", "--head-dim", "32", "--output",
                   folder / "t.npz"})
              .exit_code == 0);
  const TensorFile tables = open_npz(folder / "t.npz");
  const std::vector<double> cos = to_double(tables.at("cos")), sin = to_double(tables.at("sin"));
  std::vector<double> stacked = cos, interleaved;
  stacked.insert(stacked.end(), sin.begin(), sin.end());
  for (std::size_t i = 0; i < cos.size(); ++i) interleaved.insert(interleaved.end(), {cos[i], sin[i]});
  const auto write = [&](const std::string& name, const char* type, const std::vector<std::size_t>& shape,
                         const std::vector<double>& values) {
    const std::string bytes(reinterpret_cast<const char*>(values.data()), 8 * values.size());
    write_text(folder / name, app::npy_header(type, shape) + bytes);
    return folder / name;
  };
  const std::vector<double> angles = to_double(tables.at("angles"));
  for (const std::string& file :
       {write("angles.npy", "<f8", {54, 16}, angles), write("complex.npy", "<c16", {54, 16}, interleaved),
        write("stacked.npy", "<f8", {2, 54, 16}, stacked),
        write("pairs.npy", "<f8", {54, 16, 2}, interleaved)}) {
    CAPTURE(file);
    const Json found = identify(file, 0);
    CHECK(name_in(found) == "dinov3");
    CHECK(found.at("grid")[1].as_size() == 9);
  }
  std::vector<double> scaled = interleaved;
  for (double& value : scaled) value *= 2.0;
  const RunResult longer = run_vit({"rope", "identify", write("longer.npy", "<c16", {54, 16}, scaled)});
  CHECK(longer.exit_code == 1);
  CHECK(contains(longer.err, "lengths are not 1"));
  CHECK(longer.num_errors() == 1);
}

TEST_CASE("rope: hostile arrays are refused with one line") {
  const TestFolder folder;
  const auto header = [](const char* type, std::vector<std::size_t> shape) {
    return app::npy_header(type, shape);
  };
  const std::string nan("\0\0\xc0\x7f", 4), zeros(64, '\0');
  const std::pair<const char*, std::string> files[] = {
      {"empty", ""},
      {"magic", "\x93NUMPY"},
      {"version", std::string("\x93NUMPY\x09\0\x10\0", 10) + zeros},
      {"length", std::string("\x93NUMPY\x01\0\xff\xff", 10) + zeros},
      {"cut off", header("<f4", {4, 8}) + zeros},
      {"too long", header("<f4", {2, 4}) + zeros},
      {"huge", header("<f4", {std::size_t{1} << 40, std::size_t{1} << 40}) + zeros},
      {"large", header("<f4", {std::size_t{1} << 20, std::size_t{1} << 20}) + zeros},
      {"no columns", header("<f4", {16}) + zeros},
      {"no rows", header("<f4", {0, 8})},
      {"integers", header("<i4", {2, 8}) + zeros},
      {"big-endian", header(">f4", {2, 8}) + zeros},
      {"objects", header("|O", {2, 8}) + zeros},
      {"not a number", header("<f4", {2, 8}) + zeros.substr(4) + nan},
      {"six dimensions", header("<f4", {1, 1, 1, 1, 2, 8}) + zeros},
      {"complex of four dimensions", header("<c8", {1, 1, 1, 8}) + zeros}};
  for (const auto& each : files) {
    CAPTURE(std::string(each.first));
    write_text(folder / "hostile.npy", each.second);
    const RunResult result = run_vit({"rope", "identify", folder / "hostile.npy"});
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK_MESSAGE(result.num_errors() == 1, result.err);
    CHECK(contains(result.err, "hostile.npy"));
  }
  write_text(folder / "hostile.npy", header("<f4", {2, 8}) + zeros);  // nothing is rotated: no error, no name
  const RunResult still = run_vit({"rope", "identify", folder / "hostile.npy"});
  CHECK(still.exit_code == 1);
  CHECK(contains(still.out, "none of the published conventions"));
}

TEST_CASE("rope: tables of heads, of clips, in windows and of sequences") {
  const TestFolder folder;
  const std::string file = folder / "tables.safetensors";
  const auto write = [&](std::vector<std::string> more, int exit_code = 0) {
    std::vector<std::string> arguments{"rope", "--output", file, "--family"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_vit(arguments);
    CHECK_MESSAGE(result.exit_code == exit_code, result.err);
    return result;
  };
  const auto shape = [&](const char* name) { return open_safetensors(file).at(name).shape; };
  using Sizes = std::vector<std::size_t>;
  write({"golden-gate", "--grid", "3x5", "--head-dim", "16", "--heads", "3"});
  CHECK(shape("angles") == Sizes{3, 15, 8});
  write({"vjepa2.1", "--grid", "3x5", "--head-dim", "20", "--frames", "2", "--reference", "18x18"});
  CHECK(shape("angles") == Sizes{30, 10});
  CHECK(shape("coords") == Sizes{30, 3});
  CHECK(identify(file, 0).at("reference")[0].as_size() == 18);
  write({"minimax-m3", "--grid", "3x5", "--head-dim", "20", "--vectors"});
  CHECK(shape("angles") == Sizes{15, 9});
  write({"string", "--grid", "3x5", "--head-dim", "16"});
  CHECK(shape("basis") == Sizes{16, 16});
  CHECK(contains(write({"spiral", "--grid", "3x5", "--head-dim", "24"}, 2).err, "multiple of 16"));
  CHECK(contains(write({"rope-1d", "--grid", "3x5", "--head-dim", "24"}, 2).err, "1xN"));
  CHECK(contains(write({"vjepa2.1", "--grid", "1x5", "--head-dim", "24"}, 2).err, "at least 2"));
  CHECK(contains(write({"dinov3", "--grid", "1x5", "--head-dim", "24", "--heads", "3"}, 2).err, "--heads"));
}

TEST_CASE("rope: choices in place of a family are measured") {
  const TestFolder folder;
  const std::string file = folder / "tables.npz";
  REQUIRE(run_vit({"rope", "--coordinates", "scaled", "--reference", "8x10", "--order", "yx", "--pairing",
                   "halves", "--theta", "300", "--grid", "7x9", "--head-dim", "32", "--vectors", "--output",
                   file})
              .exit_code == 0);
  const Json found = identify(file, 1, {"--against", "EVA-02"});
  CHECK(name_in(found) == "none");
  CHECK(found.at("coordinates").as_string() == "scaled");
  CHECK(found.at("reference")[0].as_size() == 8);
  CHECK(found.at("reference")[1].as_size() == 10);
  CHECK(found.at("order").as_string() == "yx");
  CHECK(found.at("pairing").as_string() == "halves");
  CHECK(found.at("frequencies").at("theta").as_double() == 300.0);
  std::vector<std::string> differs;
  for (std::size_t i = 0; i < found.at("differs").size(); ++i)
    differs.emplace_back(found.at("differs")[i].as_string());
  CHECK(differs == std::vector<std::string>{"reference", "pairing", "frequencies", "theta"});
  const RunResult words = run_vit({"rope", "identify", file});
  CHECK(words.exit_code == 1);
  CHECK(contains(words.out, "none of the published conventions"));
  CHECK(contains(words.out, "nearest"));
}

TEST_CASE("rope: wrong usage and damaged files") {
  const TestFolder folder;
  const auto usage = [&](std::vector<std::string> arguments, const std::string& word) {
    arguments.insert(arguments.begin(), "rope");
    const RunResult result = run_vit(arguments);
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(contains(result.err, word), result.err);
    CHECK(result.num_errors() == 1);
  };
  const std::string out = folder / "t.npz";
  usage({}, "--list");
  usage({"identify"}, "one file");
  usage({"recognize", out}, "identify");
  usage({"--family", "dinov9", "--grid", "3x3", "--head-dim", "8", "--output", out}, "dinov3");
  usage({"--family", "dinov3", "--grid", "3", "--head-dim", "8", "--output", out}, "HxW");
  usage({"--family", "dinov3", "--grid", "3x3", "--head-dim", "6", "--output", out}, "multiple of 4");
  usage({"--family", "dinov3", "--theta", "10", "--grid", "3x3", "--head-dim", "8", "--output", out},
        "--theta");
  usage({"--coordinates", "scaled", "--grid", "3x3", "--head-dim", "8", "--output", out}, "--reference");
  usage({"--family", "dinov3", "--grid", "3x3", "--head-dim", "8", "--output", folder / "t.txt"}, ".npz");
  usage({"--family", "dinov3", "--grid", "4096x4096", "--head-dim", "1024", "--output", out}, "at most");
  usage({"--family", "dinov3", "--frames", "2", "--grid", "3x3", "--head-dim", "8", "--output", out}, "time");
  usage({"identify", folder / "t.csv"}, ".safetensors");

  write_text(folder / "damaged.npz", "PK\3\4 no archive");
  const RunResult damaged = run_vit({"rope", "identify", folder / "damaged.npz"});
  CHECK(damaged.exit_code == 1);
  CHECK(damaged.num_errors() == 1);
  const float numbers[] = {1.0f, 2.0f, 3.0f, 4.0f};
  const TensorToWrite tensor{
      .name = "weight", .dtype = Dtype::f32, .shape = {2, 2}, .bytes = std::as_bytes(std::span(numbers))};
  write_safetensors(folder / "other.safetensors", {&tensor, 1});
  const RunResult other = run_vit({"rope", "identify", folder / "other.safetensors"});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "weight"));
}

}  // namespace vit::test
