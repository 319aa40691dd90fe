#include "apps/vit/commands/info/model_facts.h"

#include <utility>

namespace vit::app {

CheckpointDescription load_model_facts(const CommonOptions& options) {
  const ModelOptions& model_options = options.model_options;
  CheckpointDescription facts = options.is_architecture_alone()
                                    ? describe_architecture(model_options.architecture, model_options)
                                    : describe_checkpoint(model_path(options), model_options);
  if (facts.preprocess) {
    facts.preprocess =
        with_input_size(*facts.preprocess, options.session.input_size, facts.config.edge_multiple());
  }
  return facts;
}

std::optional<Preprocessor> find_preprocessor(const CommonOptions& options) {
  const std::optional<PreprocessConfig> rules =
      options.is_architecture_alone()
          ? load_model_facts(options).preprocess
          : find_preprocess_config(model_path(options), options.model_options, options.session.input_size);
  if (!rules) return std::nullopt;
  return Preprocessor(*rules);
}

}  // namespace vit::app
