// vit show: its numbers against PyTorch, scikit-learn and plain loops, its pictures, and what it refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/session.h"

TEST_SUITE_BEGIN("show");

using namespace vit;
using namespace vit::test;

namespace {

/// Runs show with a golden model and returns the result.
RunResult show(const std::string& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"show", "--model", golden_model(model)});
  return run_vit(arguments);
}

/// The golden pixels of a model, two images, as a .npy file.
void write_pixels(const std::string& path, const std::string& model) {
  write_npy(path,
            FixtureTensors(golden_model(model) + "/expected.safetensors").floats("native.pixels").view());
}

FixtureTensors golden_attention(const std::string& model) {
  return FixtureTensors(data_path("golden/attention/" + model + ".safetensors"));
}

void check_near(const std::vector<float>& found, const std::vector<double>& expected, double allowed) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) <= allowed);
}

std::vector<double> part(const std::vector<double>& all, std::size_t first, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("apps: show gives the components of scikit-learn, one basis for all inputs") {
  for (const std::string model : {"timm-vit", "hf-dinov3", "hf-siglip"}) {
    CAPTURE(model);
    const TestFolder folder;
    write_pixels(folder / "x.npy", model);
    const RunResult result =
        show(model, {folder / "x.npy", "--what", "pca", "--foreground", "--data", folder / "x.npz"});
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.out.empty());
    const auto arrays = read_npz(folder / "x.npz");
    const FixtureTensors expected = golden_attention(model);
    check_near(arrays.at("mean").floats(), expected.doubles("pca.mean"), 1e-5);
    check_near(arrays.at("components").floats(), expected.doubles("pca.components"), 1e-4);
    const std::vector<double> values = expected.doubles("pca.values");
    for (std::size_t i = 0; i < 2; ++i) {
      const NpyArray& found = arrays.at("values." + std::to_string(i));
      CHECK(found.shape == std::vector<std::size_t>{3, 3, 3});
      check_near(found.floats(), part(values, 27 * i, 27), 1e-4);
      // the split is at zero of component 1, the same side in both images
      const std::string flags = arrays.at("foreground." + std::to_string(i)).bytes;
      REQUIRE(flags.size() == 9);
      const bool side = (flags[0] != 0) == (found.floats()[0] > 0);
      for (std::size_t k = 0; k < 9; ++k) CHECK(((flags[k] != 0) == (found.floats()[3 * k] > 0)) == side);
    }
    CHECK(arrays.at("files").strings() ==
          std::vector<std::string>{(folder / "x.npy") + "[0]", (folder / "x.npy") + "[1]"});
  }
}

