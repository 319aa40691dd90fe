// vit index, search and duplicates: against plain loops, after interruptions and changes of files, and what
// is refused.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/vit/inputs/npy.h"
#include "apps/vit/rings/index/index_folder.h"
#include "apps/vit/rings/index/scan.h"
#include "apps/vit/rings/index/stored_vectors.h"
#include "apps/vit/rings/index/vector_index.h"
#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"
#include "vit/outputs.h"

TEST_SUITE_BEGIN("index");

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

/// Types of index that this build makes.
std::vector<std::string> types_of(std::vector<std::string> plain, const std::vector<std::string>& others) {
  if (app::VectorIndex::is_available()) plain.insert(plain.end(), others.begin(), others.end());
  return plain;
}

/// A folder of the user's key for a test, and the environment's own after it.
class StateFolder {
 public:
  explicit StateFolder(const std::string& path) {
    if (const char* const value = std::getenv("XDG_STATE_HOME")) former_ = value;
    ::setenv("XDG_STATE_HOME", path.c_str(), 1);
  }
  ~StateFolder() { former_ ? ::setenv("XDG_STATE_HOME", former_->c_str(), 1) : ::unsetenv("XDG_STATE_HOME"); }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

 private:
  std::optional<std::string> former_;
};

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
    for (std::size_t i = 0; i < pooled.shape[0]; ++i)
      normalize_vector(std::span(numbers).subspan(i * width, width));
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
  const StateFolder state(folder / "state");
  const std::vector<std::string> paths = write_images(folder);
  const Vectors vectors(folder);
  for (const std::string& type : types_of({"Flat", "SQfp16"}, {"HNSW8"})) {
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

TEST_CASE("apps: queries are padded and rotated as the images of the index were") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
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
  CHECK(other.err.find("--pad 255,255,255") != std::string::npos);
}

TEST_CASE("apps: search by texts compares with the vectors of the text tower") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
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
  refused(search("index", {image, "--text", texts[0]}), 2, "give only one of them");
  refused(search("index", {"--text", texts[0]}), 1, "--tokenizer");  // whose vocabulary is another folder's
  refused(search("pooled", both), 1, "projected");
  REQUIRE(run("index", {image, "--output", folder / "plain"}).exit_code == 0);
  refused(search("plain", both), 1, "no supported text tower");
}

