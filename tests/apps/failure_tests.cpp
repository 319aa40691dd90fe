// What fails is named on stderr, the rest is done; interrupts and progress.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

// Empty files of the names that the loader looks for, in a folder before those of the system.
TEST_CASE("apps: a library that is opened late and is damaged concerns only the files that need it") {
  const TestFolder folder;
  std::istringstream files(
      read_text(std::filesystem::path(program_path()).parent_path() / "late_libraries.txt"));
  for (std::string soname, file; files >> soname >> file;) write_text(folder / soname, "");
  write_text(folder / "x.tar", "x");
  const RunOptions options{.environment = {{"LD_LIBRARY_PATH", folder.path()}}};
  const auto run = [&](const std::string& path) { return run_vit(with_model("classify", {path}), options); };
  CHECK(run(data_path("images/cat_tabby.jpg")).exit_code == 0);
  const std::pair<std::string, std::string> kNeeds[]{
      {"libavif.so", data_path("golden/preprocess/decode/alpha.avif")},
      {"libheif.so", data_path("golden/preprocess/decode/alpha.heic")},
      {"libarchive.so", folder / "x.tar"}};
  for (const auto& need : kNeeds) {
    const std::string& library = need.first;
    if (!contains(files.str(), library)) continue;  // linked, or not part of this build
    CAPTURE(library);
    const RunResult result = run(need.second);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, need.second + ": "));
    CHECK(contains(result.err, library));
    CHECK(contains(result.err, "cannot be opened"));
  }
}

TEST_CASE("apps: failed work is one line on stderr and exit code 1") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  std::filesystem::create_directory(folder / "empty");
  const std::string picture = folder / "a.ppm";
  const auto fails = [](const std::vector<std::string>& arguments, const std::string& cause) {
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CAPTURE(cause);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(result.err.starts_with("vit: "));
    CHECK(contains(result.err, cause));
    CHECK(result.out.empty());
  };
  fails(with_model("classify", {folder / "missing.jpg"}), "missing.jpg");
  fails(with_model("classify", {folder / "empty"}), "no images");
  fails({"classify", "--model", folder / "missing", picture}, "missing");
  fails({"classify", "--model", folder / "empty", picture}, "empty");
  fails({"classify", "--model", picture, picture}, "a.ppm");
  fails({"info", "--model", golden_model("rope-axial"), "--size", "3"}, "3 x 3");
  fails(with_model("classify", {"--labels", folder / "missing.txt", picture}), "missing.txt");
  fails(with_model("embed", {picture, "--output", folder / "missing/x.npz"}), "missing");
  fails(with_model("embed", {picture, "--output", "/proc/x.npz"}), "/proc/x.npz");
  fails(with_model("preprocess", {picture, "--output", folder / "missing/x.npz"}), "missing");
  fails(with_model("classify", {picture, "--max-pixels", "899"}), "30 x 30, the limit is 899");
  fails(with_model("preprocess", {picture, "--max-pixels", "899", "--output", folder / "x.npz"}),
        "30 x 30, the limit is 899");
  CHECK(run_vit(with_model("classify", {picture, "--max-pixels", "900"})).exit_code == 0);
  std::filesystem::remove(folder / "x.npz");
  fails(with_model("evaluate", {folder / "missing"}), "missing");
  fails(with_model("evaluate", {folder / "empty"}), "empty");
  CHECK(folder.names() == std::vector<std::string>{"a.ppm", "empty"});
}

TEST_CASE("apps: pipes and devices are refused, not waited for") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  for (const char* name : {"pipe.png", "pipe.npy", "pipe.txt"})
    REQUIRE(::mkfifo((folder / name).c_str(), 0600) == 0);
  for (const std::string& input : {folder / "pipe.png", folder / "pipe.npy", std::string("/dev/zero")}) {
    const RunResult result = run_vit(with_model("classify", {input}));
    CHECK(result.exit_code == 1);
    CHECK(result.err == "vit: " + input + ": is a pipe or device, expected a regular file\n");
  }
  const RunResult labelled =
      run_vit(with_model("classify", {"--labels", folder / "pipe.txt", folder / "a.ppm"}));
  CHECK(labelled.exit_code == 1);
  CHECK(contains(labelled.err, "pipe.txt"));
}

