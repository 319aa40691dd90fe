#include "apps/vit/options/features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::string_view kBlockPrefix = "block.", kAttentionPrefix = "attention.";
constexpr std::array<std::pair<std::string_view, FeatureKind>, 6> kNames{
    {{"pooled", FeatureKind::pooled},
     {"projected", FeatureKind::projected},
     {"cls", FeatureKind::cls},
     {"patches", FeatureKind::patches},
     {"tokens", FeatureKind::tokens},
     {"logits", FeatureKind::logits}}};

/// block.K or attention.K with K from the front or, negative, from the end.
Feature parse_block(std::string_view name, std::string_view prefix, FeatureKind kind, std::size_t depth) {
  const std::string_view digits = name.substr(prefix.size());
  long long number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    fail_usage("--features: '", printable(name), "' is no feature: ", prefix, "K takes an integer");
  }
  const auto blocks = static_cast<long long>(depth);
  const long long resolved = number < 0 ? number + blocks : number;
  if (resolved < 0 || resolved >= blocks) {
    fail_usage("--features: ", name, ": the model has ", depth, " blocks, ", prefix, "0 to ", prefix,
               depth - 1, " (or ", prefix, "-1 to ", prefix, "-", depth, ")");
  }
  return {.kind = kind, .block = static_cast<std::size_t>(resolved), .name = text(prefix, resolved)};
}

Feature parse_feature(std::string_view name, std::size_t depth) {
  for (const auto& [known, kind] : kNames) {
    if (name == known) return {.kind = kind, .name = std::string(name)};
  }
  if (name.starts_with(kBlockPrefix)) return parse_block(name, kBlockPrefix, FeatureKind::block, depth);
  if (name.starts_with(kAttentionPrefix))
    return parse_block(name, kAttentionPrefix, FeatureKind::attention, depth);
  fail_usage(
      "--features: '", printable(name),
      "' is no feature; there are pooled, projected, cls, patches, tokens, block.K, attention.K and logits");
}

void require(bool has, std::string_view name, std::string_view lack) {
  if (!has) fail_usage("--features: ", name, ": this model has no ", lack);
}

/// Adds what `feature` needs to the request; a model that lacks it is a usage error.
void request_feature(Feature& feature, const ModelConfig& config, Request& request) {
  switch (feature.kind) {
    case FeatureKind::pooled:
      require(config.pooling != Pooling::none, feature.name, "pooled vector; ask for cls, patches or tokens");
      request.pooled = true;
      break;
    case FeatureKind::projected:
      require(config.projection_dim > 0, feature.name, "projection to a joint space; ask for pooled");
      request.projected = true;
      break;
    case FeatureKind::cls:
      require(config.class_token, feature.name, "class token; ask for pooled or patches");
      request.tokens = true;
      break;
    case FeatureKind::patches:
    case FeatureKind::tokens: request.tokens = true; break;
    case FeatureKind::block:
      feature.request_slot = request.blocks.size();
      request.blocks.push_back(feature.block);
      break;
    case FeatureKind::attention:
      feature.request_slot = request.attention.size();
      request.attention.push_back(feature.block);
      break;
    case FeatureKind::logits:
      require(config.num_classes > 0, feature.name, "classifier");
      request.logits = true;
      break;
  }
}

ResultArray vector_array(std::span<const float> numbers) {
  return {.dtype = internal::Dtype::f32, .shape = {numbers.size()}, .data = numbers.data()};
}

}  // namespace

std::vector<std::string> FeatureList::names() const {
  std::vector<std::string> out;
  for (const Feature& feature : features) out.push_back(feature.name);
  return out;
}

std::vector<ResultArray> FeatureList::arrays(const ImageOutputs& outputs) const {
  std::vector<ResultArray> out;
  for (const Feature& feature : features) {
    switch (feature.kind) {
      case FeatureKind::pooled: out.push_back(vector_array(outputs.pooled())); break;
      case FeatureKind::projected: out.push_back(vector_array(outputs.projected())); break;
      case FeatureKind::cls: out.push_back(vector_array(outputs.class_token())); break;
      case FeatureKind::patches: out.push_back(ResultArray::of(outputs.patches())); break;
      case FeatureKind::tokens: out.push_back(ResultArray::of(outputs.tokens())); break;
      case FeatureKind::block: out.push_back(ResultArray::of(outputs.block(feature.request_slot))); break;
      case FeatureKind::attention:
        out.push_back(ResultArray::of(outputs.attention(feature.request_slot)));
        break;
      case FeatureKind::logits: out.push_back(vector_array(outputs.logits())); break;
    }
  }
  return out;
}

FeatureList parse_features(std::string_view list, const ModelConfig& config) {
  FeatureList out;
  if (list.empty()) list = config.projection_dim > 0 ? "projected" : "pooled";
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    Feature feature = parse_feature(list.substr(0, comma), config.depth);
    const auto is_same = [&](const Feature& other) { return other.name == feature.name; };
    if (std::none_of(out.features.begin(), out.features.end(), is_same)) {
      request_feature(feature, config, out.request);
      out.features.push_back(std::move(feature));
    }
    if (comma == list.size()) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace vit::app