TEST_CASE("apps: duplicates are connected components, best resolution first") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
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
  const StateFolder state(folder / "state");
  const std::vector<std::string> paths = write_images(folder);
  for (const std::string& type : types_of({"Flat"}, {"SQ8"})) {
    CAPTURE(type);
    const std::string whole = folder / ("whole." + type), again = folder / ("again." + type);
    REQUIRE(run("index", {folder / "in", "--output", whole, "--type", type}).exit_code == 0);
    const std::map<std::string, std::string> expected = bytes_of(whole);

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
        if (name == "vectors.safetensors" || name == ".lock") {
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

TEST_CASE("apps: an index keeps its type unless another one is given") {
  const TestFolder folder;
  write_images(folder);
  const auto type_of = [&] {
    return std::string(load_json(fs::path(folder / "i/index.json")).at("type").as_string());
  };
  for (const std::string& type : types_of({"SQfp16"}, {"HNSW32"})) {
    CAPTURE(type);
    fs::remove_all(folder / "i");
    REQUIRE(run("index", {folder / "in", "--output", folder / "i", "--type", type}).exit_code == 0);
    write_picture(folder / "in/300.ppm", 24, 24, static_cast<unsigned>(type.size()) + 50);
    const RunResult again = run("index", {folder / "in", "--output", folder / "i"});
    CHECK(again.exit_code == 0);
    CHECK(again.err.empty());
    CHECK(type_of() == type);
    const RunResult flat = run("index", {folder / "in", "--output", folder / "i", "--type", "Flat"});
    CHECK(flat.exit_code == 0);
    CHECK(contains(flat.err, "the type changes from " + type + " to Flat"));
    CHECK(type_of() == "Flat");
  }
}

TEST_CASE("apps: an index is not read while its files are of two runs") {
  const TestFolder folder;
  write_images(folder);
  const std::string index = folder / "i";
  REQUIRE(run("index", {folder / "in", "--output", index}).exit_code == 0);
  const std::map<std::string, std::string> before = bytes_of(index);
  write_picture(folder / "in/100.ppm", 24, 24, 77);  // as many images, another vector
  REQUIRE(run("index", {folder / "in", "--output", index}).exit_code == 0);
  const std::map<std::string, std::string> after = bytes_of(index);
  const auto put = [&](const std::map<std::string, std::string>& from) {
    for (const char* const name : {"files.jsonl", "index.json"})
      write_text(index + "/" + name, from.at(name));
  };
  put(before);  // as between two renames: the vectors are new, the list is not
  const RunResult mixed = run_vit({"search", index, folder / "in/100.ppm"});
  CHECK(mixed.exit_code == 1);
  CHECK(contains(mixed.err, "from another run than the list of files"));
  // while another run writes, the reader waits until it is done
  const int lock = ::open((index + "/.lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(lock >= 0);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    put(after);
  });
  const RunResult waited = run_vit({"search", index, folder / "in/100.ppm", "--top", "1"});
  writer.join();
  ::close(lock);
  CAPTURE(waited.err);
  CHECK(waited.exit_code == 0);
  CHECK(contains(waited.out, "100.ppm"));
}

TEST_CASE("apps: a file that changes while an index is made is embedded again by the next run") {
  const TestFolder folder;
  constexpr unsigned kCount = 12;
  for (unsigned i = 0; i < kCount; ++i)
    write_picture(folder / ("in/" + std::to_string(100 + i) + ".ppm"), 64, 64, i);
  const std::string last = folder / "in/111.ppm", index = folder / "i";
  bool is_changed = false;
  // once the first image is embedded: all are read by then, the last one is computed much later
  const auto change = [&] {
    std::error_code error;
    const std::string partial = index + "/vectors.partial";
    if (is_changed || !fs::exists(partial, error) || fs::file_size(partial, error) == 0) return false;
    write_picture(last, 64, 64, 1000);
    is_changed = true;
    return false;
  };
  const RunResult first =
      run_vit({"index", folder / "in", "--output", index, "--batch", "1", "--threads", "1", "--size", "96"},
              {.signal_when = change});
  REQUIRE(first.exit_code == 0);
  REQUIRE(is_changed);
  REQUIRE(run_vit({"index", folder / "in", "--output", index}).exit_code == 0);
  const RunResult found = run_vit({"search", index, last, "--top", "1", "--format", "json"});
  const Json best = parse_json(found.out, "search").at("results")[0];
  CHECK(best.at("file").as_string() == last);
  CHECK(best.at("score").as_double() > 0.9999);  // the vector of what the file is now
}

TEST_CASE("apps: an interrupted search prints no mean of some of its queries") {
  const TestFolder folder;
  write_images(folder);
  REQUIRE(run_vit({"index", folder / "in", "--output", folder / "i"}).exit_code == 0);
  const std::string queries = repeated_line(folder / "in/100.ppm", 2000);
  const auto search = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"search", folder / "i", "-", "--progress", "always"});
    return run_vit(more, {.standard_input = queries, .signal_at_progress = true, .signal = SIGINT});
  };
  const RunResult mean = search({});
  CHECK(mean.exit_code == 130);
  CHECK(mean.out.empty());
  const RunResult each = search({"--each"});
  CHECK(each.exit_code == 130);
  CHECK(!each.out.empty());
}

