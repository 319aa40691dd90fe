// Files under the names of OpenAI's CLIP code: CLIP, OpenCLIP, and Meta's Perception Encoder, which grew out
// of it. The text tower is not read here. Source: openai/CLIP, clip/model.py;
// facebookresearch/perception_models, core/vision_encoder/pe.py and rope.py.
#include "vit/weights/families/openai_clip.h"

#include <algorithm>
#include <utility>

#include "vit/weights/families/family.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace openai_clip {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "conv1.weight", Form::convolution},
    {Part::patch_bias, "conv1.bias"},
    {Part::class_token, "class_embedding"},
    {Part::position_table, "positional_embedding"},
    {Part::norm_pre_gamma, "ln_pre.*"},
    {Part::norm1_gamma, "transformer.resblocks.{}.ln_1.*"},
    {Part::qkv_weight, "transformer.resblocks.{}.attn.in_proj_*"},
    {Part::proj_weight, "transformer.resblocks.{}.attn.out_proj.*"},
    {Part::scale1, "transformer.resblocks.{}.ls_1.gamma"},
    {Part::norm2_gamma, "transformer.resblocks.{}.ln_2.*"},
    {Part::fc1_weight, "transformer.resblocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "transformer.resblocks.{}.mlp.c_proj.*"},
    {Part::scale2, "transformer.resblocks.{}.ls_2.gamma"},
    {Part::norm_gamma, "ln_post.*"},  // on the tokens, or on what was pooled
    {Part::pooled_norm_gamma, "ln_post.*"},
    {Part::pool_probe, "attn_pool.probe"},
    cut(Part::pool_q_weight, "attn_pool.attn.in_proj_*", {0, 3}),
    joined(Part::pool_kv_weight, {0, 2}, "attn_pool.attn.in_proj_weight", {1, 3}),
    joined(Part::pool_kv_weight, {1, 2}, "attn_pool.attn.in_proj_weight", {2, 3}),
    joined(Part::pool_kv_bias, {0, 2}, "attn_pool.attn.in_proj_bias", {1, 3}),
    joined(Part::pool_kv_bias, {1, 2}, "attn_pool.attn.in_proj_bias", {2, 3}),
    {Part::pool_proj_weight, "attn_pool.attn.out_proj.*"},
    {Part::pool_norm_gamma, "attn_pool.layernorm.*"},
    {Part::pool_fc1_weight, "attn_pool.mlp.c_fc.*"},
    {Part::pool_fc2_weight, "attn_pool.mlp.c_proj.*"},
    {Part::projection_weight, "proj", Form::transposed},
    {Part::head_weight, "proj", Form::transposed},  // timm calls the projection a classifier
    {Part::head_bias, ""},
};
static_assert(is_complete(kRows));

constexpr Ignored kIntegers[] = {
    {"input_resolution", "the position table determines it", Place::outside},
    {"context_length", "of the text tower", Place::outside},
    {"vocab_size", "of the text tower", Place::outside},
};

constexpr std::string_view kPrefixes[] = {"visual.", ""};
constexpr std::string_view kOwnKeys[] = {"rules"};

/// `proj` (C, E) is applied as x @ proj: timm's classifier, transposed and without bias.
std::size_t projection_width(const SourceFiles& files) {
  const TensorEntry* const proj = files.find("proj");
  return proj != nullptr && proj->shape.size() == 2 ? proj->shape[1] : 0;
}

ParsedModel read_kind(const SourceFiles& files, const Architecture& architecture, bool is_clip,
                      std::size_t head_width = 0) {
  TimmArgs stored = stored_args(files, architecture, {kRows});
  if (head_width != 0) stored.num_heads = std::max<std::size_t>(stored.embed_dim / head_width, 1);
  const std::size_t width = projection_width(files);
  stored.num_classes =
      width != 0 ? width : architecture.args.num_classes;  // who projects must have the tensor
  Published model = read_published(files, architecture, stored, is_clip ? "OpenAI" : "Meta", kOwnKeys);
  ModelConfig& config = model.config;
  if (config.head.num_classes != 0) config.head.projection = {.dim = config.head.num_classes};
  if (is_clip)
    config.patch.bias = files.find("conv1.bias") != nullptr;  // OpenCLIP's have none, with or without ln_pre
  std::vector<std::string> notes;
  if (is_clip) {  // takes one size only
    notes = {"logits and projected are the same embedding; timm calls the projection a classifier",
             "other sizes: the original has no rule, timm's is used (table bicubic with antialias)"};
  } else {
    if (!follows_timm(files)) {
      if (config.position.rope != RopeKind::none) {
        config.position.coordinates = CoordinateRule::index;  // raw indices beyond the native grid too
        config.position.resampling = TableResampling::bilinear;
      }
      notes.push_back(
          "other sizes: raw patch indices and a bilinear table, as Meta's code has it; overrides[\"rules\"] "
          "= \"timm\" chooses timm's way");
    }
    if (width != 0)
      notes.push_back("logits and projected are the same embedding; timm calls the projection a classifier");
  }
  return finish(files, architecture, std::move(model), {kRows}, {kIntegers}, std::move(notes));
}

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  const Architecture* const named = find_known_architecture(architecture_name(files));
  // the architecture's name says which of the two; rotation leaves no tensors
  return read_kind(files, architecture, named != nullptr && named->family == "clip");
}

std::optional<Match> match(const SourceFiles& files) {
  if (!files.has_weights) return std::nullopt;
  const auto found = match_anchor(files, "conv1.weight", kPrefixes);
  if (!found) return std::nullopt;
  // the other kind of model with a conv1 is a ResNet
  const SourceFiles seen{.tensors = files.tensors, .options = files.options, .match = *found};
  return seen.count_blocks("transformer.resblocks.") != 0 ? found : std::nullopt;
}

/// OpenAI's own files need no name: integers next to the weights identify them, and heads are 64 wide.
std::optional<Match> match_own(const SourceFiles& files) {
  return architecture_name(files).empty() && is_openai_state(files.tensors) ? match(files) : std::nullopt;
}

ParsedModel read_own(const SourceFiles& files) {
  const TensorEntry* const conv = files.find("conv1.weight");
  const std::size_t patch = conv->shape.size() == 4 ? conv->shape[2] : 0;
  const char* const name = patch == 16   ? "vit_base_patch16_clip_quickgelu_224"
                           : patch == 14 ? "vit_large_patch14_clip_quickgelu_224"
                                         : "vit_base_patch32_clip_quickgelu_224";
  return read_kind(files, find_architecture(name), /*is_clip=*/true, /*head_width=*/64);
}

}  // namespace
}  // namespace openai_clip

bool is_openai_state(const TensorFile& tensors) {
  return tensors.find("input_resolution") != nullptr && tensors.find("context_length") != nullptr &&
         tensors.find("vocab_size") != nullptr;
}

Layout openai_layout() {
  return {openai_clip::kRows};
}

constinit const Family kOpenAiOwnFamily{.name = "openai",
                                        .anchor = "conv1.weight",
                                        .prefixes = openai_clip::kPrefixes,
                                        .library = "",
                                        .match = openai_clip::match_own,
                                        .read = openai_clip::read_own};
constinit const Family kOpenAiFamily{.name = "openai_names",
                                     .anchor = "conv1.weight",
                                     .prefixes = openai_clip::kPrefixes,
                                     .library = "Meta",
                                     .match = openai_clip::match,
                                     .read_as = openai_clip::read_as};

}  // namespace vit::internal
