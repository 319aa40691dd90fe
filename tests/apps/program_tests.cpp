// The program as scripts see it: exit codes, outputs, messages.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "program.h"
#include "tests/support/shared_data.h"
#include "vit/weights/files/json.h"

using namespace vit;
using namespace vit::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Command and model, with the arguments behind.
std::vector<std::string> with_model(const std::string& command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {command, "--model", golden_model("rope-axial"), "--threads", "1"});
  return arguments;
}

}  // namespace

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
      {"classify", "--model=", picture, picture},  // must not take a picture for the value
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

TEST_CASE("apps: --architecture alone is no model to compute with, and bench names the option it reads") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  CHECK(contains(run_vit({"classify", "--architecture", "vit_tiny_patch16_224", folder / "a.ppm"}).err,
                 "--architecture names the architecture of a weight file: give --model"));
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

TEST_CASE("apps: a mistyped option is named, not the one that is missing for it") {
  CHECK(contains(run_vit({"classify", "--bogus"}).err, "--bogus"));
  CHECK(contains(run_vit(with_model("embed", {"--outptu", "x.npz", "a.png"})).err, "--outptu"));
  CHECK(contains(run_vit(with_model("embed", {"a.png"})).err, "--output is required"));
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
  fails({"info", "--model", golden_model("rope-axial"), "--size", "3"}, "smaller than a patch");
  fails(with_model("classify", {"--labels", folder / "missing.txt", picture}), "missing.txt");
  fails(with_model("embed", {picture, "--output", folder / "missing/x.npz"}), "missing");
  fails(with_model("embed", {picture, "--output", "/proc/x.npz"}), "/proc/x.npz");
  fails(with_model("preprocess", {picture, "--output", folder / "missing/x.npz"}), "missing");
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
  CHECK(contains(labelled.err, "pipe.txt: is a pipe"));
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
  CHECK(contains(result.err, "x.npy[0]: the logits are not finite"));
  REQUIRE(lines_of(result.out).size() == 1);
  CHECK(contains(result.out, "x.npy[1]"));
  const RunResult embedded = run_vit(with_model("embed", {folder / "x.npy", "--output", folder / "y.npz"}));
  CHECK(embedded.exit_code == 1);
  CHECK(contains(embedded.err, "x.npy[0]: the features are not finite"));
  CHECK(read_npz(folder / "y.npz").at("files").strings() ==
        std::vector<std::string>{(folder / "x.npy") + "[1]"});
}