TEST_CASE("apps: results are not written to pipes, devices and loops of links") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  REQUIRE(::mkfifo((folder / "pipe.jsonl").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((folder / "partly.jsonl.partial").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "device.jsonl");
  std::filesystem::create_symlink("loop.jsonl", folder / "loop.jsonl");
  write_text(folder / "kept.txt", "kept");
  std::filesystem::create_symlink("kept.txt", folder / "linked.jsonl.partial");
  const std::vector<std::string> names = folder.names();
  const std::map<std::string, std::string> causes{
      {"pipe", ".jsonl: is a pipe or device, expected a regular file"},
      {"device", ".jsonl: is a pipe or device, expected a regular file"},
      {"partly", ".jsonl.partial: is a pipe or device, expected a regular file"},
      {"linked", ".jsonl.partial: is a symbolic link, expected a regular file"},
      {"loop", ".jsonl: cannot be examined: "}};
  for (const auto& [name, cause] : causes) {
    for (const bool resume : {false, true}) {
      std::vector<std::string> arguments{folder / "a.ppm", "--output", folder / (name + ".jsonl")};
      if (resume) arguments.push_back("--resume");
      const RunResult result = run_vit(with_model("embed", arguments));
      CAPTURE(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      CHECK(contains(result.err, (folder / name) + cause));
    }
  }
  std::filesystem::create_symlink("pipe.jsonl", folder / "pipe.npz");
  CHECK(contains(run_vit(with_model("preprocess", {folder / "a.ppm", "--output", folder / "pipe.npz"})).err,
                 "pipe.npz: is a pipe"));
  std::filesystem::remove(folder / "pipe.npz");
  CHECK(folder.names() == names);
  CHECK(read_text(folder / "kept.txt") == "kept");
}

TEST_CASE("apps: pixels that are not finite give no class and no features") {
  const TestFolder folder;
  Tensor<float> pixels(Shape{2, 3, 32, 32});
  pixels.data()[5] = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder / "x.npy", pixels.view());
  const RunResult result = run_vit(with_model("classify", {"--format", "json", folder / "x.npy"}));
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "x.npy[0]: the pixels are not finite"));
  REQUIRE(lines_of(result.out).size() == 1);
  CHECK(contains(result.out, "x.npy[1]"));
  const RunResult embedded = run_vit(with_model("embed", {folder / "x.npy", "--output", folder / "y.npz"}));
  CHECK(embedded.exit_code == 1);
  CHECK(contains(embedded.err, "x.npy[0]: the pixels are not finite"));
  CHECK(read_npz(folder / "y.npz").at("files").strings() ==
        std::vector<std::string>{(folder / "x.npy") + "[1]"});
}

TEST_CASE("apps: a image that does not fit the others in .npy is named, the others are written") {
  const TestFolder folder;
  write_picture(folder / "in/1.ppm", 40, 40, 1);
  write_picture(folder / "in/2.ppm", 40, 80, 2);
  write_picture(folder / "in/3.ppm", 40, 40, 3);
  for (const std::string command : {"embed", "preprocess"}) {
    std::vector<std::string> arguments{folder / "in", "--size", "native", "--output", folder / "x.npy"};
    if (command == "embed") arguments.insert(arguments.end(), {"--features", "patches"});
    const RunResult result = run_vit(with_model(command, arguments));
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "2.ppm: "));
    CHECK(parse_npy(read_text(folder / "x.npy")).shape.front() == 2);
  }
}

TEST_CASE("apps: results that cannot be printed end the run") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  for (const std::vector<std::string>& arguments :
       {with_model("classify", {folder / "a.ppm", folder / "a.ppm"}), {"info"}, {"--help"}}) {
    const RunResult result = run_vit(arguments, {.standard_output = "/dev/full"});
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "No space left"));
  }
}

