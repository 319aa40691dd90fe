// torchvision's VisionTransformer, whose in-projection is that of torch.nn.MultiheadAttention. Source:
// pytorch/vision, torchvision/models/vision_transformer.py.
#include <utility>

#include "vit/weights/families/published.h"

namespace vit::internal {
namespace torchvision_vit {
namespace {

constexpr std::string_view kAnchor = "conv_proj.weight";
constexpr std::string_view kPrefixes[] = {""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::patch_bias, "conv_proj.bias"},
    {Part::class_token, "class_token"},
    {Part::position_table, "encoder.pos_embedding"},
    {Part::norm1_gamma, "encoder.layers.encoder_layer_{}.ln_1.*"},
    {Part::qkv_weight, "encoder.layers.encoder_layer_{}.self_attention.in_proj_*"},
    {Part::proj_weight, "encoder.layers.encoder_layer_{}.self_attention.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.encoder_layer_{}.ln_2.*"},
    {Part::fc1_weight, "encoder.layers.encoder_layer_{}.mlp.0.*"},
    {Part::fc2_weight, "encoder.layers.encoder_layer_{}.mlp.3.*"},
    {Part::norm_gamma, "encoder.ln.*"},
    {Part::head_weight, "heads.head.*"},
};
static_assert(is_complete(kRows));

/// Up to release 0.13 the layers of the MLP had names.
constexpr Row kNamedMlp[] = {{Part::fc1_weight, "encoder.layers.encoder_layer_{}.mlp.linear_1.*"},
                             {Part::fc2_weight, "encoder.layers.encoder_layer_{}.mlp.linear_2.*"}};
constexpr Row kPreLogits[] = {{Part::pooler_weight, "heads.pre_logits.*"}};
static_assert(is_sound(kNamedMlp) && is_sound(kPreLogits));

Layout layout_of(const SourceFiles& files) {
  Layout layout = {kRows};
  if (files.any_block_has("encoder.layers.encoder_layer_{}.mlp.linear_1.weight")) layout.add(kNamedMlp);
  if (files.find("heads.pre_logits.weight") != nullptr) layout.add(kPreLogits);
  return layout;
}

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  Layout layout = layout_of(files);
  Published model =
      read_published(files, architecture, stored_args(files, architecture, layout), "torchvision");
  model.config.image.fixed_size = true;  // the original asserts its size
  model.config.head.pooler = files.find("heads.pre_logits.weight") != nullptr;
  return finish(files, architecture, std::move(model), std::move(layout), {});
}

std::optional<Match> match(const SourceFiles& files) {
  return files.has_weights ? match_anchor(files, kAnchor, kPrefixes) : std::nullopt;
}

}  // namespace
}  // namespace torchvision_vit

constinit const Family kTorchvisionFamily{.name = "torchvision",
                                          .anchor = torchvision_vit::kAnchor,
                                          .prefixes = torchvision_vit::kPrefixes,
                                          .library = "torchvision",
                                          .head = "heads.head",
                                          .match = torchvision_vit::match,
                                          .read_as = torchvision_vit::read_as};

}  // namespace vit::internal