TEST_CASE("apps: a picture that does not fit beside the others in .npy is named, the others are written") {
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

TEST_CASE("apps: a stage that the rules do not have is refused once, not for each picture") {
  const TestFolder folder;
  write_picture(folder / "in/a.ppm", 30, 30, 1);
  write_picture(folder / "in/b.ppm", 30, 30, 2);
  write_text(
      folder / "model/preprocessor_config.json",
      R"({"image_processor_type": "DINOv3ViTImageProcessorFast", "size": {"height": 32, "width": 32}})");
  const auto preprocess = [&](const std::string& stage, const std::string& output) {
    return run_vit({"preprocess", "--model", folder / "model", "--stage", stage, folder / "in", "--output",
                    folder / output});
  };
  CHECK(preprocess("pixels", "x.npz").exit_code == 0);
  const RunResult result = preprocess("cropped", "y.npz");
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(contains(result.err, "preprocessor_config.json"));
  CHECK(contains(result.err, "--stage pixels"));
}

TEST_CASE("apps: where no file tells how pictures are prepared, prepared pixels run all the same") {
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

  const std::string cause = model + ": no file tells how pictures are prepared";
  const auto fails = [&](const std::vector<std::string>& arguments) {
    const RunResult result = run_vit(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, cause));
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
  CHECK(contains(text.out, "preprocessing (unknown)\n  no file tells how pictures are prepared"));
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

TEST_CASE("apps: bad pictures are named, the others are done") {
  const TestFolder folder;
  write_picture(folder / "in/b.ppm", 40, 30, 1);
  write_picture(folder / "in/deep/er/c.PPM", 30, 50, 2);
  write_picture(folder / "in/z.ppm", 24, 24, 3);
  write_text(folder / "in/empty.jpg", "");
  write_text(folder / "in/text.png", "this is no picture");
  write_text(folder / "in/notes.txt", "not an image extension: not looked at");
  const RunResult result =
      run_vit(with_model("classify", {"--format", "json", folder / "in", folder / "missing.jpg"}));
  CHECK(result.exit_code == 1);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(parse_json(lines[0], "line").at("file").as_string() == folder / "in/b.ppm");
  CHECK(parse_json(lines[1], "line").at("file").as_string() == folder / "in/deep/er/c.PPM");
  CHECK(parse_json(lines[2], "line").at("file").as_string() == folder / "in/z.ppm");
  CHECK(result.num_errors() == 3);
  for (const char* name : {"empty.jpg", "text.png", "missing.jpg"}) {
    CHECK(contains(result.err,
                   "vit: " + (folder / (std::strcmp(name, "missing.jpg") == 0 ? "" : "in/")) + name + ": "));
  }
  // the same with files of results: the good rows are written
  const RunResult embedded = run_vit(with_model("embed", {folder / "in", "--output", folder / "x.npz"}));
  CHECK(embedded.exit_code == 1);
  CHECK(embedded.num_errors() == 2);
  CHECK(read_npz(folder / "x.npz").at("files").strings().size() == 3);
}

TEST_CASE("apps: classify prints text, JSON that reads back exactly, and CSV") {
  const TestFolder folder;
  write_picture(folder / "a,b.ppm", 40, 30, 1);
  const std::string picture = folder / "a,b.ppm";
  const RunResult json = run_vit(with_model("classify", {"--format", "json", "--top", "2", picture}));
  CHECK(json.exit_code == 0);
  CHECK(json.err.empty());
  const Json line = parse_json(json.out, "classify");
  REQUIRE(line.at("top").size() == 2);
  const Json best = line.at("top")[0], second = line.at("top")[1];
  CHECK(best.at("probability").as_double() >= second.at("probability").as_double());
  CHECK(best.at("label").as_string() ==
        std::to_string(best.at("index").as_size()));  // the model has no names

  REQUIRE(run_vit(with_model("embed", {picture, "--features", "logits", "--output", folder / "x.npy"}))
              .exit_code == 0);
  const std::vector<float> logits = parse_npy(read_text(folder / "x.npy")).floats();
  CHECK(static_cast<float>(best.at("logit").as_double()) == logits[best.at("index").as_size()]);
  CHECK(static_cast<float>(second.at("logit").as_double()) == logits[second.at("index").as_size()]);

  const RunResult csv = run_vit(with_model("classify", {"--format", "csv", "--top", "99", picture}));
  const std::vector<std::string> rows = lines_of(csv.out);
  REQUIRE(rows.size() == 1 + 6);  // all classes of the model
  CHECK(rows[0] == "file,rank,index,label,probability");
  CHECK(rows[1].starts_with("\"" + picture + "\",1," + std::to_string(best.at("index").as_size()) + ","));

  write_text(folder / "names.txt", "ant\nbee\ncat\ndog\neel\nfox\n");
  const RunResult text =
      run_vit(with_model("classify", {"--labels", folder / "names.txt", "--top", "1", picture}));
  CHECK(text.exit_code == 0);
  CHECK(lines_of(text.out).size() == 2);
  CHECK(!contains(text.out, "\x1b"));  // no colours where nobody looks
  write_text(folder / "names.json",
             R"({"id2label": {"0": "ant", "1": "bee", "2": "cat", "3": "dog", "4": "eel", "5": "fox"}})");
  CHECK(run_vit(with_model("classify", {"--labels", folder / "names.json", "--top", "1", picture})).out ==
        text.out);
  write_text(folder / "few.txt", "ant\nbee\n");
  CHECK(run_vit(with_model("classify", {"--labels", folder / "few.txt", picture})).exit_code == 1);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "ant\n";
  write_text(folder / "many.txt", many + "\n\n");
  CHECK(contains(run_vit(with_model("classify", {"--labels", folder / "many.txt", picture})).err,
                 "100 names for 6 classes"));
  write_text(folder / "large.txt", "");
  std::filesystem::resize_file(folder / "large.txt", std::uintmax_t{1} << 30);  // sparse
  CHECK(contains(run_vit(with_model("classify", {"--labels", folder / "large.txt", picture})).err,
                 "large.txt: 1073741824 bytes are no names"));
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
  CHECK(of_folder.err == "vit: -: standard input is a folder, expected paths, one a line\n");
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

TEST_CASE("apps: evaluate tells classes apart that differ in case, and refuses a name of two") {
  const TestFolder folder;
  write_text(folder / "names.txt",
             "\xEF\xBB\xBF"
             "A\na\nb, ox\ncrane\ncrane\nc, ox\n");
  for (const char* name : {"A", "a", "d", "crane", "ox"}) {
    write_picture(folder / ("in/" + std::string(name) + "/x.ppm"), 30, 30, 1);
  }
  const RunResult result =
      run_vit(with_model("evaluate", {"--format", "json", "--labels", folder / "names.txt", folder / "in"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  const Json confusion = parse_json(result.out, "evaluate").at("confusion");
  REQUIRE(confusion.size() == 2);
  CHECK(confusion[0].at("label").as_string() == "A");
  CHECK(confusion[1].at("label").as_string() == "a");
  CHECK(result.num_errors() == 3);  // no class is called d, two are crane, and two ox
  CHECK(contains(result.err, "d: the model has no class of this name"));
  CHECK(contains(result.err, "crane: the name of 2 classes, 3 and 4 among them"));
  CHECK(contains(result.err, "ox: the name of 2 classes, 2 and 5 among them"));
}

TEST_CASE("apps: evaluate knows classes by label and index") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 30, 1);
  write_picture(folder / "b.ppm", 30, 40, 9);
  write_text(folder / "names.txt",
             "n01\tred fox, Vulpes\nn02\tbee\nn03\tcat\nn04\tdog\nn05\teel\nn06\tant\n");
  const RunResult classified =
      run_vit(with_model("classify", {"--format", "json", folder / "a.ppm", folder / "b.ppm"}));
  const std::vector<std::string> lines = lines_of(classified.out);
  REQUIRE(lines.size() == 2);
  const std::size_t first = parse_json(lines[0], "line").at("top")[0].at("index").as_size();
  const std::size_t second = parse_json(lines[1], "line").at("top")[0].at("index").as_size();
  // a.ppm in the folder of its predicted class, b.ppm in one of another class
  const std::size_t other = (second + 1) % 6;
  const std::vector<std::string> labels{"Red_Fox", "bee", "cat", "dog", "eel", "ant"};
  const auto evaluate = [&](const std::string& root, const std::string& right, const std::string& wrong) {
    write_picture(folder / (root + "/" + right + "/a.ppm"), 40, 30, 1);
    write_picture(folder / (root + "/" + wrong + "/b.ppm"), 30, 40, 9);
    const RunResult result = run_vit(
        with_model("evaluate", {"--format", "json", "--labels", folder / "names.txt", folder / root}));
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    const Json json = parse_json(result.out, "evaluate");
    CHECK(json.at("images").as_size() == 2);
    CHECK(json.at("top1").as_double() == 0.5);
    CHECK(json.at("top5").as_double() >= 0.5);
    CHECK(json.at("failed").as_size() == 0);
    CHECK(json.at("confusion").size() == (first == other ? 1u : 2u));
  };
  evaluate("by_index", std::to_string(first), std::to_string(other));
  evaluate("by_label", labels[first], labels[other]);
  evaluate("by_id", "n0" + std::to_string(first + 1), "N0" + std::to_string(other + 1));

  write_picture(folder / "by_index/no such class/c.ppm", 30, 30, 1);
  const RunResult partly = run_vit(with_model("evaluate", {"--format", "json", folder / "by_index"}));
  CHECK(partly.exit_code == 1);
  CHECK(contains(partly.err, "no such class"));
  CHECK(parse_json(partly.out, "evaluate").at("images").as_size() == 2);
}

TEST_CASE("apps: preprocess writes what the model sees") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 40, 1);
  write_picture(folder / "b.ppm", 33, 57, 2);
  const std::string a = folder / "a.ppm", b = folder / "b.ppm";
  REQUIRE(run_vit(with_model("preprocess", {a, b, "--output", folder / "x.npz"})).exit_code == 0);
  const auto pixels = read_npz(folder / "x.npz");
  CHECK(pixels.at("pixels").shape == std::vector<std::size_t>{2, 3, 24, 24});
  CHECK(pixels.at("files").strings() == std::vector<std::string>{a, b});

  REQUIRE(run_vit(with_model("preprocess", {a, b, "--stage", "cropped", "--output", folder / "y.npz"}))
              .exit_code == 0);
  const NpyArray cropped = read_npz(folder / "y.npz").at("cropped");
  CHECK(cropped.descr == "|u1");
  REQUIRE(cropped.shape == std::vector<std::size_t>{2, 24, 24, 3});
  // pixels are (value / 255 - mean) / std of the cropped bytes
  const std::vector<float> floats = pixels.at("pixels").floats();
  const float red = static_cast<float>(static_cast<unsigned char>(cropped.bytes[0])) / 255.0f;
  CHECK(floats[0] == (red - 0.485f) / 0.229f);

  REQUIRE(
      run_vit(with_model("preprocess", {a, b, "--size", "native", "--output", folder / "n.npz"})).exit_code ==
      0);
  const auto native = read_npz(folder / "n.npz");
  CHECK(native.at("pixels.0").shape ==
        std::vector<std::size_t>{3, 56, 40});  // edges floored to the patch size of 8
  CHECK(native.at("pixels.1").shape == std::vector<std::size_t>{3, 32, 56});

  REQUIRE(run_vit(with_model("preprocess", {a, "--output", folder / "a.png"})).exit_code == 0);
  REQUIRE(run_vit(with_model("preprocess", {folder / "a.png", "--size", "native", "--stage", "cropped",
                                            "--output", folder / "again.npy"}))
              .exit_code == 0);
  CHECK(parse_npy(read_text(folder / "again.npy")).bytes == cropped.bytes.substr(0, 24 * 24 * 3));

  // the configuration files alone suffice
  std::filesystem::create_directory(folder / "config_only");
  std::filesystem::copy_file(golden_model("rope-axial") + "/config.json", folder / "config_only/config.json");
  REQUIRE(run_vit({"preprocess", "--model", folder / "config_only", a, b, "--output", folder / "z.npz"})
              .exit_code == 0);
  CHECK(read_text(folder / "z.npz") == read_text(folder / "x.npz"));
}

TEST_CASE("apps: configuration files alone prepare pictures as the whole folder does, whatever is asked") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 43, 1);
  const auto agrees = [&](const std::string& model, const std::vector<std::string>& options) {
    const std::string bare = folder / "config of " + model;
    std::filesystem::create_directories(bare);
    for (const auto& entry : std::filesystem::directory_iterator(golden_model(model))) {
      const std::filesystem::path target = std::filesystem::path(bare) / entry.path().filename();
      if (entry.path().extension() == ".json" && !std::filesystem::exists(target))
        std::filesystem::copy_file(entry.path(), target);
    }
    std::vector<RunResult> results;
    for (const std::string& path : {golden_model(model), bare}) {
      std::vector<std::string> arguments{"preprocess", "--model", path, folder / "a.ppm"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      arguments.insert(arguments.end(), {"--output", folder / (results.empty() ? "x.npy" : "y.npy")});
      results.push_back(run_vit(arguments));
      CAPTURE(model);
      CAPTURE(results.back().err);
      CHECK(results.back().exit_code == 0);
    }
    CHECK(read_text(folder / "x.npy") == read_text(folder / "y.npy"));
  };
  agrees("open-clip", {"--size", "native"});
  agrees("open-clip", {"--set", "num_heads=3"});
  agrees("hf-vit", {"--size", "native"});
  agrees("timm-vit", {"--size", "native"});
  agrees("timm-vit", {"--set", "num_heads=2"});
  agrees("rope-axial", {"--architecture", "vit_base_patch16_rope_224"});
  agrees("rope-axial", {"--architecture", "vit_base_patch16_rope_224", "--size", "native"});
  agrees("rope-axial", {"--set", "img_size=24", "--size", "native"});
  const std::string bare = folder / "config of rope-axial";
  CHECK(run_vit({"preprocess", "--model", bare, folder / "a.ppm", "--size", "native", "--set",
                 "patch_size=10", "--output", folder / "x.npy"})
            .exit_code == 0);
  CHECK(parse_npy(read_text(folder / "x.npy")).shape == std::vector<std::size_t>{1, 3, 60, 40});
  CHECK(run_vit(
            {"preprocess", "--model", bare, folder / "a.ppm", "--set", "foo=3", "--output", folder / "x.npy"})
            .exit_code == 2);
}

TEST_CASE("apps: info tells about machine and model") {
  const RunResult machine = run_vit({"info", "--json"});
  CHECK(machine.exit_code == 0);
  const Json json = parse_json(machine.out, "info");
  CHECK(json.at("kernels").at("available").size() >= 1);
  CHECK(!json.find("model"));
  CHECK(contains(run_vit({"info", "--kernels"}).out, "reference"));
  CHECK(contains(run_vit({"info", "--kernels"}).out, "--dtype bfloat16: "));
  const std::string listed = run_vit({"info", "--kernels", "--model", golden_model("rope-axial")}).out;
  CHECK(contains(listed, "* chosen: "));
  CHECK(contains(listed, "architecture  "));
  const std::string measured = run_vit({"info", "--kernels", "--peak", "--threads", "1"}).out;
  CHECK(contains(measured, "* chosen: "));
  CHECK(contains(measured, "GFLOP/s"));
  CHECK(json.at("kernels").at("available")[0].at("bfloat16").as_string().size() > 0);
  CHECK(contains(run_vit({"info", "--json"}, {.environment = {{"VIT_KERNELS", "reference"}}}).out,
                 "VIT_KERNELS"));

  const RunResult model = run_vit({"info", "--model", golden_model("rope-axial"), "--tensors", "--json"});
  CHECK(model.exit_code == 0);
  const Json facts = parse_json(model.out, "info").at("model");
  CHECK(facts.at("family").as_string().size() > 0);
  CHECK(facts.at("config").at("embed_dim").as_size() == 36);
  CHECK(facts.at("config").at("position").at("rope").as_string() == "axial");
  CHECK(facts.at("preprocessing_steps").size() >= 3);
  std::size_t parameters = 0;
  for (std::size_t i = 0; i < facts.at("tensors").size(); ++i) {
    const Json tensor = facts.at("tensors")[i];
    if (tensor.at("use").as_string().starts_with("ignored")) continue;
    std::size_t elements = 1;
    for (std::size_t d = 0; d < tensor.at("shape").size(); ++d) elements *= tensor.at("shape")[d].as_size();
    parameters += elements;
  }
  CHECK(facts.at("parameters").as_size() == parameters);
  // 9 patches and a class token, 36 wide, 54 hidden, 2 blocks, 6 classes
  const double expected =
      2.0 * 9 * 36 * 192 + 2 * (2.0 * 10 * 36 * 144 + 4.0 * 10 * 10 * 36 + 4.0 * 10 * 36 * 54) + 2.0 * 36 * 6;
  CHECK(facts.at("flops_per_image").at("total").as_double() == expected);
  const RunResult text = run_vit({"info", "--model", golden_model("rope-axial")});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "crop the centre 24 x 24"));
}