TEST_CASE("apps: duplicates of an index refuse what it was not made with") {
  const TestFolder folder;
  write_images(folder);
  REQUIRE(run("index", {folder / "in", "--output", folder / "i", "--features", "pooled"}).exit_code == 0);
  CHECK(run_vit({"duplicates", folder / "i", "--features", "pooled"}).exit_code == 0);
  CHECK(run("duplicates", {folder / "i"}).exit_code == 0);
  const std::vector<std::pair<std::vector<std::string>, const char*>> refusals{
      {{"--features", "cls"}, "made with --features pooled"},
      {{"--size", "48"}, "--size"},
      {{"--model", golden_model("hf-vit")}, "made by"}};
  for (const auto& [options, words] : refusals) {
    std::vector<std::string> arguments{"duplicates", folder / "i"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, words));
  }
}

TEST_CASE("apps: what FAISS reads back was written by this user, or is rebuilt from the vectors") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
  if (!app::VectorIndex::is_available()) return;
  const std::vector<std::string> paths = write_images(folder);
  const std::string index = folder / "index", file = index + "/vectors.faiss";
  const std::vector<std::string> again{folder / "in", "--output", index, "--type", "HNSW8"};
  REQUIRE(run("index", again).exit_code == 0);
  const std::string own = read_text(file);
  const RunResult expected = run_vit({"search", index, paths[2]});
  CHECK(expected.err.empty());
  CHECK(fs::status(folder / "state/vit/index.key").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  const auto is_made_anew = [&] {
    const RunResult found = run_vit({"search", index, paths[2]});
    CHECK(found.out == expected.out);
    CHECK(found.exit_code == 0);
    return found.err.find("vectors.faiss") != std::string::npos;
  };
  SUBCASE("a byte was changed") {
    std::string changed = own;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    write_text(file, changed);
    CHECK(is_made_anew());
  }
  SUBCASE("it is gone") {
    fs::remove(file);
    CHECK(is_made_anew());
  }
  SUBCASE("it is no file of FAISS") {
    write_text(file, "garbage");
    CHECK(is_made_anew());
  }
  SUBCASE("another user has another key") {
    fs::remove_all(folder / "state");
    CHECK(is_made_anew());
  }
  SUBCASE("a key that others can read is none") {
    fs::permissions(folder / "state/vit/index.key", fs::perms::group_read, fs::perm_options::add);
    CHECK(is_made_anew());
    CHECK(is_made_anew());
    fs::remove(folder / "state/vit/index.key");
  }
  REQUIRE(run("index", again).exit_code == 0);  // writes it
  CHECK_FALSE(is_made_anew());
  CHECK(read_text(file) == own);
}

TEST_CASE("apps: an index of 0.2 is searched, and rewritten without embedding again") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
  const std::vector<std::string> paths = write_images(folder);
  const Vectors vectors(folder);
  for (const std::string& type : types_of({"Flat", "SQfp16"}, {"HNSW8", "SQ8", "IVF2,Flat"})) {
    CAPTURE(type);
    const std::string index = folder / ("index." + type);
    const std::vector<std::string> again{folder / "in", "--output",   index,   "--type",
                                         type,          "--progress", "always"};
    REQUIRE(run("index", again).exit_code == 0);
    const std::map<std::string, std::string> expected = bytes_of(index);
    const std::string found = run_vit({"search", index, paths[2], "--format", "json"}).out;
    // what 0.2 wrote: no vectors of its own, but where FAISS gives no exact ones back
    fs::remove(index + "/vectors.safetensors");
    std::string facts = expected.at("index.json");
    facts.erase(facts.find(", \"vectors\""),
                std::string_view(", \"vectors\": \"vectors.safetensors\"").size());
    if (facts.find("\"seal\"") != std::string::npos)
      facts.erase(facts.find(", \"seal\""), std::string_view(", \"seal\": \"\"").size() + 64);
    write_text(index + "/index.json", facts);
    if (type == "SQ8") {
      const std::size_t shape[] = {vectors.count(), vectors.width};
      write_text(
          index + "/vectors.npy",
          app::npy_header("<f4", shape) + std::string(reinterpret_cast<const char*>(vectors.numbers.data()),
                                                      vectors.numbers.size() * sizeof(float)));
    }
    std::vector<std::string> search{"search", index, paths[2], "--format", "json"};
    std::vector<std::string> rewrite = again;
    if (type == "IVF2,Flat") {
      const RunResult refused = run_vit(search);
      CHECK(refused.exit_code == 1);
      CHECK(refused.err.find("--trust-index") != std::string::npos);
      CHECK(run("index", again).exit_code == 1);
      search.emplace_back("--trust-index");
      rewrite.emplace_back("--trust-index");
    }
    CHECK(run_vit(search).out == found);
    const RunResult rewritten = run("index", rewrite);
    CHECK(rewritten.exit_code == 0);
    CHECK(rewritten.err.find(" 0 newly embedded") != std::string::npos);
    std::map<std::string, std::string> now = bytes_of(index);
    CHECK(now == expected);
  }
}

