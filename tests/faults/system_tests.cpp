// What a system does to a run from outside: file systems that are full or read-only, readers that go away,
// and a clock that is set back.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/faults/faults.h"

using namespace vit::test;

namespace {

namespace fs = std::filesystem;

/// Runs with a file system of its own at `place`, mounted with these options in a namespace of the run.
/// `listing` gets the names that are there at its end.
RunOptions mounted(const std::string& options, const std::string& place, const std::string& listing) {
  fs::create_directories(place);
  return {.wrapper = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                      R"(mount -t tmpfs -o "$0" none "$1" || exit 99
place=$1 listing=$2; shift 2
"$@"; code=$?
ls -A "$place" > "$listing"
exit $code)",
                      options, place, listing}};
}

/// Whether a process may mount file systems of its own here; containers often forbid it.
bool can_mount() {
  const TestFolder folder;
  RunOptions options = mounted("size=64k", folder / "small", folder / "listing");
  return run_vit({"--version"}, options).exit_code == 0;
}

void write_images(const TestFolder& folder) {
  for (unsigned i = 0; i < 40; ++i) write_picture(folder / ("in/" + std::to_string(i) + ".ppm"), 30, 40, i);
}

/// Runs that write more than 4 KiB below `place`.
std::vector<std::vector<std::string>> writing_runs(const TestFolder& folder, const std::string& place) {
  const std::string in = folder / "in";
  std::vector<std::vector<std::string>> runs;
  for (const char* name : {"x.npz", "x.npy", "x.safetensors", "x.jsonl"})
    runs.push_back(with_model("embed", {in, "--features", "patches", "--output", place + "/" + name}));
  runs.push_back(with_model("embed", {in, "--part-size", "7", "--output", place + "/parts/"}));
  runs.push_back(with_model("preprocess", {in, "--size", "32", "--output", place + "/p.npy"}));
  runs.push_back(with_model("classify", {in, "--html", place + "/x.html"}));
  if (is_built("index")) runs.push_back(with_model("index", {in, "--output", place + "/index"}));
  return runs;
}

/// What a failed run may leave: what a later one continues.
bool may_stay(const std::string& name) {
  return name.ends_with(".partial") || name.ends_with(".run.json") || name == "parts" || name == "index";
}

}  // namespace

TEST_CASE("faults: a file system that is full or read-only ends a run in one line") {
  if (!can_mount()) {
    MESSAGE("no file system may be mounted here");
    return;
  }
  const TestFolder folder;
  write_images(folder);
  const std::string place = folder / "small", listing = folder / "listing";
  for (const std::string options : {"size=4k", "ro"}) {
    CAPTURE(options);
    for (const std::vector<std::string>& arguments : writing_runs(folder, place)) {
      CAPTURE(arguments);
      const RunResult result = run_vit(arguments, mounted(options, place, listing));
      CHECK(result.exit_code == 1);
      CHECK_MESSAGE(result.num_errors() == 1, result.err);
      CHECK_MESSAGE(contains(result.err, place), result.err);
      for (const std::string& name : lines_of(read_text(listing))) CHECK_MESSAGE(may_stay(name), name);
    }
  }
}

TEST_CASE("faults: a reader that goes away or was never there ends a run") {
  const TestFolder folder;
  write_images(folder);
  const std::vector<std::string> arguments = with_model("classify", {"--format", "csv", folder / "in"});
  const RunResult gone = run_vit(
      arguments, {.wrapper = {"sh", "-c", R"({ "$@"; echo $? > "$0"; } | head -n 1)", folder / "code"}});
  CHECK(lines_of(gone.out).size() == 1);
  const std::string code = read_text(folder / "code");
  CHECK_MESSAGE((code == "0\n" || code == "1\n" || code == "141\n"), code);  // 0: all fitted the pipe
  CHECK(gone.num_errors() <= 1);
  const RunResult closed = run_vit(arguments, {.wrapper = {"sh", "-c", R"(exec "$0" "$@" >&-)"}});
  CHECK(closed.exit_code == 1);
  CHECK_MESSAGE(closed.num_errors() == 1, closed.err);
}

TEST_CASE("faults: a clock that is set back changes no output") {
  const TestFolder folder;
  write_images(folder);
  for (const std::vector<std::string>& command :
       {with_model("embed", {folder / "in", "--part-size", "7", "--resume", "--output", "OUT/"}),
        with_model("index", {folder / "in", "--output", "OUT"})}) {
    if (command.front() == "index" && !is_built("index")) continue;
    const auto run = [&](const std::string& name, bool has_fault) {
      std::vector<std::string> arguments = command;
      std::ranges::for_each(arguments, [&](std::string& argument) {
        if (argument.starts_with("OUT")) argument = folder / (name + argument.substr(3));
      });
      const RunResult result = has_fault ? run_with_fault("clock", arguments) : run_vit(arguments);
      CHECK(result.exit_code == 0);
      CHECK_MESSAGE(result.err.empty(), result.err);
    };
    const std::string plain = command.front() + "-plain", disturbed = command.front() + "-disturbed";
    run(plain, false);
    run(disturbed, true);
    run(disturbed, true);  // finds that all is done
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / plain)) {
      const std::string name = entry.path().filename().string();
      CAPTURE(name);
      CHECK((read_text(entry.path()) == read_text(fs::path(folder / disturbed) / name)));
    }
  }
}
