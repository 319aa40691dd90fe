// vit index, search and duplicates: against plain loops, after interruptions and changes of files, and what
// is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "apps/vit/commands/index/inner_product.h"
#include "program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/outputs.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

RunResult run(const std::string& command, std::vector<std::string> arguments,
              const std::string& model = "rope-axial") {
  arguments.insert(arguments.begin(), {command, "--model", golden_model(model)});
  return run_vit(arguments);
}

/// Images of several sizes below in/: noise, copies of it, and copies of these under other names.
std::vector<std::string> write_images(const TestFolder& folder) {
  std::vector<std::string> paths;
  for (unsigned i = 0; i < 12; ++i) {
    paths.push_back(folder / ("in/" + std::to_string(100 + i) + ".ppm"));
    write_picture(paths.back(), 24 + 8 * (i % 3), 24 + 8 * (i % 3), i / 3);  // seeds repeat in other sizes
  }
  for (const char* name : {"in/200.ppm", "in/201.ppm"}) {
    paths.push_back(folder / name);
    fs::copy_file(paths[2], paths.back());
  }
  return paths;
}

/// Whether this build has FAISS; if not, that is what the commands say.
bool can_index(const TestFolder& folder) {
  write_picture(folder / "probe.ppm", 24, 24, 9);
  const RunResult result = run("index", {folder / "probe.ppm", "--output", folder / "probe.index"});
  if (result.exit_code == 0) return true;
  CHECK(result.err.find("libfaiss-dev") != std::string::npos);
  return false;
}

/// The bytes of all files of an index.
std::map<std::string, std::string> bytes_of(const std::string& index) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(index))
    out[entry.path().filename()] = read_text(entry.path());
  return out;
}

/// Normalized vectors (n, d) of the images below in/.
struct Vectors {
  explicit Vectors(const TestFolder& folder) {
    REQUIRE(run("embed", {folder / "in", "--output", folder / "e.npz"}).exit_code == 0);
    const NpyArray pooled = read_npz(folder / "e.npz").at("pooled");
    width = pooled.shape[1];
    numbers = pooled.floats();
    for (std::size_t i = 0; i < pooled.shape[0]; ++i) normalize(std::span(numbers).subspan(i * width, width));
  }
  std::span<const float> row(std::size_t i) const { return std::span(numbers).subspan(i * width, width); }
  std::size_t count() const { return numbers.size() / width; }

  std::size_t width = 0;
  std::vector<float> numbers;
};

}  // namespace

TEST_CASE("apps: inner products of any length") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (std::size_t count = 0; count < 100; ++count) {
    std::vector<float> a(count), b(count);
    double expected = 0, magnitude = 0;
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = normal(random);
      b[i] = normal(random);
      expected += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      magnitude += std::abs(static_cast<double>(a[i]) * static_cast<double>(b[i]));
    }
    CAPTURE(count);
    // A product is rounded once and then in at most 4 sums of its own and 5 of the halves.
    const double tolerance = 10 * magnitude * static_cast<double>(std::numeric_limits<float>::epsilon()) / 2;
    CHECK(std::abs(static_cast<double>(app::inner_product(a.data(), b.data(), count)) - expected) <=
          tolerance);
  }
}

TEST_CASE("apps: search finds what plain loops find, ties in order") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::vector<std::string> paths = write_images(folder);
  const Vectors vectors(folder);
  for (const std::string type : {"Flat", "HNSW8", "SQfp16"}) {
    CAPTURE(type);
    const std::string index = folder / ("index." + type);
    REQUIRE(run("index", {folder / "in", "--output", index, "--type", type}).exit_code == 0);
    const Json facts = load_json(index + "/index.json");
    CHECK(facts.at("features").as_string() == "pooled");
    CHECK(facts.at("dim").as_size() == vectors.width);
    CHECK((facts.at("largest_error").as_double() == 0) == (type != "SQfp16"));
    const std::vector<std::string> lines = lines_of(read_text(index + "/files.jsonl"));
    REQUIRE(lines.size() == paths.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Json line = parse_json(lines[i], "line");
      CHECK(line.at("file").as_string() == paths[i]);
      CHECK(line.at("size").as_size() == fs::file_size(paths[i]));
      CHECK(line.at("width").as_size() == (i < 12 ? 24 + 8 * (i % 3) : 40));
    }
    const RunResult found =
        run_vit({"search", index, paths[2], "--top", "14", "--format", "json"});  // its model
    REQUIRE(found.exit_code == 0);
    const Json results = parse_json(found.out, "results").at("results");
    std::vector<std::size_t> order(paths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return cosine_similarity(vectors.row(2), vectors.row(a)) >
             cosine_similarity(vectors.row(2), vectors.row(b));
    });
    REQUIRE(results.size() == order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      CHECK(results[i].at("rank").as_size() == i + 1);
      const double expected = cosine_similarity(vectors.row(2), vectors.row(order[i]));
      CHECK(results[i].at("score").as_double() ==
            doctest::Approx(expected).epsilon(type == "SQfp16" ? 1e-3 : 1e-6));
      if (type == "Flat") CHECK(results[i].at("file").as_string() == paths[order[i]]);
    }
  }
  // two examples are one query
  const RunResult mean =
      run_vit({"search", folder / "index.Flat", paths[0], paths[5], "--top", "1", "--format", "json"});
  CHECK(parse_json(mean.out, "mean").at("query").size() == 2);
  const RunResult each =
      run_vit({"search", folder / "index.Flat", paths[0], paths[5], "--each", "--format", "csv"});
  CHECK(lines_of(each.out).size() == 21);
  CHECK(lines_of(each.out).front() == "query,rank,file,score");
}