TEST_CASE("apps: bench measures every combination") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--sizes", "24,16x40",
                                    "--batch", "1,2", "--threads", "1", "--seconds", "0.01", "--json"});
  CHECK(result.exit_code == 0);
  const Json json = parse_json(result.out, "bench");
  CHECK(json.at("machine").at("cpu").as_string().size() > 0);
  REQUIRE(json.at("results").size() == 4);
  const Json last = json.at("results")[3];
  CHECK(last.at("height").as_size() == 16);
  CHECK(last.at("width").as_size() == 40);
  CHECK(last.at("batch").as_size() == 2);
  CHECK(last.at("dtype").as_string() == "float32");
  for (std::size_t i = 0; i < 4; ++i) {
    const Json one = json.at("results")[i];
    CHECK(one.at("ms_min").as_double() > 0);
    CHECK(one.at("ms_per_image").as_double() >= one.at("ms_min").as_double());
    CHECK(one.at("gflops").as_double() > 0);
    CHECK(one.at("percent_of_peak").as_double() > 0);
  }
}

TEST_CASE("apps: bench names a combination that fails and measures the others") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--sizes", "24,3,16",
                                    "--threads", "1", "--seconds", "0", "--json"});
  CHECK(result.exit_code == 1);
  CHECK(parse_json(result.out, "bench").at("results").size() == 2);
  CHECK(contains(result.err, "vit: 3x3, batch 1, threads 1: "));
}

