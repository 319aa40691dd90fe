// The record of how a result was made, in everything that keeps one: what the command line does not say is
// taken from it, what contradicts it is an error that names both, and files without one still work.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/classifier_head.h"
#include "vit/config.h"
#include "vit/machine.h"
#include "vit/model.h"

using namespace vit;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

Arguments joined(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string golden_text(const std::string& name) {
  return data_path("golden/text/" + name).string();
}

/// Labeled images, not square, so that padding and sizes change what a model sees.
void write_images(const TestFolder& folder) {
  for (const char* label : {"a", "b"}) {
    for (unsigned i = 0; i < 4; ++i)
      write_picture(folder / ("train/" + std::string(label) + "/" + std::to_string(i) + ".ppm"), 24, 60 + i,
                    label[0] * 3u + i);
  }
}

/// Something that keeps a record.
struct Kept {
  std::string name;
  Arguments make;  // with --model and options to be recorded
  Arguments use;   // without them
};

/// All of them, in a folder of write_images().
std::vector<Kept> all_kept(const TestFolder& folder) {
  const std::string image = folder / "train/a/0.ppm";
  return {
      {"head",
       {"fit", folder / "train", "--method", "centroid", "--output", folder / "head.safetensors"},
       {"classify", "--classifier", folder / "head.safetensors", "--format", "json", image}},
      {"head, measured",
       {"fit", folder / "train", "--method", "knn", "--output", folder / "knn.safetensors"},
       {"evaluate", "--classifier", folder / "knn.safetensors", folder / "train"}},
      {"bank",
       {"anomaly", "fit", folder / "train/a", "--output", folder / "bank.safetensors"},
       {"anomaly", "score", folder / "bank.safetensors", "--format", "json", image}},
      {"bank, added to",
       {"anomaly", "fit", folder / "train/a", "--output", folder / "more.safetensors"},
       {"anomaly", "fit", folder / "train/b/0.ppm", "--output", folder / "more.safetensors"}},
      {"index",
       {"index", folder / "train", "--output", folder / "x.index"},
       {"search", folder / "x.index", "--format", "json", image}},
      {"index, run again",
       {"index", folder / "train", "--output", folder / "y.index"},
       {"index", folder / "train", "--output", folder / "y.index"}},
      {"parts",
       {"embed", folder / "train/a", "--output", folder / "parts/", "--part-size", "2"},
       {"embed", folder / "train/a", "--output", folder / "parts/", "--resume"}},
      {"lines",
       {"embed", folder / "train/a", "--output", folder / "lines.jsonl"},
       {"embed", folder / "train/a", "--output", folder / "lines.jsonl", "--resume"}},
  };
}

const Arguments kRecorded{"--size", "32x64", "--pad", "white", "--exif", "apply"};

}  // namespace

