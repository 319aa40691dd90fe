// vit fit, and the heads that it makes in classify and evaluate.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "vit/checkpoint.h"
#include "vit/classifier.h"
#include "vit/fit.h"
#include "vit/io/json.h"
#include "vit/session.h"

TEST_SUITE_BEGIN("fit");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

/// ROOT/LABEL/0.ppm, 1.ppm, ...; images of one label resemble each other.
void write_label(const std::string& root, const std::string& label, std::size_t count, unsigned seed) {
  for (std::size_t i = 0; i < count; ++i)
    write_picture(root + "/" + label + "/" + std::to_string(i) + ".ppm", 30 + i, 40, seed);
}

std::string fitted(const TestFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json", "--output", folder / "head.safetensors"});
  const RunResult result = run_vit(with_model("fit", arguments));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

}  // namespace

TEST_CASE("apps: fit learns labels that classify and evaluate then use") {
  const TestFolder folder;
  for (unsigned k = 0; k < 3; ++k) write_label(folder / "train", std::string(1, "abc"[k]), 5 + k, 1 + 4 * k);
  for (const std::string method : {"logistic", "knn", "centroid"}) {
    CAPTURE(method);
    std::vector<std::string> arguments{folder / "train", "--method", method};
    if (method == "knn") arguments.insert(arguments.end(), {"--k", "4"});
    const Json json = parse_json(fitted(folder, arguments), "fit");
    CHECK(json.at("images").as_size() == 18);
    CHECK(json.at("classes").as_size() == 3);
    CHECK(json.at("method").as_string() == method);
    CHECK(json.at("features").as_string() == "pooled");
    CHECK(json.at("cross_validated_top1").as_double() > 0.9);
    CHECK(json.find_double("strength").has_value() == (method == "logistic"));

    const RunResult evaluated = run_vit(with_model(
        "evaluate", {"--classifier", folder / "head.safetensors", "--format", "json", folder / "train"}));
    CHECK(evaluated.exit_code == 0);
    CHECK(parse_json(evaluated.out, "evaluate").at("top1").as_double() == 1.0);
    const RunResult classified =
        run_vit(with_model("classify", {"--classifier", folder / "head.safetensors", "--format", "json",
                                        folder / "train/b/0.ppm"}));
    const Json top = parse_json(classified.out, "classify").at("top");
    CHECK(top.size() == 3);
    CHECK(top[0].at("label").as_string() == "b");
    CHECK(top[0].at("index").as_size() == 1);

    const auto model = Model::load(golden_model("rope-axial"));
    const Classifier classifier = Classifier::of_head(model, load_head(folder / "head.safetensors"));
    const Prediction first = classifier.classify(folder / "train/b/0.ppm").front();
    CHECK(first.label == "b");
    CHECK(first.probability == static_cast<float>(top[0].at("probability").as_double()));
  }
}

TEST_CASE("apps: a head belongs to its model") {
  const TestFolder folder;
  write_label(folder / "train", "a", 3, 1);
  write_label(folder / "train", "b", 3, 9);
  fitted(folder, {folder / "train"});
  const RunResult other = run_vit({"classify", "--model", golden_model("timm-vit"), "--classifier",
                                   folder / "head.safetensors", folder / "train/a/0.ppm"});
  CHECK(other.exit_code == 1);
  CHECK(other.num_errors() == 1);
  CHECK(contains(other.err, load_head(folder / "head.safetensors").fingerprint));
  CHECK(contains(other.err, Checkpoint(golden_model("timm-vit")).describe().report.fingerprint));
  const RunResult no_head = run_vit(
      with_model("classify", {"--classifier", golden_model("timm-vit") + "/model.safetensors", "x.jpg"}));
  CHECK(no_head.exit_code == 1);
  CHECK(contains(no_head.err, "not a classifier head"));
  const RunResult labels = run_vit(
      with_model("classify", {"--classifier", folder / "head.safetensors", "--labels", "x.txt", "x.jpg"}));
  CHECK(labels.exit_code == 2);
}

TEST_CASE("apps: fit says what a folder lacks, in one line each") {
  const TestFolder folder;
  const std::string root = folder / "train";
  write_label(root, "a", 3, 1);
  const std::vector<std::string> arguments{root, "--output", folder / "head.safetensors"};
  const RunResult one = run_vit(with_model("fit", arguments));
  CHECK(one.exit_code == 1);
  CHECK(one.num_errors() == 1);
  CHECK(contains(one.err, "one label only"));

  write_label(root, "b", 1, 9);
  const RunResult single = run_vit(with_model("fit", arguments));
  CHECK(single.exit_code == 0);
  CHECK(single.num_errors() == 1);
  CHECK(contains(single.err, "1 label has fewer than 3 images (b: 1)"));

  std::filesystem::create_directory(root + "/empty");
  write_text(root + "/b/broken.jpg", "no image");
  write_text(root + "/broken/0.jpg", "no image");
  const RunResult partly = run_vit(with_model("fit", arguments));
  CHECK(partly.exit_code == 1);
  CHECK(contains(partly.err, "empty: no images"));
  CHECK(contains(partly.err, "broken.jpg"));
  CHECK(contains(partly.err, "1 of 3"));
  CHECK(load_head(folder / "head.safetensors").labels == std::vector<std::string>{"a", "b"});

  CHECK(run_vit(with_model("fit", {folder / "nowhere", "--output", folder / "x.safetensors"})).exit_code ==
        1);
  CHECK(run_vit(with_model("fit", {root, "--output", folder / "x.npz"})).exit_code == 2);
  CHECK(run_vit(with_model("fit", {root, "--k", "3", "--output", folder / "x.safetensors"})).exit_code == 2);
  CHECK(run_vit(with_model("fit", {root, "--features", "patches", "--output", folder / "x.safetensors"}))
            .exit_code == 2);
  CHECK(!std::filesystem::exists(folder / "x.safetensors"));
}

TEST_CASE("apps: labels of one image each are fitted without cross-validation") {
  const TestFolder folder;
  for (unsigned k = 0; k < 6; ++k) write_label(folder / "train", std::string(1, "abcdef"[k]), 1, 1 + 4 * k);
  const Json json = parse_json(fitted(folder, {folder / "train"}), "fit");
  CHECK(json.at("classes").as_size() == 6);
  CHECK(!json.find("cross_validated_top1"));
  CHECK(json.at("strength").as_double() == 1.0);
}
