// What is easily taken for something else, and what it is called then: videos, addresses, whole data sets,
// names in another form of Unicode; and how failures are reported.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

/// ROOT/LABEL/0.ppm and 1.ppm for each label.
void write_labels(const std::string& root, const std::vector<std::string>& labels) {
  unsigned seed = 1;
  for (const std::string& label : labels) {
    for (const char* name : {"0.ppm", "1.ppm"})
      write_picture(root + "/" + label + "/" + name, 30, 40, ++seed);
  }
}

/// The one line of stderr of a command that fails.
std::string refusal(const std::vector<std::string>& arguments) {
  const RunResult result = run_vit(arguments);
  CAPTURE(result.err);
  CHECK(result.exit_code != 0);
  CHECK(result.num_errors() == 1);
  return result.err;
}

}  // namespace

TEST_CASE("apps: the parts of a data set are not its classes, in any command" * doctest::test_suite("fit")) {
  const TestFolder folder;
  write_labels(folder / "set/train", {"cat", "dog"});
  write_labels(folder / "set/val", {"cat", "dog"});
  const std::string head = folder / "head.safetensors";
  for (const std::string& error : {refusal(with_model("fit", {folder / "set", "--output", head})),
                                   refusal(with_model("evaluate", {folder / "set"}))}) {
    CAPTURE(error);
    CHECK(contains(error, "train"));
    CHECK(contains(error, "val"));
    CHECK(contains(error, folder / "set/train"));
  }
  CHECK_FALSE(fs::exists(head));
  // folders of images may be called so
  write_labels(folder / "vehicles", {"train", "test"});
  CHECK(run_vit(with_model("fit", {folder / "vehicles", "--output", head})).exit_code == 0);
}

TEST_CASE("apps: defects are not learned as good" * doctest::test_suite("anomaly")) {
  const TestFolder folder;
  write_labels(folder / "mv", {"train/good", "test/good", "test/scratch", "ground_truth/scratch"});
  const auto fit = [&](const std::string& place) {
    return with_model("anomaly",
                      {"fit", folder / place, "--output", folder / "bank.safetensors", "--size", "32"});
  };
  for (const char* place : {"mv", "mv/test"}) {
    const std::string error = refusal(fit(place));
    CHECK(contains(error, "good"));
    CHECK(contains(error, folder / place));
  }
  CHECK(contains(refusal(fit("mv")), folder / "mv/train/good"));
  CHECK(run_vit(fit("mv/train/good")).exit_code == 0);
}

TEST_CASE("apps: nothing is downloaded, and the message has the command that does") {
  const TestFolder folder;
  const std::string address = "https://example.com/photo.jpg";
  for (const char* command : {"classify", "embed", "preprocess", "index"}) {
    if (!is_command_built(command)) continue;
    std::vector<std::string> arguments = with_model(command, {address});
    if (std::string(command) != "classify")
      arguments.insert(arguments.end(),
                       {"--output", folder / (std::string(command) == "index" ? "x.index" : "x.npy")});
    CHECK(contains(refusal(arguments), "curl -LO"));
  }
  CHECK(contains(refusal({"info", "--model", "hf-hub:timm/vit_tiny_patch16_224.augreg_in21k"}),
                 "hf download timm/vit_tiny_patch16_224.augreg_in21k"));
  CHECK(contains(refusal({"embed", "x.npy", "--output", folder / "y.npy", "--model", "vit_tiny_patch16_224"}),
                 "hf download timm/vit_tiny_patch16_224"));
}

TEST_CASE("apps: files of other programs are named, as images and as models") {
  const TestFolder folder;
  write_text(folder / "scan", std::string(128, '\0') + "DICM" + std::string(400, '\0'));
  write_text(folder / "model.gguf", "GGUF" + std::string(100, '\0'));
  write_text(folder / "images.zip", "PK\x03\x04" + std::string(100, '\0'));
  CHECK(contains(refusal(with_model("classify", {folder / "scan"})), "DICOM"));
  CHECK(contains(refusal({"info", "--model", folder / "scan"}), "DICOM"));
  CHECK(contains(refusal({"info", "--model", folder / "model.gguf"}), "GGUF"));
  CHECK(contains(refusal(with_model("classify", {folder / "model.gguf"})), "GGUF"));
  CHECK(contains(refusal(with_model("classify", {folder / "images.zip"})), "zip"));
  fs::create_directories(folder / "hub/onnx");
  write_text(folder / "hub/config.json", "{}");
  write_text(folder / "hub/onnx/model.onnx", "x");
  CHECK(contains(refusal({"info", "--model", folder / "hub"}), "ONNX"));
}

TEST_CASE("apps: folders are found by their names in any form of Unicode" * doctest::test_suite("fit")) {
  const TestFolder folder;
  write_labels(folder / "train", {"K\u00E4tzchen", "dog"});
  const std::string head = folder / "head.safetensors";
  REQUIRE(run_vit(with_model("fit", {folder / "train", "--output", head})).exit_code == 0);
  write_labels(folder / "val", {"Ka\u0308tzchen", "dog"});  // as macOS writes it
  const RunResult result =
      run_vit(with_model("evaluate", {"--classifier", head, "--format", "json", folder / "val"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(parse_json(result.out, "evaluate").at("images").as_size() == 4);
}

TEST_CASE("apps: vit help is --help") {
  CHECK(run_vit({"help"}).out == run_vit({"--help"}).out);
  CHECK(run_vit({"help", "classify"}).out == run_vit({"classify", "--help"}).out);
  CHECK(run_vit({"help", "clasify"}).exit_code == 2);
}

TEST_CASE("apps: a page shows what failed, and why") {
  const TestFolder folder;
  write_picture(folder / "in/a.ppm", 30, 40, 1);
  write_text(folder / "in/broken.png", "no image");
  const RunResult result = run_vit(with_model("classify", {folder / "in", "--html", folder / "page.html"}));
  CHECK(result.exit_code == 1);
  const std::string page = read_text(folder / "page.html");
  CHECK(contains(page, "1 failed"));
  CHECK(contains(page, "broken.png"));
  CHECK(contains(page, "the file contains text"));
}

TEST_CASE("apps: no message begins with the name of a function") {
  const TestFolder folder;
  write_text(folder / "text.safetensors", "no tensors");
  write_text(folder / "labels.json", "[3");
  write_picture(folder / "a.ppm", 30, 40, 1);
  const std::vector<std::vector<std::string>> failing{
      {"info", "--model", folder / "none"},
      {"info", "--model", folder / "text.safetensors"},
      with_model("classify", {"--labels", folder / "labels.json", folder / "a.ppm"}),
      with_model("classify", {"--classifier", folder / "text.safetensors", folder / "a.ppm"}),
      with_model("classify", {"--kernels", "none", folder / "a.ppm"}),
      with_model("classify", {folder / "none.jpg", folder.path()}),
      with_model("fit", {folder / "none", "--output", folder / "x.safetensors"}),
      with_model("anomaly", {"score", folder / "text.safetensors", folder / "a.ppm"}),
      with_model("search", {folder / "none", folder / "a.ppm"}),
      {"tokenize", "--tokenizer", folder / "none", "--text", "a"},
      {"bench", "--architecture", "none"}};
  for (const std::vector<std::string>& arguments : failing) {
    const RunResult result = run_vit(arguments);
    CAPTURE(arguments.front());
    CAPTURE(result.err);
    CHECK(result.exit_code != 0);
    for (const std::string& line : lines_of(result.err)) CHECK_FALSE(contains(line, ": ["));
  }
}