TEST_CASE("apps: preprocessed pixels need no file with rules of preprocessing") {
  const TestFolder folder;
  const std::string model = folder / "model", pixels = folder / "x.npy", picture = folder / "a.ppm";
  std::filesystem::create_directory(model);
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(golden_model("hf-vit") + "/" + name, model);
  write_npy(pixels, Tensor<float>(Shape{2, 3, 24, 24}).view());
  write_picture(picture, 30, 30, 1);

  const RunResult bare = run_vit({"classify", "--model", model, "--format", "json", pixels});
  CHECK(bare.exit_code == 0);
  CHECK(bare.out == run_vit({"classify", "--model", golden_model("hf-vit"), "--format", "json", pixels}).out);
  CHECK(run_vit({"embed", "--model", model, pixels, "--output", folder / "x.npz"}).exit_code == 0);
  CHECK(run_vit({"preprocess", "--model", model, pixels, "--output", folder / "y.npy"}).exit_code == 0);
  CHECK(parse_npy(read_text(folder / "y.npy")).bytes == parse_npy(read_text(pixels)).bytes);

  const auto fails = [&](const std::vector<std::string>& arguments) {
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, model));
    CHECK(contains(result.err, "preprocessor_config.json"));
    CHECK(result.out.empty());
  };
  fails({"classify", "--model", model, "--format", "csv", picture, picture});
  fails({"embed", "--model", model, picture, "--output", folder / "z.npz"});
  fails({"preprocess", "--model", model, picture, "--output", folder / "z.npz"});
  CHECK(!std::filesystem::exists(folder / "z.npz"));

  const RunResult mixed = run_vit({"embed", "--model", model, picture, pixels, "--output", folder / "z.npz"});
  CHECK(mixed.exit_code == 1);
  CHECK(mixed.num_errors() == 1);
  CHECK(contains(mixed.err, picture + ": "));
  CHECK(read_npz(folder / "z.npz").at("files").strings().size() == 2);

  const RunResult text = run_vit({"info", "--model", model});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "preprocessing (unknown)\n  no file defines the preprocessing"));
  const Json facts = parse_json(run_vit({"info", "--model", model, "--json"}).out, "info").at("model");
  CHECK(!facts.find("preprocessing"));  // null
  CHECK(facts.at("flops_per_image").at("height").as_size() ==
        facts.at("config").at("image_height").as_size());
}

TEST_CASE("apps: an absurd value of a configuration is reported with the file that holds it") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  const std::filesystem::path model = golden_model("rope-axial");
  std::filesystem::create_directory(folder / "model");
  std::filesystem::copy(model / "model.safetensors", folder / "model/model.safetensors");
  std::string config = read_text(model / "config.json");
  const std::size_t at = config.find("\"depth\"");
  REQUIRE(at != std::string::npos);
  config.replace(at, config.find_first_of(",}", at) - at, "\"depth\": 1000000000");
  write_text(folder / "model/config.json", config);
  const RunResult result = run_vit({"classify", "--model", folder / "model", folder / "a.ppm"});
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(contains(result.err, (folder / "model/config.json") + ": depth must be"));
}

TEST_CASE("apps: bad images are named, the others are done") {
  const TestFolder folder;
  write_picture(folder / "in/b.ppm", 40, 30, 1);
  write_picture(folder / "in/deep/er/c.PPM", 30, 50, 2);
  write_picture(folder / "in/z.ppm", 24, 24, 3);
  write_text(folder / "in/empty.jpg", "");
  write_text(folder / "in/text.png", "this is no image");
  write_text(folder / "in/notes.txt", "not an image extension: counted, not read");
  const RunResult result =
      run_vit(with_model("classify", {"--format", "json", folder / "in", folder / "missing.jpg"}));
  CHECK(result.exit_code == 1);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(parse_json(lines[0], "line").at("file").as_string() == folder / "in/b.ppm");
  CHECK(parse_json(lines[1], "line").at("file").as_string() == folder / "in/deep/er/c.PPM");
  CHECK(parse_json(lines[2], "line").at("file").as_string() == folder / "in/z.ppm");
  CHECK(result.num_errors() == 4);
  CHECK(contains(result.err, (folder / "in") + ": 1 file is skipped, not images: 1 .txt"));
  for (const char* name : {"empty.jpg", "text.png", "missing.jpg"}) {
    CHECK(contains(result.err,
                   "vit: " + (folder / (std::strcmp(name, "missing.jpg") == 0 ? "" : "in/")) + name + ": "));
  }
  // the same with files of results: the good rows are written
  const RunResult embedded = run_vit(with_model("embed", {folder / "in", "--output", folder / "x.npz"}));
  CHECK(embedded.exit_code == 1);
  CHECK(embedded.num_errors() == 3);
  CHECK(read_npz(folder / "x.npz").at("files").strings().size() == 3);
  CHECK(run_vit(with_model("embed", {folder / "in", "--quiet", "--output", folder / "x.npz"})).num_errors() ==
        2);
}