TEST_CASE("apps: show gives the attention of PyTorch for only the patches") {
  for (const std::string model : {"rope-mixed", "timm-eva02", "hf-dinov3", "hf-dinov2-registers"}) {
    CAPTURE(model);
    const TestFolder folder;
    write_pixels(folder / "x.npy", model);
    const FixtureTensors expected = golden_attention(model);
    const std::vector<std::size_t> shape = expected.shape("block.0");  // (B, H, T, T)
    const std::size_t heads = shape[1], tokens = shape[3], prefix = tokens - 9;
    // the class token of the first block, and the patch in the middle row, last column of the last one
    for (const bool is_patch : {false, true}) {
      std::vector<std::string> arguments{folder / "x.npy", "--what",        "attention", "--head", "all",
                                         "--data",         folder / "x.npz"};
      const std::vector<std::string> more =
          is_patch ? std::vector<std::string>{"--query", "23,8"} : std::vector<std::string>{"--layer", "0"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      REQUIRE(show(model, arguments).exit_code == 0);
      const auto arrays = read_npz(folder / "x.npz");
      const std::vector<double> all = expected.doubles(is_patch ? "block.1" : "block.0");
      const std::size_t query = is_patch ? prefix + 5 : 0;
      for (std::size_t image = 0; image < 2; ++image) {
        const NpyArray& found = arrays.at("attention." + std::to_string(image));
        CHECK(found.shape == std::vector<std::size_t>{heads, 3, 3});
        for (std::size_t head = 0; head < heads; ++head) {
          const std::vector<float> numbers = found.floats();
          check_near({numbers.begin() + static_cast<std::ptrdiff_t>(9 * head),
                      numbers.begin() + static_cast<std::ptrdiff_t>(9 * head + 9)},
                     part(all, ((image * heads + head) * tokens + query) * tokens + prefix, 9), 1e-5);
        }
      }
    }
    REQUIRE(show(model, {folder / "x.npy", "--what", "attention", "--rollout", "--data", folder / "x.npz"})
                .exit_code == 0);
    const std::vector<double> rollout = expected.doubles("rollout.0");  // (B, T)
    for (std::size_t image = 0; image < 2; ++image) {
      const NpyArray found = read_npz(folder / "x.npz").at("attention." + std::to_string(image));
      CHECK(found.shape == std::vector<std::size_t>{1, 3, 3});
      check_near(found.floats(), part(rollout, image * tokens + prefix, 9), 1e-5);
    }
  }
}

TEST_CASE("apps: show compares patches as plain loops do, in pixels of the source images") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 48, 60, 1);  // the checkpoint makes 24 x 24 of them: 30 x 24, cropped
  write_picture(folder / "b.ppm", 96, 80, 2);
  for (const std::string layer : {"-1", "0"}) {
    const std::string feature = layer == "0" ? "block.0" : "patches";
    REQUIRE(run_vit({"embed", "--model", golden_model("rope-axial"), folder / "a.ppm", folder / "b.ppm",
                     "--features", feature, "--output", folder / "e.npz"})
                .exit_code == 0);
    const NpyArray features = read_npz(folder / "e.npz").at(feature);
    const std::size_t width = features.shape.back(), num_tokens = layer == "0" ? 10 : 9;
    const std::vector<float> numbers = features.floats();
    const auto patch = [&](std::size_t image, std::size_t i) {
      return std::span(numbers).subspan((image * num_tokens + num_tokens - 9 + i) * width, width);
    };
    REQUIRE(show("rope-axial", {folder / "a.ppm", folder / "b.ppm", "--what", "similarity", "--query",
                                "20,20", "--layer", layer, "--data", folder / "s.npz"})
                .exit_code == 0);
    const auto similar = read_npz(folder / "s.npz");
    const RunResult matched = show("rope-axial", {folder / "a.ppm", folder / "b.ppm", "--what", "match",
                                                  "--layer", layer, "--data", folder / "m.npz"});
    REQUIRE(matched.exit_code == 0);
    const auto match = read_npz(folder / "m.npz");
    std::vector<float> pairs, scores;
    const Preprocessor preprocessor(Model::load(golden_model("rope-axial"))->preprocess_config());
    const SourceMap a = preprocessor.source_map({48, 60}), b = preprocessor.source_map({96, 80});
    const auto column = static_cast<std::size_t>((20.5 - a.left) / a.x_step / 8),
               row = static_cast<std::size_t>((20.5 - a.top) / a.y_step / 8);
    const auto nearest = [&](std::size_t image, std::size_t i) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < 9; ++k) {
        if (cosine_similarity(patch(image, i), patch(1 - image, k)) >
            cosine_similarity(patch(image, i), patch(1 - image, best)))
          best = k;
      }
      return best;
    };
    for (std::size_t i = 0; i < 9; ++i) {
      for (std::size_t image = 0; image < 2; ++image) {
        CHECK(similar.at("similarity." + std::to_string(image)).floats()[i] ==
              doctest::Approx(cosine_similarity(patch(0, 3 * row + column), patch(image, i))).epsilon(1e-6));
      }
      const std::size_t k = nearest(0, i);
      if (nearest(1, k) != i) continue;
      const auto at = [](std::size_t index) { return (static_cast<double>(index) + 0.5) * 8; };
      for (const double number : {a.left + at(i % 3) * a.x_step, a.top + at(i / 3) * a.y_step,
                                  b.left + at(k % 3) * b.x_step, b.top + at(k / 3) * b.y_step})
        pairs.push_back(static_cast<float>(number));
      scores.push_back(static_cast<float>(cosine_similarity(patch(0, i), patch(1, k))));
    }
    REQUIRE(!scores.empty());
    CHECK(match.at("pairs").shape == std::vector<std::size_t>{scores.size(), 4});
    CHECK(match.at("pairs").floats() == pairs);
    CHECK(match.at("scores").floats() == scores);
  }
}