TEST_CASE("apps: queries are padded and turned as the images of the index were") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  write_picture(folder / "in/wide.ppm", 20, 44, 1);
  write_picture(folder / "in/tall.ppm", 44, 20, 2);
  const std::string index = folder / "index";
  const std::vector<std::string> bgr{folder / "in", "--output", index, "--pad", "white", "--channels", "bgr"};
  REQUIRE(run("index", bgr).exit_code == 0);
  const RunResult found =
      run_vit({"search", index, folder / "in/wide.ppm", "--top", "1", "--format", "json"});
  const Json best = parse_json(found.out, "results").at("results")[0];
  CHECK(best.at("file").as_string() == folder / "in/wide.ppm");
  CHECK(best.at("score").as_double() == doctest::Approx(1.0).epsilon(1e-6));
  const RunResult other = run_vit({"search", index, folder / "in/wide.ppm", "--pad", "black"});
  CHECK(other.exit_code == 1);
  CHECK(other.err.find("padded with 255,255,255") != std::string::npos);
}

TEST_CASE("apps: search by texts compares with the vectors of the text tower") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::string model = data_path("golden/text/openclip-clip").string();
  const std::string tokenizer = data_path("golden/text/hf-clip").string();
  write_images(folder);
  const std::vector<std::string> texts{"a cat", "two \"dogs\""};
  const auto made = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"index", "--model", model, folder / "in", "--output"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_vit(arguments);
    REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  };
  made({folder / "index"});
  made({folder / "pooled", "--features", "pooled"});
  REQUIRE(run_vit({"embed", "--model", model, "--tokenizer", tokenizer, "--text", texts[0], "--text",
                   texts[1], folder / "in", "--output", folder / "e.npz"})
              .exit_code == 0);
  const auto arrays = read_npz(folder / "e.npz");
  const std::vector<float> images = arrays.at("projected").floats(), vectors = arrays.at("text").floats();
  const std::size_t width = arrays.at("text").shape[1], count = images.size() / width;

  const auto search = [&](const std::string& index, std::vector<std::string> more) {
    more.insert(more.begin(), {"search", folder / index});
    return run_vit(more);
  };
  const std::vector<std::string> both{"--tokenizer", tokenizer,  "--text", texts[0], "--text",
                                      texts[1],      "--format", "json",   "--top",  std::to_string(count)};
  std::vector<std::string> each = both;
  each.emplace_back("--each");
  const std::vector<std::string> lines = lines_of(search("index", each).out);
  REQUIRE(lines.size() == texts.size());
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const Json found = parse_json(lines[t], "line");
    CHECK(found.at("query").as_string() == texts[t]);
    std::vector<double> cosines;
    for (std::size_t i = 0; i < count; ++i)
      cosines.push_back(cosine_similarity(std::span(vectors).subspan(t * width, width),
                                          std::span(images).subspan(i * width, width)));
    std::ranges::sort(cosines, std::greater<>());
    REQUIRE(found.at("results").size() == count);
    for (std::size_t i = 0; i < count; ++i)
      CHECK(found.at("results")[i].at("score").as_double() == doctest::Approx(cosines[i]).epsilon(2e-6));
  }
  const std::vector<std::string> one = lines_of(search("index", both).out);  // the mean of both
  REQUIRE(one.size() == 1);
  CHECK(parse_json(one[0], "line").at("query").size() == 2);

  const std::string image = folder / "in/100.ppm";
  const auto refused = [&](const RunResult& result, int exit_code, const std::string& name) {
    CHECK(result.exit_code == exit_code);
    CHECK(result.num_errors() == 1);
    CHECK_MESSAGE(result.err.find(name) != std::string::npos, result.err);
  };
  refused(search("index", {image, "--text", texts[0]}), 2, "not both");
  refused(search("index", {"--text", texts[0]}), 1, "--tokenizer");  // whose vocabulary is another folder's
  refused(search("pooled", both), 1, "projected");
  refused(search("probe.index", both), 1, "no text tower");
}

