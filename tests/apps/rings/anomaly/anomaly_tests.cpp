// vit anomaly fit and score, and vit evaluate --anomaly.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/anomaly.h"
#include "vit/io/json.h"

TEST_SUITE_BEGIN("anomaly");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

constexpr std::size_t kEdge = 40;

/// A striped part of 40 x 40 pixels, lighter by `light`, with a bright square of 8 x 8 pixels or without; as
/// PPM.
void write_part(const std::string& path, unsigned light, bool is_defective = false) {
  std::string bytes = "P6 40 40 255\n";
  for (std::size_t y = 0; y < kEdge; ++y) {
    for (std::size_t x = 0; x < kEdge; ++x) {
      const bool is_hit = is_defective && y >= 8 && y < 16 && x >= 24 && x < 32;
      const unsigned stripe = (x / 5) % 2 == 0 ? 60 : 120;
      for (unsigned c = 0; c < 3; ++c)
        bytes += static_cast<char>(is_hit ? 250 - 60 * c : stripe + light + 10 * c);
    }
  }
  write_text(path, bytes);
}

/// The mask of the square, as a plain PGM under the name that MVTec gives masks: the content decides.
void write_mask(const std::string& path) {
  std::string bytes = "P5 40 40 255\n" + std::string(kEdge * kEdge, '\0');
  for (std::size_t y = 8; y < 16; ++y)
    std::fill_n(bytes.end() - static_cast<std::ptrdiff_t>(kEdge * (kEdge - y) - 24), 8, '\xff');
  write_text(path, bytes);
}

/// good/ of five parts, test/ of good and damaged ones with masks.
void write_set(const TestFolder& folder) {
  for (unsigned i = 0; i < 5; ++i) write_part(folder / ("train/" + std::to_string(i) + ".ppm"), 3 * i);
  for (unsigned i = 0; i < 3; ++i) {
    const std::string name = std::to_string(i);
    write_part(folder / ("set/test/good/" + name + ".ppm"), 3 * i + 1);
    write_part(folder / ("set/test/square/" + name + ".ppm"), 3 * i + 1, true);
    write_mask(folder / ("set/ground_truth/square/" + name + "_mask.png"));
  }
}

RunResult fit(const TestFolder& folder, std::vector<std::string> arguments = {}) {
  std::vector<std::string> all{"anomaly", "fit",    "--format", "json",
                               "--size",  "native", "-o",       folder / "bank.safetensors"};
  if (arguments.empty() || arguments.front().starts_with("-"))
    arguments.insert(arguments.begin(), folder / "train");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_vit(all);
}

Json line(const std::string& text, std::size_t index) {
  return parse_json(lines_of(text).at(index), "stdout");
}

}  // namespace

