#include "vit/towers/forward_request.h"

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

void reserve(Tensor<float>& tensor, bool wanted, const Shape& shape) {
  if (!wanted) {
    tensor = Tensor<float>();
  } else if (!(tensor.shape() == shape) || tensor.empty()) {
    tensor = Tensor<float>(shape);
  }
}

}  // namespace

void check_request(const Request& request, const ModelConfig& config) {
  VIT_CHECK(!request.logits || config.num_classes != 0, kWhere, "logits asked of a model without classifier");
  VIT_CHECK(!request.pooled || config.pooling != Pooling::none, kWhere,
            "a pooled vector asked of a model without pooling");
  VIT_CHECK(!request.projected || config.projection_dim != 0, kWhere,
            "a projected vector asked of a model without projection");
  const auto check_block = [&](std::size_t block) {
    VIT_CHECK(block < config.depth, kWhere, "block ", block, " asked of a model with ", config.depth,
              " blocks (0 to ", config.depth - 1, ")");
  };
  for (const std::size_t block : request.blocks) check_block(block);
  for (const std::size_t block : request.attention) check_block(block);
  for (const AttentionQuery& query : request.attention_queries) check_block(query.block);
  for (const AttentionQuery& query : request.rollout) check_block(query.block);
}

void reserve_outputs(const Request& request, const ModelConfig& config, std::size_t num_images, GridSize grid,
                     Outputs& outputs) {
  const std::size_t num_prefix = config.num_prefix_tokens();
  const std::size_t num_tokens = num_prefix + grid.rows * grid.columns;
  const Shape all_tokens{num_images, num_tokens, config.embed_dim};
  for (const std::vector<AttentionQuery>* list : {&request.attention_queries, &request.rollout}) {
    for (const AttentionQuery& query : *list) {
      VIT_CHECK(query.token < num_tokens, kWhere, "attention of token ", query.token,
                " asked of images with ", num_tokens, " tokens");
    }
  }
  outputs.grid = grid;
  outputs.num_prefix_tokens = num_prefix;
  outputs.blocks.resize(request.blocks.size());
  outputs.attention.resize(request.attention.size());
  for (Tensor<float>& tap : outputs.blocks) reserve(tap, true, all_tokens);
  for (Tensor<float>& tap : outputs.attention)
    reserve(tap, true, {num_images, config.num_heads, num_tokens, num_tokens});
  outputs.attention_queries.resize(request.attention_queries.size());
  for (Tensor<float>& tap : outputs.attention_queries)
    reserve(tap, true, {num_images, config.num_heads, num_tokens});
  outputs.rollout.resize(request.rollout.size());
  for (Tensor<float>& tap : outputs.rollout) reserve(tap, true, {num_images, num_tokens});
  reserve(outputs.embedded, request.embedded, all_tokens);
  reserve(outputs.tokens, request.tokens, all_tokens);
  reserve(outputs.pooled, request.pooled, {num_images, config.embed_dim});
  reserve(outputs.projected, request.projected, {num_images, config.projection_dim});
  reserve(outputs.logits, request.logits, {num_images, config.num_classes});
}

}  // namespace vit::internal