TEST_CASE("apps: duplicates are connected components, best resolution first") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::vector<std::string> paths = write_images(folder);
  const Vectors vectors(folder);
  REQUIRE(run("index", {folder / "in", "--output", folder / "index"}).exit_code == 0);
  for (const double threshold : {1.0, 0.999, 0.9}) {
    CAPTURE(threshold);
    std::vector<std::size_t> group(paths.size());  // the first member, by plain relabeling
    std::iota(group.begin(), group.end(), std::size_t{0});
    for (std::size_t a = 0; a < paths.size(); ++a) {
      for (std::size_t b = a + 1; b < paths.size(); ++b) {
        if (cosine_similarity(vectors.row(a), vectors.row(b)) < threshold &&
            !std::ranges::equal(vectors.row(a), vectors.row(b)))
          continue;
        const auto [low, high] = std::minmax({group[a], group[b]});
        std::ranges::replace(group, high, low);
      }
    }
    std::vector<std::vector<std::string>> expected;
    for (std::size_t first = 0; first < paths.size(); ++first) {
      std::vector<std::string> members;
      for (std::size_t i = 0; i < paths.size(); ++i) {
        if (group[i] == first) members.push_back(paths[i]);
      }
      if (members.size() > 1) expected.push_back(members);
    }
    REQUIRE(!expected.empty());
    const RunResult found = run_vit(
        {"duplicates", folder / "index", "--threshold", std::to_string(threshold), "--format", "json"});
    REQUIRE(found.exit_code == 0);
    const std::vector<std::string> lines = lines_of(found.out);
    REQUIRE(lines.size() == expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Json json = parse_json(lines[i], "group");
      CHECK(json.at("group").as_size() == i);
      CHECK(json.at("scores")[0].as_double() == doctest::Approx(1.0));
      std::vector<std::string> files;
      std::uintmax_t bytes = ~std::uintmax_t{0};
      for (std::size_t k = 0; k < json.at("files").size(); ++k) {
        files.emplace_back(json.at("files")[k].as_string());
        CHECK(fs::file_size(files.back()) <= bytes);  // of a .ppm that is the resolution
        bytes = fs::file_size(files.back());
      }
      std::ranges::sort(files);
      CHECK(files == expected[i]);
    }
    CHECK(run("duplicates", {folder / "in", "--threshold", std::to_string(threshold), "--format", "json"})
              .out == found.out);
  }
  CHECK(run("duplicates", {folder / "in/100.ppm"}).out == "no groups among 1 image\n");
  CHECK(run("duplicates", {folder / "in/100.ppm", "--format", "json"}).out.empty());
  CHECK(lines_of(run_vit({"duplicates", folder / "index", "--threshold", "1"}).out)
            .front()
            .starts_with("group 0: "));
}

TEST_CASE("apps: an index that was interrupted or whose files changed becomes what a new one is") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::vector<std::string> paths = write_images(folder);
  for (const std::string type : {"Flat", "SQ8"}) {
    CAPTURE(type);
    const std::string whole = folder / ("whole." + type), again = folder / ("again." + type);
    REQUIRE(run("index", {folder / "in", "--output", whole, "--type", type}).exit_code == 0);
    const std::map<std::string, std::string> expected = bytes_of(whole);
    CHECK(expected.contains("vectors.npy") == (type == "SQ8"));  // rounded: the exact vectors are kept beside

    SUBCASE("killed while it embeds: five vectors are whole, the line of the sixth is cut") {
      const Vectors vectors(folder);
      const std::string facts = expected.at("index.json");
      std::string lines = facts.substr(0, facts.find(", \"type\"")) + "}\n";
      const std::vector<std::string> files = lines_of(expected.at("files.jsonl"));
      for (std::size_t i = 0; i < 5; ++i) lines += files[i] + "\n";
      write_text(again + "/files.partial", lines + files[5].substr(0, 20));
      const std::string all(reinterpret_cast<const char*>(vectors.numbers.data()),
                            6 * vectors.width * sizeof(float));
      write_text(again + "/vectors.partial", all);
    }
    SUBCASE("killed while files are renamed") {
      REQUIRE(run("index", {paths[0], "--output", again, "--type", type}).exit_code == 0);
      for (const auto& [name, bytes] : expected) {
        if (name == "vectors.faiss" || name == ".lock") {
          write_text(again + "/" + name, bytes);
        } else {
          write_text(again + "/" + name + ".new", bytes);
        }
      }
      CHECK(run_vit({"search", again, paths[3]}).exit_code == 0);  // completes it as well
    }
    SUBCASE("killed before the new files were decided on") {
      REQUIRE(run("index", {paths[0], "--output", again, "--type", type}).exit_code == 0);
      write_text(again + "/vectors.faiss.new", "half");
      CHECK(run_vit({"search", again, paths[3]}).exit_code == 0);
    }
    SUBCASE("files that are new, changed and gone") {
      fs::rename(paths[1], folder / "gone.ppm");
      write_picture(folder / "in/000.ppm", 32, 32, 7);
      write_picture(folder / "kept.ppm", 40, 40, 8);
      const auto time = fs::last_write_time(paths[4]);
      fs::copy_file(paths[4], folder / "kept4.ppm", fs::copy_options::overwrite_existing);
      fs::copy_file(folder / "kept.ppm", paths[4], fs::copy_options::overwrite_existing);
      REQUIRE(run("index", {folder / "in", "--output", again, "--type", type}).exit_code == 0);
      fs::rename(folder / "gone.ppm", paths[1]);
      fs::remove(folder / "in/000.ppm");
      fs::copy_file(folder / "kept4.ppm", paths[4], fs::copy_options::overwrite_existing);
      fs::last_write_time(paths[4], time);
    }
    REQUIRE(run("index", {folder / "in", "--output", again, "--type", type}).exit_code == 0);
    CHECK(bytes_of(again) == expected);
    REQUIRE(run("index", {folder / "in", "--output", again, "--type", type}).exit_code == 0);
    CHECK(bytes_of(again) == expected);
  }
}