TEST_CASE("apps: anomaly fits good images, scores others, and needs no model again") {
  const TestFolder folder;
  write_set(folder);
  const RunResult fitted = fit(folder);
  CAPTURE(fitted.err);
  REQUIRE(fitted.exit_code == 0);
  const Json bank = parse_json(fitted.out, "fit");
  CHECK(bank.at("images").as_size() == 5);
  CHECK(bank.at("held_out").as_size() == 5);
  CHECK(bank.at("patches").as_size() == bank.at("patches_seen").as_size());

  SUBCASE("scores, maps and a page") {
    const RunResult result =
        run_vit({"anomaly", "score", folder / "bank.safetensors", folder / "set/test", "--format", "json",
                 "--maps", folder / "maps", "--html", folder / "page.html"});
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    REQUIRE(lines_of(result.out).size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      const Json row = line(result.out, i);
      CHECK(row.at("anomalous").as_bool() == (i >= 3));
      CHECK(row.at("threshold").as_double() == bank.at("threshold").as_double());
    }
    const NpyArray map = parse_npy(read_text(folder / "maps/square/0.npy"));
    CHECK(map.shape == std::vector<std::size_t>{kEdge, kEdge});
    const std::vector<float> values = map.floats();
    const auto largest = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
    CHECK(largest / kEdge >= 4);
    CHECK(largest / kEdge < 20);
    CHECK(largest % kEdge >= 20);
    CHECK(std::filesystem::exists(folder / "maps/good/0.png"));
    CHECK(std::filesystem::exists(folder / "maps/square/0-overlay.png"));
    CHECK(contains(read_text(folder / "page.html"), "anomalous"));
  }
  SUBCASE("maps of parts in one folder are those of the whole run") {
    const auto score = [&](const char* maps, std::vector<std::string> more) {
      more.insert(more.begin(), {"anomaly", "score", folder / "bank.safetensors", folder / "set/test",
                                 "--maps", folder / maps, "--map-formats", "npy"});
      REQUIRE(run_vit(more).exit_code == 0);
    };
    score("whole", {});
    for (const char* const shard : {"0/4", "1/4", "2/4", "3/4"}) score("parts", {"--shard", shard});
    for (const char* const name : {"good/0", "good/1", "good/2", "square/0", "square/1", "square/2"}) {
      CAPTURE(name);
      const std::string file = "/" + std::string(name) + ".npy", whole = read_text(folder / ("whole" + file));
      CHECK_FALSE(whole.empty());
      CHECK(read_text(folder / ("parts" + file)) == whole);
    }
  }
  SUBCASE("maps that would replace each other are refused") {
    write_part(folder / "new/a.ppm", 3);
    write_part(folder / "new/a-overlay.ppm", 3);
    const RunResult result =
        run_vit({"anomaly", "score", folder / "bank.safetensors", folder / "new", "--maps", folder / "maps"});
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "a-overlay.png would be a file of two inputs, a and a-overlay"));
    CHECK_FALSE(std::filesystem::exists(folder / "maps"));
  }
  SUBCASE("figures of a test set") {
    const RunResult result = run_vit(
        {"evaluate", "--anomaly", folder / "bank.safetensors", folder / "set/test", "--format", "json"});
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    const Json figures = parse_json(result.out, "evaluate");
    CHECK(figures.at("image_auroc").as_double() == 1.0);
    CHECK(figures.at("pixel_auroc").as_double() > 0.9);
    CHECK(figures.at("pro").as_double() > 0.7);
    CHECK(figures.at("kinds").size() == 2);
  }
  SUBCASE("fit again adds, and leaves out what the bank has") {
    write_part(folder / "train/new.ppm", 20);
    const RunResult again = fit(folder);
    CHECK(again.exit_code == 0);
    CHECK(contains(again.err, "left out: 5"));
    CHECK(parse_json(again.out, "fit").at("images").as_size() == 6);
  }
  SUBCASE("a fit that is killed leaves the bank that was written, and nothing else") {
    for (unsigned i = 0; i < 600; ++i) write_part(folder / ("more/" + std::to_string(i) + ".ppm"), i % 60);
    const std::string before = read_text(folder / "bank.safetensors");
    const RunResult killed = run_vit(
        {"anomaly", "fit", folder / "more", "-o", folder / "bank.safetensors", "--progress", "always"},
        {.signal_at_progress = true});
    CHECK(killed.exit_code == 128 + 9);
    CHECK(read_text(folder / "bank.safetensors") == before);
    std::size_t num_files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      num_files += entry.is_regular_file();
    CHECK(num_files == 1);
  }
  SUBCASE("a broken image is reported, the others are scored") {
    write_text(folder / "set/test/square/broken.ppm", "P6 40 40 255\nxx");
    const RunResult result = run_vit({"anomaly", "score", folder / "bank.safetensors", folder / "set/test"});
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "broken.ppm"));
    CHECK(lines_of(result.out).size() == 6);
  }
  SUBCASE("a mask of another size, and none") {
    write_text(folder / "set/ground_truth/square/1_mask.png", "P5 1 1 255\nx");
    std::filesystem::remove(folder / "set/ground_truth/square/2_mask.png");
    const RunResult result = run_vit({"evaluate", "--anomaly", folder / "bank.safetensors", folder / "set"});
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "1 x 1"));
    CHECK(contains(result.err, "2_mask.png"));
  }
  SUBCASE("another model") {
    const RunResult result = run_vit({"anomaly", "score", "--model", golden_model("timm-vit"),
                                      folder / "bank.safetensors", folder / "set/test"});
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
  }
  SUBCASE("a custom threshold") {
    const RunResult result = run_vit({"anomaly", "score", folder / "bank.safetensors", folder / "set/test",
                                      "--threshold", "0", "--format", "json"});
    CHECK(line(result.out, 0).at("anomalous").as_bool());
  }
}