TEST_CASE("apps: every arithmetic of --dtype gives the same class, and is named by bench") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  const auto best = [&](const char* dtype) {
    const RunResult result =
        run_vit(with_model("classify", {"--dtype", dtype, "--format", "json", folder / "a.ppm"}));
    CHECK(result.exit_code == 0);
    return parse_json(result.out, "classify").at("top")[0];
  };
  const Json exact = best("float32");
  for (const char* dtype : {"bfloat16", "int8"}) {
    CAPTURE(dtype);
    const Json found = best(dtype);
    CHECK(found.at("index").as_size() == exact.at("index").as_size());
    CHECK(found.at("logit").as_double() != exact.at("logit").as_double());
    CHECK(found.at("logit").as_double() == doctest::Approx(exact.at("logit").as_double()).epsilon(0.05));
    const RunResult bench = run_vit({"bench", "--model", golden_model("rope-axial"), "--dtype", dtype,
                                     "--seconds", "0.01", "--threads", "1", "--json"});
    CHECK(bench.exit_code == 0);
    CHECK(parse_json(bench.out, "bench").at("results")[0].at("dtype").as_string() == dtype);
  }
}

TEST_CASE("apps: bench without --sizes takes the one size of --size") {
  const RunResult result = run_vit({"bench", "--model", golden_model("rope-axial"), "--size", "24x40",
                                    "--threads", "1", "--seconds", "0.01", "--json"});
  CHECK(result.exit_code == 0);
  const Json one = parse_json(result.out, "bench").at("results")[0];
  CHECK(one.at("height").as_size() == 24);
  CHECK(one.at("width").as_size() == 40);
}