TEST_CASE("apps: what was made with portable bits is read with them") {
  if (!is_built("fit") || bits_contract(Precision::float32).number == 0) return;  // of VIT_KERNELS
  const TestFolder folder;
  write_images(folder);
  const std::string head = folder / "head.safetensors", image = folder / "train/a/0.ppm";
  const RunResult made = run_vit({"fit", folder / "train", "--method", "centroid", "--output", head,
                                  "--dtype", "int8", "--bits", "portable"});
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  const Arguments classify{"classify", "--classifier", head, "--format", "json", image};
  const RunResult expected = run_vit(joined(classify, {"--bits", "portable", "--dtype", "int8"}));
  const RunResult found = run_vit(classify);
  CHECK(found.exit_code == 0);
  CHECK(found.err.empty());
  CHECK(found.out == expected.out);
  const RunResult other = run_vit(joined(classify, {"--kernels", "portable"}));  // which do not fuse
  CHECK(other.exit_code == 0);
  CHECK(other.err.find("was made with contract 1") != std::string::npos);
  const RunResult refused = run_vit(joined(classify, {"--kernels", "portable", "--bits", "portable"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("do not fuse") != std::string::npos);
}

TEST_CASE("apps: whatever keeps a record is used with the options that it was made with") {
  const TestFolder folder;
  write_images(folder);
  for (const Kept& kept : all_kept(folder)) {
    CAPTURE(kept.name);
    if (!is_command_built(kept.make.front())) continue;
    const RunResult made =
        run_vit(joined(joined(kept.make, {"--model", golden_model("rope-axial")}), kRecorded));
    CAPTURE(made.err);
    REQUIRE(made.exit_code == 0);
    const RunResult plain = run_vit(kept.use);
    CAPTURE(plain.err);
    CHECK(plain.exit_code == 0);
    // the same options again are no contradiction, and change nothing
    const RunResult repeated = run_vit(joined(kept.use, kRecorded));
    CAPTURE(repeated.err);
    CHECK(repeated.exit_code == 0);
    if (contains(kept.name, "head") && !contains(kept.name, "measured")) CHECK(repeated.out == plain.out);
  }
}

TEST_CASE("apps: what contradicts a record is an error that names both") {
  const TestFolder folder;
  write_images(folder);
  const std::vector<std::pair<Arguments, Arguments>> contradictions{
      {{"--pad", "black"}, {"--pad", "255,255,255", "0,0,0"}},
      {{"--size", "16x64"}, {"--size", "32x64", "16x64"}},
      {{"--size", "native"}, {"--size", "32x64", "native"}},
      {{"--exif", "ignore"}, {"--exif", "apply", "ignore"}},
      {{"--mean", "0.25"}, {"without --mean", "--mean 0.25"}},
      {{"--resampler", "pillow"}, {"without --resampler", "--resampler pillow"}},
      {{"--channels", "bgr"}, {"--channels", "rgb", "bgr"}},
      {{"--set", "num_heads=2"}, {"without --set", "num_heads=2"}}};
  for (const Kept& kept : all_kept(folder)) {
    CAPTURE(kept.name);
    if (!is_command_built(kept.make.front())) continue;
    const RunResult made =
        run_vit(joined(joined(kept.make, {"--model", golden_model("rope-axial")}), kRecorded));
    REQUIRE(made.exit_code == 0);
    for (const auto& contradiction : contradictions) {
      const auto& options = contradiction.first;
      const auto& words = contradiction.second;
      CAPTURE(options.front());
      CAPTURE(options.back());
      const RunResult result = run_vit(joined(kept.use, options));
      CAPTURE(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      for (const std::string& word : words) CHECK(contains(result.err, word));
    }
    const RunResult other = run_vit(joined(kept.use, {"--model", golden_model("timm-vit")}));
    CAPTURE(other.err);
    CHECK(other.exit_code == 1);
  }
}

TEST_CASE("apps: a bank is added to with its own options" * doctest::test_suite("anomaly")) {
  const TestFolder folder;
  write_images(folder);
  const Arguments fit = with_model(
      "anomaly", {"fit", folder / "train/a", "--output", folder / "bank.safetensors", "--size", "32"});
  REQUIRE(run_vit(joined(fit, {"--neighborhood", "3", "--layer", "0"})).exit_code == 0);
  const Arguments more =
      with_model("anomaly", {"fit", folder / "train/b", "--output", folder / "bank.safetensors"});
  for (const auto& [option, value, former] : {std::array<std::string, 3>{"--neighborhood", "5", "3"},
                                              {"--layer", "1", "0"},
                                              {"--score", "maximum", "top-percent"},
                                              {"--quantile", "0.5", "0.95"}}) {
    const RunResult result = run_vit(joined(more, {option, value}));
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, option + " " + former));
    CHECK(contains(result.err, option + " " + value));
  }
  CHECK(run_vit(joined(more, {"--neighborhood", "3"})).exit_code == 0);
}

TEST_CASE("apps: vectors of texts belong to a text tower") {
  const TestFolder folder;
  const ImageConfig size = Model::load(golden_text("hf-clip"))->config().image;
  write_npy(folder / "pixels.npy", Tensor<float>(Shape{size.num_channels, size.height, size.width}));
  write_text(folder / "names.txt", "a cat\na dog\n");
  const RunResult made =
      run_vit({"embed", "--text-file", folder / "names.txt", "--template", "a photo of {}", "--model",
               golden_text("hf-clip"), "--output", folder / "names.safetensors"});
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  const Arguments use{"classify", folder / "pixels.npy", "--classes-file", folder / "names.safetensors"};
  const RunResult plain = run_vit(use);
  CAPTURE(plain.err);
  CHECK(plain.exit_code == 0);
  CHECK(plain.err.empty());
  CHECK(run_vit(joined(use, {"--model", golden_text("hf-clip")})).out == plain.out);
  const RunResult other = run_vit(joined(use, {"--model", golden_text("hf-siglip")}));
  CAPTURE(other.err);
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "hf-clip"));
  CHECK(contains(other.err, "hf-siglip"));
  CHECK(run_vit(joined(use, {"--library", "open_clip"})).exit_code == 1);
}

TEST_CASE("apps: results without a record, and of a model that was moved" * doctest::test_suite("fit")) {
  const TestFolder folder;
  write_images(folder);
  fs::copy(golden_model("rope-axial"), folder / "model", fs::copy_options::recursive);
  REQUIRE(
      run_vit({"fit", folder / "train", "--model", folder / "model", "--output", folder / "head.safetensors"})
          .exit_code == 0);
  const Arguments use{"classify", "--classifier", folder / "head.safetensors", folder / "train/a/0.ppm"};
  SUBCASE("a head that the library saved") {
    ClassifierHead head = load_head(folder / "head.safetensors");
    CHECK_FALSE(head.record.empty());
    head.record.clear();
    save_head(folder / "head.safetensors", head);
    const RunResult result = run_vit(joined(use, {"--model", folder / "model"}));
    CHECK(result.exit_code == 0);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "no record"));
    CHECK(run_vit(joined(use, {"--model", folder / "model", "--quiet"})).err.empty());
  }
  SUBCASE("a model that was moved") {
    fs::rename(folder / "model", folder / "moved");
    const RunResult result = run_vit(use);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, folder / "model"));
    CHECK(contains(result.err, "--model"));
    CHECK(run_vit(joined(use, {"--model", folder / "moved"})).exit_code == 0);
  }
  SUBCASE("a damaged record") {
    ClassifierHead head = load_head(folder / "head.safetensors");
    for (const char* record : {"{", "[]", R"({"model": 3})", R"({"model": "m", "fingerprint": "f"})",
                               R"({"model": "m", "options": {"--size": 3}})"}) {
      head.record = record;
      save_head(folder / "head.safetensors", head);
      const RunResult result = run_vit(use);
      CAPTURE(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      CHECK(contains(result.err, "head.safetensors"));
    }
  }
}
