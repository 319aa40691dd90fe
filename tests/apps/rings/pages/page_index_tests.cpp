// vit embed --features page, vit index --pages and vit search: against the library, after interruptions, and
// what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/vit/rings/index/index_folder.h"
#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/pages.h"

TEST_SUITE_BEGIN("pages");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

std::string page_model() {
  return data_path("golden/pages/colmodernvbert").string();
}
std::string images() {
  return data_path("golden/pages/images").string();
}
RunResult run_pages(const std::string& command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {command, "--model", page_model()});
  return run_vit(arguments);
}
/// Names in the order of an index.
const std::vector<std::string> kPages{"square.png", "tall.png", "wide.png"};

float score_of(PageEncoder& encoder, const PageQuery& query, const std::string& name) {
  return query.score(encoder.encode(images() + "/" + name));
}

/// The numbers of an index; its file also says of which lines they are, whose times may differ.
std::vector<std::byte> vectors_in(const std::string& index) {
  const TensorFile file = open_safetensors(index + "/vectors.safetensors");
  std::vector<std::byte> out(file.at("vectors").bytes.size());
  file.at("vectors").bytes.read(0, out);
  return out;
}

}  // namespace

TEST_CASE("apps: vit embed writes the vectors of pages and of questions") {
  const TestFolder folder;
  REQUIRE(
      run_pages("embed", {images(), "--features", "page", "--output", folder / "p.safetensors"}).exit_code ==
      0);
  PageEncoder encoder(PageModel::load(page_model()));
  const TensorFile pages = open_safetensors(folder / "p.safetensors");
  for (std::size_t i = 0; i < kPages.size(); ++i) {
    const TensorEntry& entry = pages.at("page." + std::to_string(i));
    const Tensor<float> expected = encoder.encode(images() + "/" + kPages[i]);
    REQUIRE(entry.shape == std::vector<std::size_t>{expected.dim(0), 16});
    std::vector<float> found(expected.num_elements());
    entry.bytes.read(0, std::as_writable_bytes(std::span(found)));
    CHECK(std::ranges::equal(found, expected.flat()));
  }
  const std::vector<std::string> texts{"--text",     "revenue", "--text",  "two cats",
                                       "--features", "page",    "--output"};
  std::vector<std::string> arguments = texts;
  arguments.push_back(folder / "q.npz");
  REQUIRE(run_pages("embed", arguments).exit_code == 0);
  const auto arrays = read_npz(folder / "q.npz");
  CHECK(arrays.contains("question.0"));
  CHECK(arrays.at("files").strings() == std::vector<std::string>{"revenue", "two cats"});
  const Tensor<float> question = encoder.encode_query("two cats");
  CHECK(std::ranges::equal(arrays.at("question.1").floats(), question.flat()));
  const RunResult resumed =
      run_pages("embed", {"--text", "a", "--resume", "--features", "page", "--output", folder / "b.jsonl"});
  CHECK(resumed.exit_code == 2);
  CHECK(contains(resumed.err, "--resume continues runs of images"));
  const RunResult npy = run_pages("embed", {images(), "--features", "page", "--output", folder / "p.npy"});
  CHECK(npy.exit_code == 2);
  CHECK(npy.num_errors() == 1);
  const RunResult both =
      run_pages("embed", {images(), "--text", "a", "--features", "page", "--output", folder / "b.npz"});
  CHECK(both.exit_code == 2);
  const RunResult other = run_vit({"embed", "--model", data_path("golden/models/hf-siglip").string(),
                                   images(), "--features", "page", "--output", folder / "o.npz"});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "ColModernVBERT"));
  CHECK(other.num_errors() == 1);
}

TEST_CASE("apps: an index of pages is searched by the scores of the library, exactly") {
  const TestFolder folder;
  for (const std::string type : {"Flat", "SQfp16"}) {
    CAPTURE(type);
    const std::string index = folder / type;
    REQUIRE(run_pages("index", {"--pages", "--type", type, images(), "--output", index}).exit_code == 0);
    CHECK_FALSE(fs::exists(index + "/vectors.faiss"));
    const Json facts = load_json(index + "/index.json");
    CHECK(facts.at("features").as_string() == "page");
    CHECK(facts.at("dim").as_size() == 16);
    PageEncoder encoder(PageModel::load(page_model()));
    const RunResult found = run_vit({"search", index, "--text", "revenue by quarter", "--format", "json"});
    REQUIRE(found.exit_code == 0);
    const Tensor<float> vectors = encoder.encode_query("revenue by quarter");
    const PageQuery query(vectors);
    const Json results = parse_json(found.out, "results").at("results");
    REQUIRE(results.size() == 3);
    double before = 1e9;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string name = fs::path(std::string(results[i].at("file").as_string())).filename();
      const double expected = double{score_of(encoder, query, name)},
                   score = double{static_cast<float>(results[i].at("score").as_double())};
      // halves: each vector of length 1 is off by 2^-11 at most
      const double tolerance = type == "Flat" ? 0.0 : static_cast<double>(vectors.dim(0)) / 2048;
      CHECK(std::abs(score - expected) <= tolerance);
      CHECK(score <= before);
      before = score;
    }
    // a page finds itself, and several questions are one
    const RunResult itself =
        run_vit({"search", index, images() + "/tall.png", "--top", "1", "--format", "json"});
    CHECK(contains(itself.out, "tall.png"));
    const RunResult both = run_vit({"search", index, "--text", "a", "--text", "two", "--format", "json"});
    CHECK(parse_json(both.out, "both").at("query").size() == 2);
    const RunResult each =
        run_vit({"search", index, "--text", "a", "--text", "two", "--each", "--format", "csv"});
    CHECK(std::ranges::count(each.out, '\n') == 7);
  }
}

