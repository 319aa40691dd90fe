// Every reference model of the families that the library reads, compared tensor by tensor with float64
// results of the library that defines it. The models are next to a developer's checkout; data/golden/models
// holds small twins.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden_models.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/vision_transformer.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

Tensor<float> tensor_of(const TensorFile& file, const std::string& name) {
  return to_float(file.at(name));
}

double largest_difference(std::span<const float> found, const TensorEntry& expected) {
  return test::largest_difference(found, to_double(expected));
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
    if (entry.name.ends_with(ending))
      names.push_back(entry.name.substr(0, entry.name.size() - ending.size()));
  }
  return names;
}

/// Largest errors against float64, relative to the largest value of the tensor (to 1 where that is smaller):
/// ours, that of the reference's own float32 run, and ours as a share of what is allowed for that tensor.
struct CaseErrors {
  double ours = 0.0, reference = 0.0, share = 0.0;

  void include(const CaseErrors& other) {
    ours = std::max(ours, other.ours);
    reference = std::max(reference, other.reference);
    share = std::max(share, other.share);
  }
};

/// What the reference's float32 run may be off by, relative to the largest value. Errors of the models are at
/// most half of it; a wrong number among the references must not widen the limit for ours.
constexpr double kLargestOwnError = 2e-5;

/// Compares one named result; float64 references may be missed by twice the reference's own float32 error,
/// with a floor of 3e-6 relative to the largest value; float32 ones by the same plus that error once more.
void check_tensor(const TensorFile& expected, const std::string& name, std::span<const float> found,
                  CaseErrors& errors) {
  const TensorEntry* const exact = expected.find(name + ".f64");
  const TensorEntry* const single = expected.find(name);
  if (exact == nullptr && single == nullptr) return;
  if (exact != nullptr) {
    const double own = single != nullptr ? largest_difference(tensor_of(expected, name).flat(), *exact) : 0.0;
    const double scale = std::max(1.0, largest_magnitude(*exact));
    CHECK_MESSAGE(own <= kLargestOwnError * scale, name, ": the reference's two runs differ by ", own);
    const double allowed = std::max(2.0 * own, 3e-6 * scale);
    const double error = largest_difference(found, *exact);
    errors.include({.ours = error / scale, .reference = own / scale, .share = error / allowed});
    CHECK_MESSAGE(error <= allowed, name, ": error ", error, ", allowed ", allowed);
    return;
  }
  const double allowed = 1e-5 * std::max(1.0, largest_magnitude(*single));
  const double error = largest_difference(found, *single);
  CHECK_MESSAGE(error <= allowed, name, ": error ", error, ", allowed ", allowed);
}

void check_input(const VisionTransformer& model, const TensorFile& expected, const std::string& input,
                 CaseErrors& errors) {
  CAPTURE(input);
  const ModelConfig& config = model.config();
  Request head_only;
  if (config.head.num_classes != 0) head_only.add(Output::logits);
  if (config.head.pooling != Pooling::none) head_only.add(Output::pooled);
  if (config.projection_dim() != 0) head_only.add(Output::projected);
  Request request = head_only;
  for (const OutputKey& key :
       {OutputKey(Output::tokens), OutputKey(Output::embedded), OutputKey(Output::attention, 0)})
    request.add(key);
  for (std::size_t block = 0; block < config.encoder.depth; ++block) request.add({Output::block, block});
  const Tensor<float> pixels = tensor_of(expected, input + ".pixels");
  ForwardMemory memory;
  Outputs outputs;
  model.forward(pixels, request, /*threads=*/2, memory, outputs);
  check_tensor(expected, input + ".tokens_in", outputs[Output::embedded].flat(), errors);
  for (std::size_t block = 0; block < config.encoder.depth; ++block) {
    check_tensor(expected, input + ".block." + std::to_string(block), outputs[{Output::block, block}].flat(),
                 errors);
  }
  check_tensor(expected, input + ".tokens", outputs[Output::tokens].flat(), errors);
  for (const Output output : {Output::pooled, Output::projected, Output::logits}) {
    if (request.has(output))
      check_tensor(expected, input + "." + to_string(output), outputs[output].flat(), errors);
  }
  if (input == "native") {
    if (const TensorEntry* const attention = expected.find("layer0.attention")) {
      const std::size_t count = attention->num_elements();
      check_tensor(expected, "layer0.attention", outputs[{Output::attention, 0}].flat().subspan(0, count),
                   errors);
    }
  }

  // only what the head reads: the same bits as the full pass
  Outputs short_outputs;
  model.forward(pixels, head_only, /*threads=*/1, memory, short_outputs);
  for (const Output output : {Output::pooled, Output::logits}) {
    if (request.has(output)) CHECK(std::ranges::equal(short_outputs[output].flat(), outputs[output].flat()));
  }
}