TEST_CASE("apps: files of FAISS that are written without it are what FAISS writes") {
  const TestFolder folder;
  constexpr std::size_t kCount = 7, kDim = 5;
  Tensor<float> vectors(Shape{kCount, kDim});
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (float& number : vectors.flat()) number = uniform(random);
  const auto read = [&](std::size_t first, std::span<float> rows) {
    std::copy_n(vectors.view().row(first), rows.size(), rows.data());
  };
  for (const app::PlainType type : {app::PlainType::flat, app::PlainType::fp16}) {
    const char* const name = type == app::PlainType::flat ? "Flat" : "SQfp16";
    CAPTURE(name);
    CHECK(app::plain_type(name) == type);
    const double error = app::write_vectors(
        {.safetensors = folder / "own.safetensors", .faiss = folder / "own.faiss"}, type, kCount, kDim, read);
    CHECK((error == 0) == (type == app::PlainType::flat));
    const app::StoredVectors stored =
        app::StoredVectors::in_safetensors(folder / "own.safetensors", kCount, kDim);
    const app::StoredVectors same = app::StoredVectors::in_faiss(folder / "own.faiss", type, kCount, kDim);
    const Tensor<float> exact = stored.read_all();
    CHECK(std::ranges::equal(exact.flat(), same.read_all().flat()));
    for (std::size_t i = 0; i < exact.num_elements(); ++i)
      CHECK(std::abs(exact.data()[i] - vectors.data()[i]) <= static_cast<float>(error));
    CHECK_THROWS_AS(app::StoredVectors::in_faiss(folder / "own.faiss", type, kCount + 1, kDim), Error);
    CHECK_THROWS_AS(app::StoredVectors::in_safetensors(folder / "own.safetensors", kCount, kDim + 1), Error);
    if (!app::VectorIndex::is_available()) continue;
    const app::VectorIndex built = app::VectorIndex::build(name, vectors);
    built.write(folder / "faiss.faiss");
    CHECK(read_text(folder / "faiss.faiss").size() == read_text(folder / "own.faiss").size());
    // halves may be rounded otherwise by half of their last place; 37 bytes and more are not numbers
    const std::size_t start =
        read_text(folder / "own.faiss").size() - kCount * kDim * (type == app::PlainType::flat ? 4 : 2);
    CHECK(read_text(folder / "faiss.faiss").substr(0, start) ==
          read_text(folder / "own.faiss").substr(0, start));
    const Tensor<float> given = app::VectorIndex::read(SourceFile(folder / "own.faiss", "test")).vectors();
    CHECK(std::ranges::equal(given.flat(), exact.flat()));
  }
}

