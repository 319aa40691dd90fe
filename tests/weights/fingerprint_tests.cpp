// Models are distinguished by their weights, not by where the files are.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/checkpoint_files.h"
#include "tests/support/shared_data.h"
#include "vit/checkpoint.h"
#include "vit/model.h"

namespace vit {

TEST_CASE(
    "weights: the fingerprint is that of the weights, wherever the files are and however they compute") {
  const std::filesystem::path folder = test::data_path("golden/models/timm-vit");
  const auto fingerprint = [](const std::filesystem::path& path, Precision precision = Precision::float32) {
    return Model::load(path, {.precision = precision})->report().fingerprint;
  };
  const std::string original = fingerprint(folder);
  CHECK(original == "97274a477789d18b");  // files of earlier releases hold such numbers

  const test::TemporaryFolder elsewhere;
  test::FileCopy copy(folder);
  copy.write_to(elsewhere.path());
  CHECK(fingerprint(elsewhere.path()) == original);
  CHECK(fingerprint(folder, Precision::int8) == original);

  auto& weights = copy.at("blocks.0.mlp.fc1.weight").bytes;
  weights.front() ^= std::byte{1};
  copy.write_to(elsewhere.path());
  CHECK(fingerprint(elsewhere.path()) != original);
  CHECK(fingerprint(test::data_path("golden/models/rope-axial")) != original);
}

TEST_CASE("weights: random models have the fingerprint of their architecture") {
  const auto of = [](const char* name) {
    return vit::Checkpoint::random(name).describe().report.fingerprint;
  };
  CHECK(of("vit_tiny_patch16_224") == of("vit_tiny_patch16_224"));
  CHECK(of("vit_tiny_patch16_224") != of("vit_small_patch16_224"));
}

}  // namespace vit