TEST_CASE("apps: the list of inputs may come from standard input") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 30, 1);
  write_picture(folder / "b.ppm", 30, 30, 2);
  const std::string list = (folder / "b.ppm") + "\r\n\n" + (folder / "a.ppm");
  const RunResult result =
      run_vit(with_model("classify", {"--format", "json", "-"}), {.standard_input = list});
  CHECK(result.exit_code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(contains(lines[0], "b.ppm"));
  CHECK(contains(lines[1], "a.ppm"));

  const RunResult of_folder = run_vit(with_model("classify", {"-"}), {.standard_input_path = folder.path()});
  CHECK(of_folder.exit_code == 1);
  CHECK(of_folder.err == "vit: -: standard input is a folder, expected paths, one per line\n");
}

TEST_CASE("apps: a folder that cannot be read is named, the others are done") {
  const TestFolder folder;
  write_picture(folder / "in/0/a.ppm", 40, 30, 1);
  std::filesystem::create_directory_symlink("self", folder / "in/self");  // leads to itself
  const RunResult evaluated = run_vit(with_model("evaluate", {"--format", "json", folder / "in"}));
  CAPTURE(evaluated.err);
  CHECK(evaluated.exit_code == 0);
  CHECK(parse_json(evaluated.out, "evaluate").at("images").as_size() == 1);

  std::filesystem::create_directory(folder / "in/closed");
  std::filesystem::permissions(folder / "in/closed", std::filesystem::perms::none);
  std::error_code unreadable;
  std::filesystem::directory_iterator(folder / "in/closed", unreadable);
  const bool is_closed = static_cast<bool>(unreadable);  // not so for root
  const RunResult classified = run_vit(with_model("classify", {"--format", "json", folder / "in"}));
  CHECK(classified.exit_code == (is_closed ? 1 : 0));
  CHECK(lines_of(classified.out).size() == 1);
  CHECK(classified.num_errors() == (is_closed ? 1 : 0));
}

TEST_CASE("apps: progress is shown only on request") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 40, 1);
  CHECK(run_vit(with_model("classify", {folder / "a.ppm"})).err.empty());
  CHECK(contains(run_vit(with_model("classify", {folder / "a.ppm", "--progress", "always"})).err, "1/1"));
  CHECK(run_vit(with_model("classify", {folder / "a.ppm", "--progress", "always", "--quiet"})).err.empty());
}

TEST_CASE(
    "apps: after SIGINT, SIGTERM and SIGHUP computed results stay, and the exit code names the signal") {
  const TestFolder folder;
  constexpr int kCopies = 4000;  // more than can be done before the signal comes
  write_picture(folder / "a.ppm", 300, 300, 1);
  const std::string list = repeated_line(folder / "a.ppm", kCopies);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    const RunResult classified = run_vit(with_model("classify", {"--format", "json", "-"}),
                                         {.standard_input = list, .signal = signal, .signal_after_lines = 5});
    CHECK(classified.exit_code == 128 + signal);
    const std::vector<std::string> lines = lines_of(classified.out);
    CHECK(lines.size() >= 5);
    CHECK(lines.size() < kCopies);
    for (const std::string& line : lines) CHECK(parse_json(line, "line").at("top").size() == 5);
  }
}

TEST_CASE("apps: an array that is interrupted by SIGTERM is written up to there") {
  const TestFolder folder;
  constexpr std::size_t kCopies = 4000;
  write_picture(folder / "a.ppm", 300, 300, 1);
  const std::string list = repeated_line(folder / "a.ppm", kCopies);
  const RunResult embedded = run_vit(with_model("embed", {"--features", "pooled", "--output",
                                                          folder / "x.npz", "--progress", "always", "-"}),
                                     {.standard_input = list, .signal_at_progress = true, .signal = SIGTERM});
  CHECK(embedded.exit_code == 128 + SIGTERM);
  CHECK(!contains(embedded.err, "vit: "));
  const std::map<std::string, NpyArray> arrays = read_npz(folder / "x.npz");
  CHECK(arrays.at("pooled").shape.front() == arrays.at("files").shape.front());
  CHECK(arrays.at("files").shape.front() < kCopies);
}

TEST_CASE("apps: a run that was started with Ctrl-C ignored runs to its end") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  const std::string list = repeated_line(folder / "a.ppm", 200);
  const RunResult classified =
      run_vit(with_model("classify", {"--format", "json", "-"}),
              {.standard_input = list, .signal = SIGINT, .signal_after_lines = 1, .ignores_signal = true});
  CHECK(classified.exit_code == 0);
  CHECK(lines_of(classified.out).size() == 200);
}
