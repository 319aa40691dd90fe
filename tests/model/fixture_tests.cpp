// Every reference model of the families that the library reads, compared tensor by tensor with float64 results of the
// library that defines it. The models lie beside a developer's checkout; data/golden/models holds small twins.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/kernels/kernels.h"
#include "vit/model.h"
#include "vit/weights/json.h"
#include "vit/weights/loader.h"
#include "vit/weights/safetensors.h"

namespace vit {
namespace {

namespace fs = std::filesystem;

Tensor<float> tensor_of(const TensorFile& file, const std::string& name) { return to_float(file.at(name)); }

double largest_difference(std::span<const float> found, const TensorEntry& expected) {
  const std::vector<double> reference = to_double(expected);
  REQUIRE_MESSAGE(found.size() == reference.size(), expected.describe());
  double largest = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - reference[i]);
    if (!(difference <= largest)) largest = difference;  // keeps not-a-number
  }
  return largest;
}

double largest_magnitude(const TensorEntry& entry) {
  double largest = 0.0;
  for (const double value : to_double(entry)) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Input names of a case: everything before ".pixels".
std::vector<std::string> inputs_of(const TensorFile& expected) {
  std::vector<std::string> names;
  for (const TensorEntry& entry : expected.entries()) {
    const std::string_view ending = ".pixels";
    if (entry.name.ends_with(ending)) names.push_back(entry.name.substr(0, entry.name.size() - ending.size()));
  }
  return names;
}

/// Compares one named result; float64 references may be missed by twice the reference's own float32 error, with a
/// floor of 3e-6 relative to the largest value; float32 ones by the same plus that error once more.
void check_tensor(const TensorFile& expected, const std::string& name, std::span<const float> found) {
  const TensorEntry* const exact = expected.find(name + ".f64");
  const TensorEntry* const single = expected.find(name);
  if (exact == nullptr && single == nullptr) return;
  if (exact != nullptr) {
    const double own = single != nullptr ? largest_difference(tensor_of(expected, name).flat(), *exact) : 0.0;
    const double allowed = std::max(2.0 * own, 3e-6 * std::max(1.0, largest_magnitude(*exact)));
    const double error = largest_difference(found, *exact);
    CHECK_MESSAGE(error <= allowed, name, ": error ", error, ", allowed ", allowed);
    return;
  }
  const double allowed = 1e-5 * std::max(1.0, largest_magnitude(*single));
  const double error = largest_difference(found, *single);
  CHECK_MESSAGE(error <= allowed, name, ": error ", error, ", allowed ", allowed);
}

void check_input(const VisionTransformer& model, const TensorFile& expected, const std::string& input) {
  CAPTURE(input);
  const ModelConfig& config = model.config();
  Request request{.logits = config.num_classes != 0,
                  .pooled = config.pooling != Pooling::none,
                  .projected = config.projection_dim != 0,
                  .tokens = true,
                  .blocks = {},
                  .attention = {0},
                  .embedded = true};
  for (std::size_t block = 0; block < config.depth; ++block) request.blocks.push_back(block);
  const Tensor<float> pixels = tensor_of(expected, input + ".pixels");
  ForwardMemory memory;
  Outputs outputs;
  model.forward(pixels, request, /*threads=*/2, memory, outputs);
  check_tensor(expected, input + ".tokens_in", outputs.embedded.flat());
  for (std::size_t block = 0; block < config.depth; ++block) {
    check_tensor(expected, input + ".block." + std::to_string(block), outputs.blocks[block].flat());
  }
  check_tensor(expected, input + ".tokens", outputs.tokens.flat());
  if (request.pooled) check_tensor(expected, input + ".pooled", outputs.pooled.flat());
  if (request.projected) check_tensor(expected, input + ".projected", outputs.projected.flat());
  if (request.logits) check_tensor(expected, input + ".logits", outputs.logits.flat());
  if (input == "native") {
    if (const TensorEntry* const attention = expected.find("layer0.attention")) {
      const std::size_t count = attention->num_elements();
      check_tensor(expected, "layer0.attention", outputs.attention[0].flat().subspan(0, count));
    }
  }

  // only what the head reads: the same bits as the full pass
  Request head_only{.logits = request.logits, .pooled = request.pooled, .projected = request.projected,
                    .blocks = {}, .attention = {}};
  Outputs short_outputs;
  model.forward(pixels, head_only, /*threads=*/1, memory, short_outputs);
  CHECK(std::ranges::equal(short_outputs.logits.flat(), outputs.logits.flat()));
  CHECK(std::ranges::equal(short_outputs.pooled.flat(), outputs.pooled.flat()));
}

void check_case(const fs::path& folder) {
  CAPTURE(folder.filename().string());
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  Checkpoint checkpoint = load_checkpoint(folder);
  const VisionTransformer model(checkpoint.config, checkpoint.weights, kernels::default_kernels());
  const std::vector<std::string> inputs = inputs_of(expected);
  REQUIRE(!inputs.empty());
  for (const std::string& input : inputs) check_input(model, expected, input);
}

/// The model families of the library, by the front of a case's name.
bool is_supported(const std::string& name) {
  for (const char* front : {"timm-rope-", "timm-vit", "timm-deit", "hf-vit", "hf-deit"}) {
    if (name.starts_with(front)) return true;
  }
  return false;
}

void check_folder(const fs::path& root) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory() && is_supported(entry.path().filename().string())) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  REQUIRE(!cases.empty());
  for (const fs::path& folder : cases) check_case(folder);
}

}  // namespace

TEST_CASE("model: reference models of every family give the reference's numbers") {
  if (const auto root = test::shared_path("fixtures/models")) check_folder(*root);
}

}  // namespace vit
