// What every command takes for wrong usage: one line on stderr and exit code 2.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("apps: help and version on every level") {
  const RunResult help = run_vit({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(contains(help.out, "Examples:"));
  CHECK(help.err.empty());
  CHECK(run_vit({"--version"}).exit_code == 0);
  CHECK(contains(run_vit({"--version"}).out, "vit "));
  for (const char* command : {"classify", "evaluate", "embed", "preprocess", "info", "bench"}) {
    CAPTURE(command);
    const RunResult result = run_vit({command, "--help"});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "Examples:"));
    CHECK(contains(result.out, "--model"));
    CHECK(contains(help.out, command));
    CHECK(result.err.empty());
  }
}

TEST_CASE("apps: mistyped words are answered with a suggestion") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  const std::string picture = folder / "a.ppm";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"clasify", picture}, "classify"},
      {{"duplicate", picture}, "duplicates"},
      {{"classify", "--topk", "3", picture}, "--top"},
      {{"classify", "--topk=3", picture}, "--top"},
      {{"classify", "--modle", "x", picture}, "--model"},
      {{"embed", "--feature", "cls", picture}, "--features"},
      {{"classify", "--device", "cuda", picture}, "CPU"},
      {{picture}, "vit classify " + picture},
      {{"bench", "--architecture", "vit_base"}, "vit_base_"},
  };
  for (const auto& [arguments, answer] : cases) {
    const std::string& meant = answer;  // clang 14 captures no structured binding
    CAPTURE(meant);
    const RunResult result = run_vit(arguments);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, meant));
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
  CHECK(!contains(run_vit({"nonsense"}).err, "did you mean"));
  const RunResult repository = run_vit({"classify", "--model", "timm/vit_base_patch16_224", picture});
  CHECK(repository.exit_code == 1);
  CHECK(contains(repository.err, "hf download timm/vit_base_patch16_224"));
  CHECK(!contains(run_vit({"classify", "--model", folder / "none", picture}).err, "download"));
}

TEST_CASE("apps: wrong usage is one line on stderr and exit code 2") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  std::filesystem::create_hard_link(folder / "a.ppm", folder / "a.npz");
  const std::string picture = folder / "a.ppm", output = folder / "x.npz",
                    picture_as_output = folder / "a.npz";
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"nonsense"},
      {"classify"},
      with_model("classify", {"--nonsense", picture}),
      with_model("classify", {"--top", "0", picture}),
      with_model("classify", {"--top", "many", picture}),
      with_model("classify", {"--format", "xml", picture}),
      with_model("classify", {"--size", "0", picture}),
      with_model("classify", {"--std", "0", picture}),
      with_model("classify", {"--size", "12x", picture}),
      with_model("classify", {"--size", "-5", picture}),
      with_model("classify", {"--size", "big", picture}),
      with_model("classify", {"--dtype", "float7", picture}),
      with_model("classify", {"--kernels", "nonsense", picture}),
      with_model("classify", {"--architecture", "nonsense", picture}),
      {"bench", "--architecture", "vit_base_patch16_ropes_224"},
      with_model("classify", {"--resampler", "nonsense", picture}),
      with_model("classify", {"--pillow", "nonsense", picture}),
      with_model("classify", {"--exif", "nonsense", picture}),
      with_model("classify", {"--set", "no_value", picture}),
      with_model("classify", {"--set", "foo=3", picture}),
      with_model("classify", {"--set", "num_heads=abc", picture}),
      with_model("classify", {"--set", "num_heads=-2", picture}),
      with_model("classify", {"--set", "num_heads={", picture}),
      with_model("classify", {"--set", "img_size=0", picture}),
      with_model("classify", {"--set", "img_size=24x0", picture}),
      {"info", "--architecture", "vit_tiny_patch16_224", "--set", "foo=3"},
      {"info", "--model", golden_model("hf-vit"), "--set", "num_heads=2"},
      {"classify", "--architecture", "vit_tiny_patch16_224", picture},
      {"embed", "--architecture", "vit_tiny_patch16_224", picture, "--output", output},
      {"evaluate", "--architecture", "vit_tiny_patch16_224", folder.path()},
      with_model("classify", {"--architecture", "", picture}),
      with_model("classify", {"--kernels", "", picture}),
      with_model("embed", {"--features", "", picture, "--output", output}),
      with_model("embed", {picture, "--output", picture_as_output}),
      with_model("classify", {"--threads", "-1", picture}),
      with_model("classify", {"--threads", "0x1", picture}),
      with_model("classify", {"--top", "010", picture}),
      with_model("classify", {"--labels", "", picture}),
      {"classify", "--model", "", picture},
      {"classify", "--model=", picture, picture},  // must not take a image for the value
      with_model("embed", {picture, "--output="}),
      with_model("bench", {"--seconds", "nan"}),
      with_model("classify", {"--batch", "-1", picture}),
      with_model("embed", {picture}),
      with_model("embed", {picture, "--output", folder / "x.txt"}),
      with_model("embed", {picture, "--output", output, "--features", "nonsense"}),
      with_model("embed", {picture, "--output", output, "--features", "block.2"}),
      with_model("embed", {picture, "--output", output, "--features", "block.-3"}),
      with_model("embed", {picture, "--output", output, "--features", "block.x"}),
      with_model("embed", {picture, "--output", output, "--features", "projected"}),
      with_model("embed", {picture, "--output", output, "--features", "pooled,"}),
      with_model("embed", {picture, "--output", folder / "x.npy", "--features", "pooled,cls"}),
      with_model("embed", {picture, "--output", output, "--resume"}),
      with_model("preprocess", {picture, "--output", folder / "x.jsonl"}),
      with_model("preprocess", {picture, "--output", output, "--stage", "nonsense"}),
      with_model("preprocess", {picture, "--output", folder / "x.png", "--stage", "pixels"}),
      with_model("bench", {"--sizes", "native"}),
      with_model("bench", {"--batch", "0"}),
      with_model("bench", {"--clients", "2"}),
      with_model("bench", {"--image", picture}),
      with_model("bench", {"--serve", "--batch", "2"}),
      {"info", "--tensors"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    CAPTURE(command);
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
    CHECK(result.err.starts_with("vit: "));
    CHECK(result.out.empty());
  }
  CHECK(folder.names() == std::vector<std::string>{"a.npz", "a.ppm"});
}