TEST_CASE("apps: an index of pages keeps what is unchanged, and goes on after an interrupt") {
  const TestFolder folder;
  for (const std::string& name : kPages)
    fs::create_directories(folder / "in"), fs::copy_file(images() + "/" + name, folder / ("in/" + name));
  const std::string index = folder / "index";
  const std::vector<std::string> command{folder / "in", "--output", index, "--progress", "always"};
  std::vector<std::string> first = command;
  first.push_back("--pages");
  REQUIRE(run_pages("index", first).exit_code == 0);
  const std::vector<std::byte> vectors = vectors_in(index);
  CHECK(contains(run_pages("index", command).err, "unchanged"));  // which says that it is of pages
  fs::remove(folder / "in/tall.png");
  REQUIRE(run_pages("index", command).exit_code == 0);
  fs::copy_file(images() + "/tall.png", folder / "in/tall.png");
  const RunResult again = run_pages("index", command);
  CHECK(contains(again.err, "1 newly embedded"));
  CHECK(vectors_in(index) == vectors);

  // what an interrupted run leaves: whole lines and their vectors, and the beginnings of others
  const app::IndexContents contents = app::read_index_folder(index);
  const std::string other = folder / "other";
  {
    app::IndexWriter writer(other);
    writer.take_partial(contents.facts.model);
    const std::size_t count = contents.files[0].vectors;
    std::vector<float> rows(count * 16);
    contents.vectors.read(0, rows);
    CHECK(writer.add_partial(contents.files[0], rows) == 0);
  }
  std::ofstream(other + "/vectors.partial", std::ios::app | std::ios::binary) << std::string(100, 'x');
  std::ofstream(other + "/files.partial", std::ios::app | std::ios::binary)
      << app::index_line(contents.files[1]) << "\n";
  const RunResult resumed =
      run_pages("index", {"--pages", folder / "in", "--output", other, "--progress", "always"});
  CHECK(contains(resumed.err, "2 newly embedded"));
  CHECK(vectors_in(other) == vectors);
}

TEST_CASE("apps: an index of pages that is damaged, or used as one of images, is refused") {
  const TestFolder folder;
  const std::string index = folder / "index";
  REQUIRE(run_pages("index", {"--pages", images(), "--output", index}).exit_code == 0);
  const std::string lines = read_text(index + "/files.jsonl"), facts = read_text(index + "/index.json");
  const auto refused = [&](const std::vector<std::string>& arguments, const char* part, int code = 1) {
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == code);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, part));
  };
  refused({"duplicates", index}, "one vector of each file");
  refused({"search", index, "--text", "a", "--parameters", "nprobe=2"}, "exactly", 2);
  refused(
      {"index", "--pages", "--model", page_model(), images(), "--output", folder / "n", "--type", "HNSW8"},
      "Flat", 2);
  refused({"index", "--pages", "--features", "pooled", images(), "--output", folder / "n"}, "--features", 2);
  refused({"index", "--pages", "--model", data_path("golden/models/hf-siglip").string(), images(), "--output",
           folder / "n"},
          "ColModernVBERT");
  refused({"search", index, "--model", data_path("golden/models/hf-siglip").string(), "--text", "a"},
          "ColModernVBERT");
  const auto with_lines = [&](const std::string& from, const std::string& to) {
    std::string changed = lines;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    write_text(index + "/files.jsonl", changed.replace(at, from.size(), to));
    // the checksum is that of an attacker, too
    std::string json = facts;
    const std::size_t sum = json.find("\"checksum\"");
    write_text(index + "/index.json",
               json.substr(0, sum) + "\"checksum\": \"" + app::lines_checksum(changed) + "\"}\n");
  };
  with_lines("\"vectors\": ", "\"vectors\": 9");
  refused({"search", index, "--text", "a"}, "vectors");
  with_lines("\"vectors\": ", "\"vectors\": 999999999999");
  refused({"search", index, "--text", "a"}, "vectors");
  with_lines("\"vectors\": ", "\"vector\": ");
  refused({"search", index, "--text", "a"}, "number of vectors");
  with_lines("\"vectors\": ", "\"vectors\": 0, \"x\": ");
  refused({"search", index, "--text", "a"}, "vectors");
  write_text(index + "/files.jsonl", lines);
  write_text(index + "/index.json", facts);
  std::string damaged = read_text(index + "/vectors.safetensors");
  std::fill(damaged.end() - 4, damaged.end(), '\xFF');  // NaN
  write_text(index + "/vectors.safetensors", damaged);
  refused({"search", index, "--text", "a"}, "not finite");
}

TEST_SUITE_END();
