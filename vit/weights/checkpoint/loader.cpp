#include "vit/weights/checkpoint/loader.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/fingerprint.h"
#include "vit/weights/checkpoint/tower_architectures.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {

namespace {

/// Of mean 0, variance 1 and nearly normal: the sum of the four 16-bit parts of a random number, less its
/// mean, divided by its deviation. The standard fixes the numbers of std::mt19937_64, but not what
/// std::normal_distribution makes of them.
double nearly_normal(std::uint64_t bits) {
  constexpr double kLevels = 65536.0, kParts = 4.0;
  const double deviation = std::sqrt(kParts * (kLevels * kLevels - 1.0) / 12.0);
  const std::uint64_t sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  return (static_cast<double>(sum) - kParts * (kLevels - 1.0) / 2.0) / deviation;
}

}  // namespace

Checkpoint<ModelConfig> load_checkpoint(const std::filesystem::path& path, const ModelOptions& options) {
  return CheckpointFolder(path, options).load<ModelConfig>();
}

namespace {

/// The configuration of a published architecture, with the caller's overrides.
ModelConfig named_config(const std::string& architecture, const ModelOptions& options) {
  if (is_tower_architecture(architecture)) {
    for (const auto& [key, value] : options.overrides)
      fail(Where("random_checkpoint", ErrorKind::argument), override_name(key), " is no argument of ",
           in_quotes(architecture));
    return tower_architecture(architecture);
  }
  const Architecture& found = find_architecture(architecture);
  TimmArgs args = found.args;
  for (const auto& [key, value] : options.overrides) apply_timm_override(args, key, value);
  return to_config(args, found);
}

}  // namespace

Checkpoint<ModelConfig> random_checkpoint(const std::string& architecture, const ModelOptions& options,
                                          unsigned seed) {
  Checkpoint<ModelConfig> checkpoint;
  checkpoint.config = named_config(architecture, options);
  checkpoint.config.position.rope_scaling = options.rope_scaling;
  validate(checkpoint.config);
  checkpoint.report.path = architecture;
  checkpoint.report.stored_dtype = "none (random weights)";
  checkpoint.report.fingerprint = fingerprint_of_random(architecture, checkpoint.config, seed);
  unsigned next_seed = seed;
  for_each_tensor(
      checkpoint.config, checkpoint.weights, [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
        checkpoint.report.num_parameters += shape.num_elements();
        const bool one = part_name(id.part).ends_with("gamma") || id.part == Part::scale1 ||
                         id.part == Part::scale2 || id.part == Part::merger_scale;
        // variance 1 / fan-in keeps activations of order one through any depth
        const double spread = shape.rank() < 2 ? 0.02 : 1.0 / std::sqrt(static_cast<double>(shape.last()));
        tensor = WeightTensor(shape, [shape, one, spread, tensor_seed = next_seed++]() -> Tensor<float> {
          Tensor<float> values(shape);
          std::mt19937_64 random(tensor_seed);
          const double mean = one ? 1.0 : 0.0, deviation = one ? 0.02 : spread;
          for (float& value : values.flat())
            value = static_cast<float>(mean + deviation * nearly_normal(random()));
          return values;
        });
      });
  return checkpoint;
}

}  // namespace vit::internal