TEST_CASE(
    "apps: --architecture without weights is no model to compute with, and bench names the option it reads") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  CHECK(contains(run_vit({"classify", "--architecture", "vit_tiny_patch16_224", folder / "a.ppm"}).err,
                 "--architecture is the architecture of a weight file: give --model"));
  CHECK(run_vit({"info", "--architecture", "vit_tiny_patch16_224"}).exit_code == 0);
  CHECK(run_vit({"preprocess", "--architecture", "vit_tiny_patch16_224", folder / "a.ppm", "--output",
                 folder / "x.npz"})
            .exit_code == 0);
  CHECK(contains(run_vit(with_model("bench", {"--sizes", "foo"})).err, "--sizes: "));
  CHECK(contains(run_vit(with_model("bench", {"--size", "native"})).err, "--size: native"));
}

TEST_CASE("apps: results do not replace the files they come from") {
  const TestFolder folder;
  write_picture(folder / "in/a.ppm", 30, 30, 1);
  const Tensor<float> pixels(Shape{2, 3, 32, 32});
  write_npy(folder / "in/x.npy", pixels.view());
  std::filesystem::copy(golden_model("rope-axial"), folder / "model");
  std::filesystem::create_symlink(folder / "in/a.ppm", folder / "a.png");
  std::filesystem::create_symlink(folder / "in", folder / "same");
  std::filesystem::create_hard_link(folder / "model/model.safetensors", folder / "m.safetensors");
  const std::string picture = read_text(folder / "in/a.ppm"), array = read_text(folder / "in/x.npy");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& cause) {
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, cause));
  };
  const std::string model = folder / "model", weights = model + "/model.safetensors";
  refused({"preprocess", "--model", model, folder / "in", "--output", folder / "a.png"},
          "is the input " + (folder / "in/a.ppm"));
  refused({"preprocess", "--model", model, folder / "in/x.npy", "--output", folder / "same/x.npy"},
          "is the input " + (folder / "in/x.npy[0]"));
  refused({"embed", "--model", model, folder / "in", "--output", folder / "m.safetensors"}, "weight file");
  refused({"embed", "--model", weights, folder / "in", "--output", weights}, "weight file");
  refused({"preprocess", "--model", model, folder / "in", "--output", weights}, "weight file");
  CHECK(read_text(folder / "in/a.ppm") == picture);
  CHECK(read_text(folder / "in/x.npy") == array);
  // a file of the folder that is neither may be replaced
  for (int i = 0; i < 2; ++i) {
    CHECK(run_vit({"embed", "--model", model, folder / "in/a.ppm", "--output", model + "/x.safetensors"})
              .exit_code == 0);
  }
}