TEST_CASE("apps: the program knows the model that ships with it") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 40, 1);
  const RunResult result = run_vit({"classify", "--top", "1", folder / "a.ppm"});
  CHECK(result.exit_code == 0);
  CHECK(lines_of(result.out).size() == 2);
  const RunResult missing =
      run_vit({"classify", folder / "a.ppm"}, {.environment = {{"VIT_DATA_DIR", folder.path()}}});
  CHECK(missing.exit_code == 1);
  CHECK(missing.num_errors() == 1);
  CHECK(contains(missing.err, folder.path()));
}

TEST_CASE("apps: progress is shown only where it is asked for") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 40, 1);
  CHECK(run_vit(with_model("classify", {folder / "a.ppm"})).err.empty());
  CHECK(contains(run_vit(with_model("classify", {folder / "a.ppm", "--progress", "always"})).err, "1/1"));
  CHECK(run_vit(with_model("classify", {folder / "a.ppm", "--progress", "always", "--quiet"})).err.empty());
}

TEST_CASE("apps: after Ctrl-C what is computed stands, and the exit code is 130") {
  const TestFolder folder;
  constexpr int kCopies = 4000;  // more than can be done before the signal comes
  write_picture(folder / "a.ppm", 300, 300, 1);
  std::string list;
  for (int i = 0; i < kCopies; ++i) list += (folder / "a.ppm") + "\n";
  const RunResult classified = run_vit(with_model("classify", {"--format", "json", "-"}),
                                       {.standard_input = list, .interrupt_after_lines = 5});
  CHECK(classified.exit_code == 130);
  const std::vector<std::string> lines = lines_of(classified.out);
  CHECK(lines.size() >= 5);
  CHECK(lines.size() < kCopies);
  for (const std::string& line : lines) CHECK(parse_json(line, "line").at("top").size() == 5);
}