TEST_CASE("apps: anomaly options are stored in the bank") {
  const TestFolder folder;
  write_set(folder);
  REQUIRE(fit(folder, {"--coreset", "0.25", "--layer", "-1,0", "--neighborhood", "3", "--score", "reweighted",
                       "--foreground", "--augment", "rotations", "--quantile", "0.8"})
              .exit_code == 0);
  const AnomalyModel bank = AnomalyModel::load(folder / "bank.safetensors");
  CHECK(bank.options().layers.size() == 2);
  CHECK(bank.options().layers.back() == 0);
  CHECK(bank.options().neighborhood == 3);
  CHECK(bank.options().score == AnomalyScore::reweighted);
  CHECK(bank.options().foreground);
  CHECK(bank.options().quantile == 0.8);
  CHECK(bank.num_patches_seen() % 20 == 0);  // five images in four rotations
  CHECK(bank.num_patches() <= bank.num_patches_seen() / 4);
  CHECK(bank.input_size().kind == InputSize::Kind::native);
}

TEST_CASE("apps: a bank keeps its own threshold and its rotations when images are added") {
  const TestFolder folder;
  write_set(folder);
  const std::string bank = folder / "bank.safetensors";
  const auto add = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"anomaly", "fit", folder / "set/test/good", "-o", bank});
    return run_vit(more);
  };
  REQUIRE(fit(folder, {"--threshold", "0.25"}).exit_code == 0);
  REQUIRE(add({}).exit_code == 0);
  CHECK(AnomalyModel::load(bank).threshold() == 0.25f);
  const RunResult other = add({"--augment", "rotations"});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "was made without --augment"));
  std::filesystem::remove(bank);
  REQUIRE(fit(folder, {"--augment", "rotations"}).exit_code == 0);
  const std::size_t before = AnomalyModel::load(bank).num_patches_seen();
  REQUIRE(add({}).exit_code == 0);
  CHECK(AnomalyModel::load(bank).num_patches_seen() == before / 5 * 8);  // three more images, rotated too
}

TEST_CASE("apps: anomaly fit says which pixels it does not inspect") {
  const TestFolder folder;
  for (unsigned i = 0; i < 3; ++i) write_picture(folder / ("good/" + std::to_string(i) + ".ppm"), 39, 47, i);
  const RunResult native = run_vit({"anomaly", "fit", folder / "good", "-o", folder / "a.safetensors"});
  CHECK(contains(native.err, "beyond the last whole patch"));
  CHECK(!contains(native.err, "inspects all"));
  const RunResult cropped =
      run_vit({"anomaly", "fit", folder / "good", "-o", folder / "b.safetensors", "--size", "32"});
  CHECK(!contains(cropped.err, "inspects all"));
}

TEST_CASE("apps: anomaly says what is missing or makes no sense") {
  const TestFolder folder;
  write_set(folder);
  SUBCASE("one image") {
    const RunResult result = fit(folder, {folder / "train/0.ppm"});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.err, "--threshold"));
    CHECK_FALSE(parse_json(result.out, "fit").find("threshold"));
    const RunResult scored = run_vit(
        {"anomaly", "score", folder / "bank.safetensors", folder / "train/1.ppm", "--format", "json"});
    CHECK(contains(scored.out, "\"anomalous\": null"));
  }
  SUBCASE("no image") {
    std::filesystem::create_directory(folder / "empty");
    const RunResult result = fit(folder, {folder / "empty"});
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "empty: no images"));
  }
  SUBCASE("wrong usage") {
    CHECK(run_vit({"anomaly", "fit", folder / "train"}).exit_code == 2);
    CHECK(run_vit({"anomaly", "learn", folder / "train"}).exit_code == 2);
    CHECK(run_vit({"anomaly", "score", folder / "bank.safetensors"}).exit_code == 2);
    CHECK(fit(folder, {"--maps", folder / "maps"}).exit_code == 2);
    CHECK(fit(folder, {"--neighborhood", "2"}).exit_code == 2);
    CHECK(fit(folder, {"--layer", "99"}).exit_code == 2);
    CHECK(run_vit({"anomaly", "score", "--coreset", "0.5", folder / "bank.safetensors", folder / "train"})
              .exit_code == 2);
    CHECK(run_vit({"evaluate", "--pro-limit", "0.2", folder / "train"}).exit_code == 2);
  }
  SUBCASE("no bank") {
    const RunResult result = run_vit({"anomaly", "score", folder / "train/0.ppm", folder / "train"});
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
  }
}