TEST_CASE("apps: a scan finds what sorting all finds, in any number of threads") {
  constexpr std::size_t kCount = 5000, kDim = 33;
  Tensor<float> vectors(Shape{kCount, kDim});
  std::mt19937 random(11);
  std::uniform_int_distribution<int> digit(-2, 2);  // ties
  for (float& number : vectors.flat()) number = static_cast<float>(digit(random));
  const Tensor<float> copy = [&] {
    Tensor<float> out(vectors.shape());
    std::ranges::copy(vectors.flat(), out.data());
    return out;
  }();
  const app::StoredVectors stored(std::move(vectors));
  const std::vector<std::span<const float>> queries{{copy.view().row(3), kDim},
                                                    {copy.view().row(4999), kDim}};
  for (const std::size_t top : {std::size_t{1}, std::size_t{10}, std::size_t{1500}, kCount + 1}) {
    for (const int threads : {1, 2, 3}) {
      CAPTURE(top);
      CAPTURE(threads);
      const auto found = app::scan(stored, queries, top, threads);
      for (std::size_t q = 0; q < queries.size(); ++q) {
        std::vector<app::Hit> all;
        for (std::size_t i = 0; i < kCount; ++i)
          all.push_back({i, app::inner_product(queries[q].data(), copy.view().row(i), kDim)});
        std::ranges::stable_sort(all, [](const app::Hit& a, const app::Hit& b) { return a.score > b.score; });
        REQUIRE(found[q].size() == std::min(top, kCount));
        for (std::size_t i = 0; i < found[q].size(); ++i) {
          REQUIRE(found[q][i].index == all[i].index);
          REQUIRE(found[q][i].score == all[i].score);
        }
      }
    }
  }
  Tensor<float> damaged(Shape{2, kDim});
  damaged.data()[kDim] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(app::scan(app::StoredVectors(std::move(damaged)), queries, 1, 1), Error);
  CHECK_THROWS_AS(app::scan(stored, std::vector{std::span<const float>(copy.data(), 2)}, 1, 1), Error);
}

TEST_CASE("apps: a file that is reached twice is one file for index and duplicates") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
  write_picture(folder / "in/a.ppm", 24, 24, 1);
  write_picture(folder / "in/sub/b.ppm", 24, 24, 2);
  fs::create_symlink(folder / "in/sub/b.ppm", folder / "in/link.ppm");
  fs::create_hard_link(folder / "in/a.ppm", folder / "in/hard.ppm");
  const std::vector<std::vector<std::string>> ways{{folder / "in", folder / "in/sub"},
                                                   {folder / "in/sub", folder / "in"},
                                                   {folder / "in", folder / "in/./"}};
  for (std::vector<std::string> inputs : ways) {
    CAPTURE(inputs.back());
    inputs.insert(inputs.end(), {"--threshold", "0.9999", "--format", "json"});
    const RunResult found = run("duplicates", inputs);
    CHECK(found.exit_code == 0);
    CHECK(found.out.empty());
    CHECK(found.num_errors() == 1);
    CHECK(found.err.find("used once") != std::string::npos);
    inputs.erase(inputs.end() - 4, inputs.end());
    inputs.insert(inputs.end(), {"--output", folder / "index"});
    CHECK(run("index", inputs).exit_code == 0);
    CHECK(lines_of(read_text(folder / "index/files.jsonl")).size() == 2);
    fs::remove_all(folder / "index");
  }
}

TEST_CASE("apps: an index says what it drops") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
  write_picture(folder / "a/1.ppm", 24, 24, 1);
  write_picture(folder / "a/2.ppm", 24, 24, 2);
  write_picture(folder / "b/3.ppm", 24, 24, 3);
  REQUIRE(run("index", {folder / "a", "--output", folder / "index"}).err.empty());
  SUBCASE("files that are still there") {
    const RunResult other = run("index", {folder / "b", "--output", folder / "index"});
    CHECK(other.exit_code == 0);
    CHECK(other.num_errors() == 1);
    for (const std::string& name :
         {std::string("dropping 2 images"), folder / "a/1.ppm", std::string("existing files")})
      CHECK_MESSAGE(other.err.find(name) != std::string::npos, other.err);
  }
  SUBCASE("vectors of other values of the preprocessing are not mixed") {
    const RunResult other = run(
        "index", {folder / "a", folder / "b", "--resampler", "torchvision", "--output", folder / "index"});
    CHECK(other.exit_code == 1);
    CHECK(other.num_errors() == 1);
    CHECK_MESSAGE(other.err.find("--resampler torchvision") != std::string::npos, other.err);
  }
  SUBCASE("files that are gone") {
    fs::remove(folder / "a/2.ppm");
    const RunResult other = run("index", {folder / "a", "--output", folder / "index"});
    CHECK(other.err.find("dropping an image") != std::string::npos);
    CHECK(other.err.find("existing files") == std::string::npos);
  }
  SUBCASE("a name that is no text cannot be kept") {
    fs::rename(folder / "a/2.ppm", folder / "a/2\xFF.ppm");
    for (int i = 0; i < 2; ++i) {
      const RunResult other = run("index", {folder / "a", "--output", folder / "new"});
      CHECK(other.exit_code == 1);
      CHECK(other.num_errors() == 1);
      CHECK_MESSAGE(other.err.find("not UTF-8") != std::string::npos, other.err);
    }
  }
  SUBCASE("nothing") {
    CHECK(run("index", {folder / "a", folder / "b", "--output", folder / "index"}).err.empty());
  }
}