TEST_CASE("apps: a run that was started with Ctrl-C ignored goes on to its end") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  std::string list;
  for (int i = 0; i < 200; ++i) list += (folder / "a.ppm") + "\n";
  const RunResult classified =
      run_vit(with_model("classify", {"--format", "json", "-"}),
              {.standard_input = list, .interrupt_after_lines = 1, .ignores_interrupts = true});
  CHECK(classified.exit_code == 0);
  CHECK(lines_of(classified.out).size() == 200);
}

TEST_CASE(
    "apps: JPEG 2000, whose codecs come when they are needed, gives what the same pixels give elsewhere") {
  const TestFolder folder;
  const std::string lossless = folder / "a.jp2", plain = folder / "a.ppm";
  write_picture(plain, 64, 48, 3);
  CHECK(cv::imwrite(lossless, cv::imread(plain), {cv::IMWRITE_JPEG2000_COMPRESSION_X1000, 1000}));
  const auto classified = [&](const std::string& file) {
    const RunResult result = run_vit(with_model("classify", {"--format", "csv", "--top", "2", file}));
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    std::string out = result.out;
    for (std::size_t at = 0; (at = out.find(file)) != std::string::npos;) out.erase(at, file.size());
    return out;
  };
  CHECK(classified(lossless) == classified(plain));
}