void check_inputs(const fs::path& path, const ModelOptions& options, const TensorFile& expected,
                  CaseErrors& errors) {
  const LoadedTower checkpoint = load_checkpoint(path, options);
  const VisionTransformer model(checkpoint.config, checkpoint.weights, kernels::default_kernels());
  const std::vector<std::string> inputs = inputs_of(expected);
  REQUIRE(!inputs.empty());
  for (const std::string& input : inputs) check_input(model, expected, input, errors);
}

/// Meta's own numbers, with the periods that the file stores.
void check_stored_periods(const fs::path& path, const ModelOptions& options, const TensorFile& expected,
                          CaseErrors& errors) {
  const LoadedTower checkpoint = load_checkpoint(path, options);
  REQUIRE(checkpoint.config.position.frequencies == AxisFrequencies::stored);
  const VisionTransformer model(checkpoint.config, checkpoint.weights, kernels::default_kernels());
  for (const std::string& input : inputs_of(expected)) {
    ForwardMemory memory;
    Outputs outputs;
    model.forward(tensor_of(expected, input + ".pixels"), Output::tokens,
                  /*threads=*/1, memory, outputs);
    check_tensor(expected, input + ".stored_periods.tokens", outputs[Output::tokens].flat(), errors);
  }
}

/// A family's row of the table.
struct FamilyErrors {
  std::set<std::string> layouts;  // libraries and publishers whose files were read
  std::size_t num_models = 0;
  CaseErrors errors;
};
using FamilyTable = std::map<std::string, FamilyErrors>;

void check_case(const fs::path& folder, FamilyTable& table) {
  CAPTURE(folder.filename().string());
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const ModelOptions options = test::options_of(folder);
  const bool stored = expected.find("native.stored_periods.tokens") != nullptr;
  ModelOptions exact = options;
  if (stored) exact.overrides["rope_periods"] = "recomputed";
  const ModelConfig config = load_checkpoint(folder, exact).config;
  FamilyErrors& family = table[config.family];
  family.layouts.insert(config.library);
  family.num_models += 1;
  std::vector<fs::path> paths = {folder};
  if (fs::exists(folder / "model.pth")) {
    paths.push_back(folder / "model.pth");  // some cases hold both formats
  }
  for (const fs::path& path : paths) {
    if (stored) check_stored_periods(path, options, expected, family.errors);
    check_inputs(path, exact, expected, family.errors);
  }
}

void check_folder(const fs::path& root, FamilyTable& table) {
  const std::vector<fs::path> cases = test::folders_in(root);
  REQUIRE(!cases.empty());
  for (const fs::path& folder : cases) check_case(folder, table);
}

/// The README's table, in markdown, where VIT_FAMILY_TABLE names a file; tests/family_table prints it.
void write_table(const FamilyTable& table) {
  const char* const path = std::getenv("VIT_FAMILY_TABLE");
  if (path == nullptr) return;
  std::ofstream file(path);
  file << "| family | files of | models | largest error | PyTorch's own | share of the limit |\n"
          "|---|---|---|---|---|---|\n";
  for (const auto& [name, family] : table) {
    std::string layouts;
    for (const std::string& layout : family.layouts) layouts += (layouts.empty() ? "" : ", ") + layout;
    file << "| " << name << " | " << layouts << " | " << family.num_models << " | " << std::scientific
         << std::setprecision(1) << family.errors.ours << " | " << family.errors.reference << " | "
         << std::fixed << std::setprecision(0) << 100 * family.errors.share << " % |\n";
  }
  REQUIRE(file.good());
}

}  // namespace

TEST_CASE("model: the golden models give the reference's numbers") {
  FamilyTable table;
  check_folder(test::data_path("golden/models"), table);
  if (!test::find_shared_path("fixtures/models")) write_table(table);
}

TEST_CASE("model: golden models that a layout file loads give the reference's numbers") {
  FamilyTable table;
  check_folder(test::data_path("golden/layouts"), table);
}

TEST_CASE("model: reference models of every family give the reference's numbers") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  FamilyTable table;
  check_folder(test::shared_path("fixtures/models"), table);
  check_folder(test::data_path("golden/models"), table);
  write_table(table);
}

}  // namespace vit
