// What a request means to a model: whether it can be met, and which outputs it needs. Running it is
// vision_transformer.h. Letters: B images, T tokens, C = embed_dim.
#pragma once

#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::internal {

/// Throws Error if the model has not what is asked for.
void check_request(const Request& request, const ModelConfig& config);

/// Whether all tokens are asked for, so that no block can leave some out.
inline bool needs_all_tokens(const Request& request) {
  return request.tokens || !request.blocks.empty() || !request.attention.empty() ||
         !request.attention_queries.empty() || !request.rollout.empty();
}

/// Gives `outputs` the tensors of the request for B images; those that have their shape keep their memory.
/// Throws Error if a query is none of the tokens.
void reserve_outputs(const Request& request, const ModelConfig& config, std::size_t num_images, GridSize grid,
                     Outputs& outputs);

}  // namespace vit::internal
