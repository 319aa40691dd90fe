// vit preprocess as scripts see it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"

using namespace vit;
using namespace vit::test;

TEST_CASE("apps: a stage that the rules do not have is refused once, not for each image") {
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

  // the configuration files suffice
  std::filesystem::create_directory(folder / "config_only");
  std::filesystem::copy_file(golden_model("rope-axial") + "/config.json", folder / "config_only/config.json");
  REQUIRE(run_vit({"preprocess", "--model", folder / "config_only", a, b, "--output", folder / "z.npz"})
              .exit_code == 0);
  CHECK(read_text(folder / "z.npz") == read_text(folder / "x.npz"));
}

TEST_CASE("apps: configuration files suffice to preprocess images as with the whole folder") {
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
