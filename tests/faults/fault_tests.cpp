// Calls of the system that fail, one by one: each causes a line on stderr and exit code 1, and no output is
// damaged. sweep.py does the same for every single allocation.
#include "tests/faults/faults.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "tests/support/rng.h"

using namespace vit::test;

namespace {

/// Two images in in/, and a folder below it.
void write_images(const TestFolder& folder) {
  write_picture(folder / "in/a.ppm", 30, 40, 1);
  write_picture(folder / "in/deep/b.ppm", 40, 30, 2);
}

/// A run that writes a file, the file's name, and what it holds when nothing goes wrong.
struct WritingRun {
  std::vector<std::string> arguments;
  std::string output;
};

std::vector<WritingRun> writing_runs(const TestFolder& folder) {
  const std::string in = folder / "in";
  std::vector<WritingRun> runs;
  for (const char* name : {"x.npz", "x.npy", "x.safetensors", "x.jsonl"})
    runs.push_back({with_model("embed", {in, "--output", folder / name}), folder / name});
  runs.push_back(
      {with_model("preprocess", {in, "--size", "32", "--output", folder / "p.npy"}), folder / "p.npy"});
  runs.push_back({with_model("classify", {in, "--html", folder / "x.html"}), folder / "x.html"});
  return runs;
}

/// Checks how a disturbed run ended; returns whether it failed.
bool check_end(const RunResult& result) {
  CAPTURE(result.err);
  if (result.exit_code == 0) {
    CHECK(result.err.empty());
    return false;
  }
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() >= 1);
  CHECK(result.num_errors() <= 3);  // one for each image, one for the run
  for (const std::string& line : lines_of(result.err)) CHECK(line.starts_with("vit: "));
  return true;
}

}  // namespace

TEST_CASE("faults: any allocation that fails gives one line on stderr") {
  const TestFolder folder;
  write_images(folder);
  const std::vector<std::vector<std::string>> runs{
      with_model("classify", {folder / "in", "--format", "json"}),
      with_model("embed", {folder / "in", "--output", folder / "x.safetensors"})};
  Rng rng(1);
  for (const std::vector<std::string>& arguments : runs) {
    const std::size_t total = count_calls("malloc", arguments);
    const std::string plain = run_vit(arguments).out;
    constexpr std::size_t kTried = 40, kLast = 40;
    int num_failed = 0;
    for (std::size_t i = 0; i < kTried + kLast; ++i) {  // one in each stretch of the run, and where it writes
      const std::size_t call =
          i < kTried ? 1 + (i * total + rng.next() % total) / kTried : total - (i - kTried);
      CAPTURE(call);
      const RunResult result = run_with_fault("malloc:" + std::to_string(call), arguments);
      if (check_end(result)) {
        ++num_failed;
      } else {
        CHECK(result.out == plain);
      }
    }
    CHECK(num_failed > static_cast<int>(kTried) / 2);
    // Once there is none, there is none for the error either.
    const std::string later = "malloc:" + std::to_string(total / 2) + "+";
    const RunResult exhausted = run_with_fault(later, arguments);
    CHECK(exhausted.exit_code == 1);
    CHECK(exhausted.num_errors() == 1);
  }
}

TEST_CASE("faults: threads that the system refuses give one line on stderr") {
  const TestFolder folder;
  write_images(folder);
  const std::vector<std::string> arguments{"classify",  "--model", golden_model("rope-axial"),
                                           "--threads", "5",       folder / "in"};
  const RunOptions one_to_load{.environment = {{"OMP_NUM_THREADS", "1"}}};
  const RunResult plain = run_vit(arguments);
  for (int limit = 0; limit <= 9; ++limit) {
    const RunResult result = run_with_fault("threads:" + std::to_string(limit), arguments, one_to_load);
    CAPTURE(limit);
    CAPTURE(result.err);
    if (limit < 4) {
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      CHECK(contains(result.err, "threads"));
      CHECK(result.out.empty());
    } else {  // by own workers, and by OpenMP where threads that end cannot be in the way of new ones
      CHECK(result.exit_code == 0);
      CHECK(result.err.empty());
      CHECK(result.out == plain.out);
    }
  }
}