TEST_CASE("apps: an index of a type that is not looked through is read with --trust-index") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::vector<std::string> paths = write_images(folder);
  const std::string index = folder / "index";
  const std::vector<std::string> again{folder / "in", "--output", index, "--type", "LSQ2x2"};
  REQUIRE(run("index", again).exit_code == 0);
  const std::vector<std::vector<std::string>> commands{
      {"search", index, paths[2]}, {"duplicates", index}, {"index", "--model", golden_model("rope-axial")}};
  for (std::vector<std::string> arguments : commands) {
    CAPTURE(arguments.front());
    if (arguments.front() == "index") arguments.insert(arguments.end(), again.begin(), again.end());
    const RunResult refused = run_vit(arguments);
    CHECK(refused.exit_code == 1);
    CHECK(refused.num_errors() == 1);
    CHECK(refused.err.find("--trust-index") != std::string::npos);
    arguments.emplace_back("--trust-index");
    CHECK(run_vit(arguments).exit_code == 0);
  }
}

TEST_CASE("apps: what index, search and duplicates cannot do is one line") {
  const TestFolder folder;
  if (!can_index(folder)) return;
  const std::vector<std::string> paths = write_images(folder);
  write_text(folder / "in/broken.ppm", "P6 40 40 255\n");
  const RunResult partly = run("index", {folder / "in", "--output", folder / "index"});
  CHECK(partly.exit_code == 1);
  CHECK(partly.num_errors() == 1);
  CHECK(lines_of(read_text(folder / "index/files.jsonl")).size() == paths.size());
  const auto refused = [&](const RunResult& result, int exit_code, const std::vector<std::string>& names) {
    CAPTURE(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(result.num_errors() == 1);
    for (const std::string& name : names) CHECK(result.err.find(name) != std::string::npos);
  };
  refused(run("search", {folder / "index", paths[0]}, "rope-mixed"), 1,
          {"rope-axial", "rope-mixed", "fingerprint"});
  refused(run("index", {paths[0], "--output", folder / "index"}, "rope-mixed"), 1,
          {"rope-axial", "rope-mixed"});
  refused(run("index", {paths[0], "--output", folder / "x", "--type", "Nothing"}), 2, {"--type", "Nothing"});
  refused(run("index", {paths[0], "--output", folder / "x", "--features", "patches"}), 2, {"--features"});
  refused(run_vit({"search", folder / "in", paths[0]}), 1, {"is no index"});
  refused(run_vit({"search", folder / "index"}), 2, {"QUERY"});
  const std::string vectors = read_text(folder / "index/vectors.faiss");
  std::string huge = vectors;
  huge.at(41) =
      2;  // of the length of the array behind a header of 37 bytes: 2^33 numbers, zeroed before they are read
  write_text(folder / "index/vectors.faiss", huge);
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"vectors.faiss", "found 85899"});
  write_text(folder / "index/vectors.faiss", vectors);
  fs::remove(folder / "index/files.jsonl");
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"files.jsonl"});
  refused(run_vit({"duplicates", folder / "index"}), 1, {"files.jsonl"});
  write_text(folder / "index/files.jsonl", "");
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"run vit index again"});
  write_text(folder / "index/vectors.faiss", "garbage");
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"vectors.faiss", "FAISS"});
}