TEST_CASE("apps: an index knows how its model was loaded") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
  const std::vector<std::string> paths = write_images(folder);
  const std::string model = golden_model("rope-axial");
  const auto search = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"search", folder / "index", paths[2], "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  };
  const auto index = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"index", folder / "in", "--output", folder / "index"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  };
  struct Way {
    std::vector<std::string> options;
    const char* kept;
  };
  const std::vector<Way> ways{
      {{"--model", model, "--set", "img_size=48"}, "--set"},
      {{"--model", model, "--rope-scaling", "linear"}, "--rope-scaling"},
      {{"--model", model, "--resampler", "torchvision"}, "--resampler"},
  };
  for (const Way& way : ways) {
    CAPTURE(way.kept);
    fs::remove_all(folder / "index");
    const RunResult made = index(way.options);
    REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    CHECK(load_json(folder / "index/index.json").at("options").find(way.kept));
    const RunResult found = search({});
    REQUIRE_MESSAGE(found.exit_code == 0, found.err);
    const Json best = parse_json(found.out, "results").at("results")[0];
    CHECK(best.at("score").as_double() == doctest::Approx(1.0).epsilon(1e-6));
    CHECK(search(way.options).out == found.out);
  }
  const RunResult page =
      run_vit({"duplicates", folder / "index", "--threshold", "0.5", "--html", folder / "page.html"});
  CHECK(page.exit_code == 0);
  CHECK(read_text(folder / "page.html").find("model rope-axial") != std::string::npos);
  SUBCASE("options that no release had are not guessed at") {
    std::string facts = read_text(folder / "index/index.json");
    const std::size_t at = facts.find("--resampler");
    facts.replace(at, 11, "--resampled");
    write_text(folder / "index/index.json", facts);
    const RunResult refused = search({});
    CHECK(refused.exit_code == 1);
    CHECK(refused.err.find("--resampled") != std::string::npos);
  }
}

TEST_CASE("apps: what index, search and duplicates cannot do is one line") {
  const TestFolder folder;
  const StateFolder state(folder / "state");
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
  refused(run_vit({"search", folder / "in", paths[0]}), 1, {"is not an index"});
  refused(run_vit({"search", folder / "index"}), 2, {"a query is required"});
  const std::string vectors = read_text(folder / "index/vectors.safetensors");
  write_text(folder / "index/vectors.safetensors", vectors.substr(0, vectors.size() - 4));
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"vectors.safetensors"});
  std::string not_finite = vectors;
  not_finite.replace(vectors.size() - 4, 4, "\xff\xff\xff\xff");
  write_text(folder / "index/vectors.safetensors", not_finite);
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"not finite"});
  write_text(folder / "index/vectors.safetensors", vectors);
  refused(run_vit({"search", folder / "index", paths[0], "--parameters", "nprobe=2"}), 2, {"--parameters"});
  fs::remove(folder / "index/files.jsonl");
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"files.jsonl"});
  refused(run_vit({"duplicates", folder / "index"}), 1, {"files.jsonl"});
  write_text(folder / "index/files.jsonl", "");
  refused(run_vit({"search", folder / "index", paths[0]}), 1, {"run vit index again"});
}
