// dino.txt's text tower: CLIP's with a projection without bias and qkv without bias. Meta publishes it with
// the blocks that go on top of DINOv3's image tower, in a file of its own. Source: facebookresearch/dinov3,
// dinov3/eval/text/text_transformer.py and text_tower.py, dinov3/hub/dinotxt.py.
#include <charconv>

#include "vit/weights/families/family.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace dino_text {
namespace {

constexpr std::string_view kPrefixes[] = {"text_model.backbone."};

constexpr Row kRows[] = {
    {Part::token_table, "token_embedding.weight"},
    {Part::position_table, "positional_embedding"},
    {Part::norm1_gamma, "blocks.{}.attention_norm.*"},
    {Part::qkv_weight, "blocks.{}.attention.qkv.weight"},
    {Part::proj_weight, "blocks.{}.attention.proj.*"},
    {Part::norm2_gamma, "blocks.{}.ffn_norm.*"},
    {Part::fc1_weight, "blocks.{}.feed_forward.fc1.*"},
    {Part::fc2_weight, "blocks.{}.feed_forward.fc2.*"},
    {Part::norm_gamma, "ln_final.*"},
    at(Place::outside, {Part::projection_weight, "text_model.head.linear_projection.weight"}),
};
static_assert(is_sound(kRows));

constexpr Ignored kIgnored[] = {
    {"visual_model.*", "image tower", Place::outside},   {"patch_embed.*", "image tower", Place::outside},
    {"blocks.*", "image tower", Place::outside},         {"norm.*", "image tower", Place::outside},
    {"local_cls_norm.*", "image tower", Place::outside}, {"rope_embed.*", "image tower", Place::outside},
    {"cls_token", "image tower", Place::outside},        {"storage_tokens", "image tower", Place::outside},
    {"mask_token", "image tower", Place::outside},
};

/// The heads in a name such as dinov3_vitl16_dinotxt_tet1280d20h24l; those of the published one where it
/// says none.
std::size_t heads_of(std::string_view name) {
  std::size_t heads = 20;
  const std::size_t at = name.find("_tet");
  const std::size_t d = at == name.npos ? name.npos : name.find('d', at + 4);
  if (d != name.npos) std::from_chars(name.data() + d + 1, name.data() + name.size(), heads);
  return heads;
}

std::size_t dim(const TensorEntry* entry, std::size_t index) {
  return entry != nullptr && entry->shape.size() == 2 ? entry->shape[index] : 0;
}

std::optional<ParsedText> read(const SourceFiles& files) {
  const auto match = match_anchor(files, "token_embedding.weight", kPrefixes);
  if (!match) return std::nullopt;
  const SourceFiles seen{.tensors = files.tensors, .options = files.options, .match = *match};
  TextConfig c;
  c.architecture = architecture_name(files);
  c.family = "dinotxt";
  c.library = "Meta";
  const TensorEntry* const table = seen.find("token_embedding.weight");
  c.vocabulary_size = dim(table, 0);
  c.width = dim(table, 1);
  c.context_length = dim(seen.find("positional_embedding"), 0);
  c.depth = seen.count_blocks("blocks.");
  c.num_heads = heads_of(c.architecture);
  c.mlp_dim = dim(seen.find("blocks.0.feed_forward.fc1.weight"), 0);
  c.qkv_bias = false;
  c.projection_dim = dim(seen.find("text_model.head.linear_projection.weight", Place::outside), 0);
  c.score = {.kind = TextScore::Kind::softmax};
  Layout layout = {kRows};
  layout.add(kLogitScale);
  return ParsedText{
      .config = std::move(c), .match = *match, .layout = std::move(layout), .ignored = {kIgnored}};
}

}  // namespace
}  // namespace dino_text

constinit const TextFamily kDinoTextFamily{.name = "dino_text", .read = dino_text::read};

}  // namespace vit::internal
