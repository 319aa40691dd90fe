// Whole tiny models on tables whose products are of tiles: those of AMX, executed in software where the
// processor has none, and of two rows and two columns on Arm.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "tests/support/amx_emulator.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"
#include "vit/kernels/targets.h"
#include "vit/towers/vision_transformer.h"

namespace vit {
using namespace internal;
namespace {

const kernels::KernelTable* find_table(std::string_view name, bool must_run) {
  for (const kernels::CompiledTarget& target : kernels::compiled_targets()) {
    if (target.table.name == name && (target.supported || !must_run)) return &target.table;
  }
  return nullptr;
}

Tensor<float> tokens_of(const VisionTransformer& model, TensorView<const float> pixels, int threads) {
  ForwardMemory memory;
  Outputs outputs;
  model.forward(pixels, {Output::tokens}, threads, memory, outputs);
  const TensorView<const float> tokens = outputs[Output::tokens];
  Tensor<float> copy(tokens.shape());
  std::ranges::copy(tokens.flat(), copy.data());
  return copy;
}

/// |a - b| / |b|.
double distance(const Tensor<float>& a, const Tensor<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.num_elements(); ++i) {
    difference += std::pow(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]), 2);
    size += std::pow(static_cast<double>(b.data()[i]), 2);
  }
  return std::sqrt(difference / size);
}

/// Tiles against the table without them that rounds the same numbers, and against float32.
void check_model(const LoadedTower<ModelConfig>& checkpoint, Precision precision,
                 const kernels::KernelTable& tiles, const kernels::KernelTable& lanes) {
  const ModelConfig& config = checkpoint.config;
  const Tensor<float> pixels = test::random_pixels(3, config.image.height, config.image.width);
  const VisionTransformer on_tiles(config, checkpoint.weights, tiles, precision);
  const Tensor<float> found = tokens_of(on_tiles, pixels, 1);
  // The same bits for any batch and any number of threads.
  CHECK(std::ranges::equal(tokens_of(on_tiles, pixels, 3).flat(), found.flat()));
  const Tensor<float> last = tokens_of(on_tiles, pixels.view().part(2, 1), 1);
  CHECK(std::ranges::equal(last.flat(), found.flat().last(last.num_elements())));
  // As near to float32 as without tiles, whose attention rounds other numbers: within twice that.
  const Tensor<float> exact = tokens_of({config, checkpoint.weights, lanes}, pixels, 1);
  const double usual = distance(tokens_of({config, checkpoint.weights, lanes, precision}, pixels, 1), exact);
  CHECK(distance(found, exact) < 2 * usual + 0x1p-9);
  CHECK(distance(found, exact) > 1e-5);  // it did round
}

}  // namespace

namespace {

void check_models(const kernels::KernelTable& tiles, const kernels::KernelTable& lanes) {
  // A few of the models; all for `tests/run --all`.
  const bool all = std::getenv("VIT_TESTS_ALL_MODELS") != nullptr;
  const auto folders = test::folders_in(test::data_path("golden/models"));
  for (std::size_t i = 0; i < folders.size(); i += all ? 1 : 8) {
    CAPTURE(folders[i].string());
    const auto checkpoint = load_checkpoint(folders[i], test::options_of(folders[i]));
    for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
      CAPTURE(to_string(precision));
      check_model(checkpoint, precision, tiles, lanes);
    }
  }
}

}  // namespace

TEST_CASE(
    "amx: whole tiny models on tiles keep the bits of any batch, and are as near to float32 as without") {
  if (!test::can_emulate_amx()) return;
  const kernels::KernelTable* const tiles = find_table("avx512_amx", false);
  const kernels::KernelTable* const lanes = find_table("avx512_bf16", true);
  if (tiles == nullptr || lanes == nullptr) return;  // the code around the tiles is AVX-512
  test::emulate_amx();
  const unsigned long before = test::num_emulated();
  check_models(*tiles, *lanes);
  CHECK(test::runs_on_tiles(before));
}

TEST_CASE("neon: whole tiny models by BF16 and I8MM keep the bits of any batch, and are near to float32") {
  const kernels::KernelTable* const tiles = find_table("neon_i8mm", true);
  if (tiles != nullptr) check_models(*tiles, kernels::find_kernels("neon"));
}

TEST_CASE("neon: whole tiny models by the dot product have int8 layers as near to float32 as other bytes") {
  const kernels::KernelTable* const dot = find_table("neon_dot", true);
  if (dot != nullptr) check_models(*dot, kernels::find_kernels("neon"));
}

}  // namespace vit
