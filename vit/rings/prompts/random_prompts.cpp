// Models of prompts with random weights, of the published size.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "vit/base/check.h"
#include "vit/rings/prompts/prompt_parts.h"
#include "vit/weights/checkpoint/own_checkpoint.h"
#include "vit/weights/text_tower_weights.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kRandomWhere{"PromptModel::random", ErrorKind::argument};
constexpr std::size_t kRandomWords = 1024;  // rows of the token table, of which the last two are no words

/// The published text tower, with a small token table: that of a checkpoint stays in its file.
TextConfig random_text_config(const PromptConfig& config) {
  TextConfig out;
  out.family = config.family;
  out.vocabulary_size = kRandomWords;
  out.context_length = 32;
  out.width = 1024;
  out.depth = 24;
  out.num_heads = 16;
  out.mlp_dim = 4096;
  out.activation = Activation::gelu;
  out.pooling = TextPooling::none;
  out.projection_dim = config.dim;
  out.projection_bias = true;
  return out;
}

/// What sums over: the inputs of a linear map or convolution; transposed convolutions store theirs first.
std::size_t inputs_of(const std::string& name, const Shape& shape) {
  const bool is_transposed =
      name.find(".up.") != std::string::npos || name.ends_with("up1.weight") || name.ends_with("up2.weight");
  return is_transposed ? shape[0] : shape.num_elements() / shape[0];
}

bool is_gain(const std::string& name, const Shape& shape) {
  return shape.rank() == 1 && name.ends_with(".weight");
}

TextTransformer random_text(PromptParts& parts, Precision precision, unsigned& seed) {
  const TextConfig config = random_text_config(parts.config);
  TextTowerWeights weights;
  for_each_tensor(config, weights, [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
    tensor = random_tensor(shape, part_name(id.part).ends_with("gamma"), shape.last(), seed++);
    parts.num_text_parameters += shape.num_elements();
  });
  parts.word_rows = weights.token_table.load();
  TensorEntry entry;
  entry.dtype = Dtype::f32;
  entry.dtype_name = "F32";
  entry.shape = {kRandomWords, config.width};
  entry.bytes = StoredBytes(std::as_bytes(std::span(std::as_const(parts.word_rows).flat())));
  weights.token_table = WeightTensor(parts.word_rows.shape(), {}, &entry);
  return {config, weights, *parts.kernels, precision};
}

}  // namespace

std::shared_ptr<const PromptModel> PromptModel::random(const std::string& architecture,
                                                       const ModelOptions& options) {
  VIT_CHECK(architecture == "sam3", kRandomWhere, "there is no model of prompts '", architecture,
            "'; there is sam3");
  auto parts = std::make_unique<PromptParts>();
  parts->kernels = &kernels::find_kernels(options.kernels);
  parts->image = Model::random(architecture, options);
  parts->config.family = architecture;
  parts->config.clicks = ClickConfig{};
  parts->report.path = architecture;
  parts->report.stored_dtype = "none (random weights)";
  unsigned seed = 1'000'000;  // beyond those of the image tower
  parts->text.emplace(random_text(*parts, options.precision, seed));
  PromptWeights weights;
  for_each_tensor(parts->config, weights,
                  [&](const std::string& name, const Shape& shape, WeightTensor& tensor) {
                    tensor = random_tensor(shape, is_gain(name, shape), inputs_of(name, shape), seed++);
                    parts->report.num_parameters += shape.num_elements();
                  });
  parts->detector.emplace(parts->config, weights, *parts->kernels, options.precision);
  parts->clicks.emplace(build_click_decoder(parts->config, weights, *parts->kernels, options.precision));
  return PromptParts::share(std::move(parts));
}

namespace internal {

TokenRow tokens_of_words(std::string_view phrase, const TextConfig& config) {
  const auto first = static_cast<std::int32_t>(config.vocabulary_size - 2), last = first + 1;
  TokenRow out{.ids = {first}};
  while (!phrase.empty()) {
    const std::string_view word = phrase.substr(0, phrase.find(' '));
    phrase.remove_prefix(std::min(word.size() + 1, phrase.size()));
    std::uint32_t hash = 2166136261u;  // FNV-1a
    for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    if (!word.empty()) out.ids.push_back(static_cast<std::int32_t>(hash % static_cast<std::uint32_t>(first)));
  }
  out.cut = out.ids.size() + 1 > config.context_length;
  out.ids.resize(std::min(out.ids.size(), config.context_length - 1));
  out.ids.push_back(last);
  out.count = out.ids.size();
  out.ids.resize(config.context_length, last);
  return out;
}

}  // namespace internal
}  // namespace vit
