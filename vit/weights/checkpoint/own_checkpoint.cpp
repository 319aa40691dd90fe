#include "vit/weights/checkpoint/own_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/fingerprint.h"

namespace vit::internal {
namespace {

constexpr Where kTensors{"Model::from_tensors", ErrorKind::mismatch};

/// A valid configuration with the caller's rule for its positions.
LoadedTower<ModelConfig> configured(ModelConfig config, const ModelOptions& options) {
  LoadedTower<ModelConfig> checkpoint;
  checkpoint.config = std::move(config);
  if (options.rope_scaling) checkpoint.config.position.rope_scaling = options.rope_scaling;
  validate(checkpoint.config);
  return checkpoint;
}

/// "norm1.gamma (768); ...": distinguishes configurations whose heads and pooling are equal.
std::string text_of(const ModelConfig& config) {
  std::string out = config.architecture;
  ModelWeights weights;
  for_each_tensor(config, weights, [&](TensorId id, const Shape& shape, WeightTensor&) {
    out += canonical_name(id) + " " + shape.to_string() + "; ";
  });
  return out;
}

/// A tensor of memory as one of a file, for the fingerprint.
TensorEntry entry_of(const std::string& name, const TensorView<const float>& view) {
  TensorEntry entry;
  entry.name = name;
  entry.dtype_name = "F32";
  for (std::size_t i = 0; i < view.rank(); ++i) entry.shape.push_back(view.dim(i));
  std::size_t stride = view.row_stride();  // of the second last dimension
  if (!view.is_contiguous() && view.rank() > 1) {
    entry.strides.assign(view.rank(), 1);
    for (std::size_t i = view.rank() - 1; i-- > 0; stride *= view.dim(i)) entry.strides[i] = stride;
  }
  const std::size_t count = (view.num_rows() - 1) * view.row_stride() + view.num_columns();
  entry.bytes = StoredBytes(std::as_bytes(std::span(view.data(), count)));
  return entry;
}

/// Whether a view holds a tensor of that shape, also as the weight of a convolution.
bool view_holds(const TensorView<const float>& view, const Shape& shape) {
  if (view.empty()) return false;
  if (view.shape() == shape) return true;
  return shape.rank() == 2 && view.rank() == 4 && view.is_contiguous() && view.dim(0) == shape[0] &&
         view.num_elements() == shape.num_elements();
}

Tensor<float> copy_of(const TensorView<const float>& view, const Shape& shape) {
  Tensor<float> out(shape);
  float* to = out.data();
  for (std::size_t row = 0; row < view.num_rows(); ++row)
    to = std::copy_n(view.row(row), view.num_columns(), to);
  return out;
}

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

void fill_randomly(LoadedTower<ModelConfig>& checkpoint, unsigned seed) {
  checkpoint.report.stored_dtype = "none (random weights)";
  unsigned next_seed = seed;
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
                    checkpoint.report.num_parameters += shape.num_elements();
                    const bool one = part_name(id.part).ends_with("gamma") || id.part == Part::scale1 ||
                                     id.part == Part::scale2 || id.part == Part::merger_scale ||
                                     id.part == Part::rope_periods;
                    tensor = random_tensor(shape, one, shape.last(), next_seed++);
                  });
}

WeightTensor random_tensor(const Shape& shape, bool near_one, std::size_t num_inputs, unsigned seed) {
  // variance 1 / fan-in keeps activations of order one through any depth
  const double spread = shape.rank() < 2 ? 0.02 : 1.0 / std::sqrt(static_cast<double>(num_inputs));
  return WeightTensor(shape, [shape, near_one, spread, seed]() -> Tensor<float> {
    Tensor<float> values(shape);
    std::mt19937_64 random(seed);
    const double mean = near_one ? 1.0 : 0.0, deviation = near_one ? 0.02 : spread;
    for (float& value : values.flat()) value = static_cast<float>(mean + deviation * nearly_normal(random()));
    return values;
  });
}

LoadedTower<ModelConfig> random_checkpoint_of(const ModelConfig& config, const ModelOptions& options,
                                              unsigned seed) {
  LoadedTower<ModelConfig> checkpoint = configured(config, options);
  checkpoint.report.path = config.architecture.empty() ? "random weights" : config.architecture;
  checkpoint.report.fingerprint = fingerprint_of_random(text_of(checkpoint.config), checkpoint.config, seed);
  fill_randomly(checkpoint, seed);
  return checkpoint;
}

LoadedTower<ModelConfig> checkpoint_of_tensors(const ModelConfig& config,
                                               const std::map<std::string, TensorView<const float>>& tensors,
                                               const ModelOptions& options) {
  LoadedTower<ModelConfig> checkpoint = configured(config, options);
  LoadReport& report = checkpoint.report;
  report.path = config.architecture.empty() ? "tensors" : config.architecture;
  report.stored_dtype = to_string(Dtype::f32);
  std::vector<std::string> missing, wrong, unexpected;
  TensorFile::Contents contents{.path = report.path};
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
                    const std::string name = canonical_name(id);
                    const auto found = tensors.find(name);
                    if (found == tensors.end())
                      return missing.push_back(in_quotes(name) + " " + shape.to_string());
                    const TensorView<const float>& view = found->second;
                    if (!view_holds(view, shape))
                      return wrong.push_back(in_quotes(name) + " has shape " + view.describe() +
                                             ", expected " + shape.to_string());
                    contents.entries.push_back(entry_of(name, view));
                    const TensorEntry& entry = contents.entries.back();
                    report.tensors.push_back({.name = name,
                                              .shape = entry.shape,
                                              .dtype = entry.dtype_name,
                                              .feeds = name,
                                              .ignored_because = {}});
                    report.num_parameters += shape.num_elements();
                    tensor = WeightTensor(shape, [view, shape] { return copy_of(view, shape); });
                  });
  for (const auto& given : tensors) {
    const std::string& name = given.first;
    const bool is_used =
        std::ranges::any_of(report.tensors, [&](const TensorUse& use) { return use.name == name; });
    const bool is_wrong = std::ranges::any_of(
        wrong, [&](const std::string& item) { return item.starts_with(in_quotes(name) + " "); });
    if (!is_used && !is_wrong) unexpected.push_back(in_quotes(name));
  }
  std::string defects;
  const auto add = [&](const char* what, const std::vector<std::string>& items) {
    if (!items.empty()) defects += (defects.empty() ? "" : "; ") + std::string(what) + listed(items, 4);
  };
  add("missing: ", missing);
  add("wrong: ", wrong);
  add("unexpected: ", unexpected);
  VIT_CHECK(defects.empty(), kTensors, defects);
  report.fingerprint = fingerprint(checkpoint.config, report, TensorFile(std::move(contents)));
  return checkpoint;
}

}  // namespace vit::internal