TEST_CASE("apps: results in a folder, and pages, keep the files that are read") {
  const TestFolder folder;
  write_picture(folder / "in/a.png", 30, 30, 1);  // the content decides, it is a PPM
  write_picture(folder / "in/b.png", 30, 30, 2);
  std::filesystem::create_symlink(folder / "in", folder / "same");
  const std::string bank = folder / "bank.safetensors", in = folder / "in",
                    model = golden_model("rope-axial");
  write_text(folder / "names.txt", "one\ntwo\n");
  write_text(folder / "texts.jsonl", "{\"text\": \"one\"}\n");
  std::filesystem::create_symlink(folder / "texts.jsonl", folder / "linked.jsonl");
  if (is_built("anomaly")) {
    REQUIRE(run_vit({"anomaly", "fit", "--model", model, in, "-o", bank}).exit_code == 0);
  } else {
    write_text(bank, "no bank");
  }
  const auto files = [&] {
    std::string all;
    for (const char* name : {"in/a.png", "in/b.png", "names.txt", "texts.jsonl", "bank.safetensors"})
      all += read_text(folder / name);
    return all;
  };
  const std::string before = files();
  const std::vector<std::vector<std::string>> commands{
      {"show", "--model", model, "--what", "pca", "--output", folder / "same"},
      {"anomaly", "score", bank, "--maps", folder / "same"},
      {"anomaly", "score", bank, "--html", bank},
      {"anomaly", "score", bank, "--maps", folder / "same", "--shard", "1/3"},
      {"depth", "--model", golden_model("../dense/hf-depth-anything"), "--output", (folder / "same") + "/"},
      {"depth", "--model", golden_model("../dense/hf-depth-anything"), "--output", (folder / "same") + "/",
       "--shard", "2/3"},  // none of its own
      {"classify", "--model", golden_model("hf-clip"), "--classes-file", folder / "names.txt", "--html",
       folder / "names.txt"},
      {"embed", "--model", golden_model("hf-clip"), "--text-file", folder / "texts.jsonl", "--output",
       folder / "linked.jsonl"}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command.front());
    if (!is_command_built(command.front())) continue;
    command.push_back(in);
    const RunResult result = run_vit(command);
    CAPTURE(result.err);
    CHECK(result.exit_code != 0);
    CHECK((contains(result.err, "would replace the input") || contains(result.err, "is read by this run")));
    CHECK(files() == before);
  }
}

TEST_CASE("apps: a mistyped option is named, not the one that is missing for it") {
  CHECK(contains(run_vit({"classify", "--bogus"}).err, "--bogus"));
  CHECK(contains(run_vit(with_model("embed", {"--outptu", "x.npz", "a.png"})).err, "--outptu"));
  CHECK(contains(run_vit(with_model("embed", {"a.png"})).err, "--output is required"));
}

TEST_CASE("apps: values of --set end where the inputs begin") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 30, 1);
  write_picture(folder / "b.ppm", 30, 30, 2);
  const RunResult result =
      run_vit(with_model("classify", {"--set", "num_classes=6", "--set", "img_size=24", folder / "a.ppm",
                                      folder / "b.ppm", "--top", "1", "--format", "json"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(lines_of(result.out).size() == 2);
}

TEST_CASE("apps: a name in square brackets is one name") {
  const TestFolder folder;
  write_picture(folder / "[2024]/[a,b].ppm", 40, 30, 1);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const RunResult result =
      run_vit(with_model("classify", {"--format", "json", "[2024]", "./[2024]/[a,b].ppm"}));
  std::filesystem::current_path(before);
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(parse_json(lines[0], "line").at("file").as_string() == "[2024]/[a,b].ppm");
  CHECK(parse_json(lines[1], "line").at("file").as_string() == "./[2024]/[a,b].ppm");
}