TEST_CASE("faults: a call that fails leaves the output whole or absent") {
  const TestFolder folder;
  write_images(folder);
  for (const WritingRun& run : writing_runs(folder)) {
    CAPTURE(run.output);
    REQUIRE(run_vit(run.arguments).exit_code == 0);
    const std::string plain = read_text(run.output);
    std::map<std::string, std::size_t> num_failed;
    for (const std::string kind :
         {"open", "fopen", "fdopen", "mkstemp", "fstat", "fsync", "ftruncate", "fseeko", "rename", "fread",
          "pread", "read", "write", "fwrite", "fflush", "mmap", "opendir", "readdir"}) {
      std::filesystem::remove(run.output);
      const std::size_t total = count_calls(kind, run.arguments);
      for (std::size_t call = 1; call <= std::min<std::size_t>(total, 12); ++call) {
        std::filesystem::remove(run.output);
        CAPTURE(kind);
        CAPTURE(call);
        const RunResult result = run_with_fault(kind + ":" + std::to_string(call), run.arguments);
        num_failed[kind] += check_end(result) ? 1 : 0;
        const bool is_there = std::filesystem::exists(run.output);
        CHECK((is_there || result.exit_code == 1));
        // A folder or an image that could not be read is missing from it; else it is the whole. A page does
        // without a thumbnail of an image that could be read once and not twice.
        if (is_there && run.output.ends_with(".html")) {
          CHECK(contains(read_text(run.output), "</html>"));
        } else if (is_there && !contains(result.err, folder / "in")) {
          CHECK((read_text(run.output) == plain));
        }
        for (const std::string& name : folder.names()) {
          const bool may_stay = name == "in" || folder / name == run.output ||
                                name.ends_with(".partial") ||  // to be continued, with its facts
                                name.ends_with(".run.json");
          CHECK_MESSAGE(may_stay, name);
          if (may_stay && name != "in") std::filesystem::remove(folder / name);
        }
      }
    }
    CHECK(num_failed["rename"] >= 1);
    CHECK(num_failed["fwrite"] >= 1);
    std::filesystem::remove(run.output);
  }
}

TEST_CASE("faults: two runs that write one output leave it whole") {
  const TestFolder folder;
  write_images(folder);
  for (const std::string name : {"x.npz", "x.safetensors", "x.jsonl"}) {
    const std::vector<std::string> arguments =
        with_model("embed", {folder / "in", "--output", folder / name});
    REQUIRE(run_vit(arguments).exit_code == 0);
    const std::string plain = read_text(folder / name);
    for (int round = 0; round < 3; ++round) {
      std::filesystem::remove(folder / name);
      RunResult results[2];
      std::thread other([&] { results[1] = run_vit(arguments); });
      results[0] = run_vit(arguments);
      other.join();
      CHECK((results[0].exit_code == 0 || results[1].exit_code == 0));
      for (const RunResult& result : results) {
        CAPTURE(result.err);
        CHECK((result.exit_code == 0 || contains(result.err, "another run is writing")));
      }
      CHECK((read_text(folder / name) == plain));
    }
  }
}

TEST_CASE("faults: names of files may hold any bytes") {
  const TestFolder folder;
  const std::vector<std::string> names{"\xFF\xFE.ppm", "line\nbreak.ppm", "tab\t.ppm",
                                       "\x1B[31m.ppm", "-.ppm",           " .ppm"};
  for (const std::string& name : names) write_picture(folder / ("in/" + name), 30, 30, 1);
  const RunResult listed = run_vit(with_model("classify", {folder / "in", "--format", "json"}));
  CHECK(listed.exit_code == 0);
  CHECK(lines_of(listed.out).size() == names.size());
  const std::string output = folder / "out\xFF\n.npy";
  const RunResult embedded = run_vit(with_model("embed", {folder / "in", "--output", output}));
  CAPTURE(embedded.err);
  CHECK(embedded.exit_code == 0);
  CHECK(parse_npy(read_text(output)).shape.front() == names.size());
  write_text(folder / "in/\xFF\n\x1B[2J.png", "no image");
  const RunResult refused = run_vit(with_model("classify", {folder / "in", "--format", "csv"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.num_errors() == 1);  // the name has no line of its own, and moves no cursor
  CHECK(!contains(refused.err, "\x1B"));
}

TEST_CASE("faults: reads may return less than requested") {
  const TestFolder folder;
  write_images(folder);
  for (const WritingRun& run : writing_runs(folder)) {
    REQUIRE(run_vit(run.arguments).exit_code == 0);
    const std::string plain = read_text(run.output);
    const RunResult result = run_with_fault("short", run.arguments);
    CHECK(result.exit_code == 0);
    CHECK(read_text(run.output) == plain);
  }
}
