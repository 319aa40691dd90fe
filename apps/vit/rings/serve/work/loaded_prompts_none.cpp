// Replacement for builds without prompts or without dense heads: no checkpoint is a model of prompts.
#include "apps/vit/rings/serve/work/loaded_prompts.h"

namespace vit::app {

std::shared_ptr<LoadedPrompts> open_prompts(const CommonOptions& /*common*/) {
  return nullptr;
}

}  // namespace vit::app
