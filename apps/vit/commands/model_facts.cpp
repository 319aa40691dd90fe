#include "apps/vit/commands/model_facts.h"

#include <charconv>
#include <string>
#include <utility>

#include "apps/vit/ground/flag_names.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/options/load_model.h"
#include "vit/base/check.h"
#include "vit/checkpoint.h"
#include "vit/config/fields.h"

namespace vit::app {

CheckpointDescription load_model_facts(const CommonOptions& options) {
  const ModelOptions& model_options = options.model_options;
  const Checkpoint checkpoint = options.is_architecture_alone()
                                    ? Checkpoint::random(model_options.architecture, model_options)
                                    : Checkpoint(model_path(options), model_options);
  CheckpointDescription facts = checkpoint.describe();
  if (facts.preprocess) {
    facts.preprocess =
        with_input_size(*facts.preprocess, options.session.input_size, facts.config.edge_multiple());
  }
  return facts;
}

std::optional<Preprocessor> find_preprocessor(const CommonOptions& options) {
  const std::optional<PreprocessConfig> rules = options.is_architecture_alone()
                                                    ? load_model_facts(options).preprocess
                                                    : Checkpoint(model_path(options), options.model_options)
                                                          .preprocess_config(options.session.input_size);
  if (!rules) return std::nullopt;
  return Preprocessor(*rules);
}

namespace {

/// The smallest decimal of a float32.
JsonValue number(float value) {
  char digits[32];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double out = 0.0;
  std::from_chars(digits, end, out);
  return out;
}

JsonValue to_json(const TextConfig& config) {
  JsonValue out{{"vocabulary_size", config.vocabulary_size},
                {"context_length", config.context_length},
                {"width", config.width},
                {"depth", config.depth},
                {"num_heads", config.num_heads},
                {"mlp_dim", config.mlp_dim},
                {"positions", config.sinusoidal_positions ? "sinusoidal" : "learned"},
                {"norm_eps", number(config.norm_eps)},
                {"activation", std::string(internal::enum_name(config.activation))},
                {"qkv_bias", config.qkv_bias},
                {"mask", to_string(config.mask)},
                {"pooling", to_string(config.pooling)}};
  if (config.pooling == TextPooling::end_token) out["end_token"] = config.end_token;
  out["projection_dim"] = config.projection_dim;
  out["embedding_dim"] = config.embedding_dim();
  return out;
}

JsonValue to_json(const Tokenizer& tokenizer) {
  return {{"class", tokenizer.name()},        {"library", to_string(tokenizer.library())},
          {"cleaning", tokenizer.cleaning()}, {"vocabulary_size", tokenizer.vocabulary_size()},
          {"padding", tokenizer.padding()},   {"padding_side", tokenizer.pads_left() ? "left" : "right"}};
}

}  // namespace

std::optional<TextDescription> find_text_facts(const CommonOptions& options) {
  if (options.is_architecture_alone()) return std::nullopt;
  const TextOptions text = text_options(options);
  const ModelOptions opened{.architecture = text.architecture, .prefix = options.model_options.prefix};
  return Checkpoint(model_path(options), opened).describe_text(text);
}

JsonValue to_json(const TextDescription& text) {
  JsonValue out{{"architecture", text.config.architecture},
                {"family", text.config.family},
                {"library", text.config.library},
                {"stored_dtype", text.report.stored_dtype},
                {"parameters", text.report.num_parameters},
                {"config", to_json(text.config)},
                {"score", nullptr},
                {"tokenizer", nullptr}};
  if (const std::optional<TextScore>& score = text.config.score)
    out["score"] = {
        {"kind", to_string(score->kind)}, {"scale", number(score->scale)}, {"bias", number(score->bias)}};
  if (text.tokenizer) {
    out["tokenizer"] = to_json(*text.tokenizer);
  } else {
    out["tokenizer_missing"] = with_flag_names(text.tokenizer_missing);
  }
  return out;
}

}  // namespace vit::app