TEST_CASE("apps: what show cannot do is one line") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 40, 1);
  write_text(folder / "broken.ppm", "P6 40 40 255\n");
  const auto refused = [&](const std::string& model, std::vector<std::string> arguments, int exit_code,
                           const std::string& expected) {
    arguments.insert(arguments.end(), {"--data", folder / "x.npz"});
    const RunResult result = show(model, arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(result.num_errors() == 1);
    CHECK(result.err.find(expected) != std::string::npos);
  };
  const std::string a = folder / "a.ppm";
  refused("hf-siglip", {a, "--what", "attention"}, 2, "no class token");
  refused("rope-axial", {a, "--what", "attention", "--head", "3"}, 2, "3 heads, 0 to 2");
  refused("rope-axial", {a, "--what", "attention", "--layer", "2"}, 2, "2 blocks, 0 to 1");
  refused("rope-axial", {a, "--what", "attention", "--query", "5"}, 2, "cls or a pixel X,Y");
  refused("rope-axial", {a, "--what", "attention", "--query", "40,5"}, 1, "outside of the image of 40 x 40");
  refused("rope-axial", {a, "--what", "similarity"}, 2, "--query X,Y");
  refused("rope-axial", {a, "--what", "match"}, 2, "two images");
  refused("rope-axial", {a, "--what", "nothing"}, 2, "pca, attention, similarity, match");
  refused("rope-axial", {a, folder / "broken.ppm", "--what", "pca"}, 1, "broken.ppm");
  CHECK(read_npz(folder / "x.npz").at("files").strings() == std::vector<std::string>{a});
  CHECK(show("rope-axial", {a, "--what", "pca"}).exit_code == 2);
}

TEST_CASE("apps: show draws a sheet, or a picture of each input in a folder") {
  const TestFolder folder;
  write_picture(folder / "in/a.ppm", 40, 60, 1);
  write_picture(folder / "in/b.ppm", 24, 24, 2);
  write_picture(folder / "in/deep/a.ppm", 33, 71, 3);
  if (show("rope-axial", {folder / "in/a.ppm", "--what", "pca", "--output", folder / "one.png"}).exit_code ==
      1) {
    MESSAGE("this build draws nothing: it has no OpenCV");
    return;
  }
  const std::string copy = "cp \"$1\" \"$0\" && shift && exec \"$0\" \"$@\"";
  const RunResult copied = run_vit({"show", "--model", golden_model("rope-axial"), "--what", "pca",
                                    "--output", folder / "two.png", folder / "in/a.ppm"},
                                   {.wrapper = {"/bin/sh", "-c", copy, folder / "vit"}});
  CHECK(copied.exit_code == 1);
  CHECK(copied.err.find("vit_drawing.so, with which the program draws") != std::string::npos);
  const Image one = decode_file(folder / "one.png");
  CHECK(one.width() > 640);  // the image and its map, enlarged
  for (const std::string style : {"overlay", "plain"}) {
    REQUIRE(show("rope-axial", {folder / "in", "--what", "attention", "--head", "all", "--style", style,
                                "--output", folder / "all.png"})
                .exit_code == 0);
    CHECK(decode_file(folder / "all.png").width() > one.width());
    REQUIRE(show("rope-axial", {folder / "in", "--what", "pca", "--foreground", "--style", style, "--output",
                                folder / style})
                .exit_code == 0);
    for (const char* name : {"a.png", "b.png", "a-1.png"})
      CHECK(!decode_file(folder / (style + "/" + name)).empty());
  }
  REQUIRE(show("rope-axial",
               {folder / "in/a.ppm", folder / "in/b.ppm", "--what", "match", "--output", folder / "m.png"})
              .exit_code == 0);
  CHECK(!decode_file(folder / "m.png").empty());
}
