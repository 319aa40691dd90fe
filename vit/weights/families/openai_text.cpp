// The text towers of bare files under the names of OpenAI's CLIP code: OpenAI's own, known by integers next
// to the weights, and Meta's Perception Encoder, whose name gives the heads. Source: openai/CLIP,
// clip/model.py; facebookresearch/perception_models, core/vision_encoder/pe.py and config.py.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/openai_clip.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace openai_text {
namespace {

constexpr Row kRows[] = {
    {Part::token_table, "token_embedding.weight"},
    {Part::position_table, "positional_embedding"},
    {Part::norm1_gamma, "transformer.resblocks.{}.ln_1.*"},
    {Part::qkv_weight, "transformer.resblocks.{}.attn.in_proj_*"},
    {Part::proj_weight, "transformer.resblocks.{}.attn.out_proj.*"},
    {Part::norm2_gamma, "transformer.resblocks.{}.ln_2.*"},
    {Part::fc1_weight, "transformer.resblocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "transformer.resblocks.{}.mlp.c_proj.*"},
    {Part::norm_gamma, "ln_final.*"},
    {Part::projection_weight, "text_projection", Form::transposed},
};
static_assert(is_sound(kRows));

constexpr Ignored kIgnored[] = {
    {"visual.*", "image tower"},
    {"visual.*", "image tower", Place::outside},
    {"attn_mask", "the causal mask"},
    {"input_resolution", "the size of images"},
    {"context_length", "the tables determine it"},
    {"vocab_size", "the tables determine it"},
};

constexpr std::string_view kPrefixes[] = {"", "text."};

/// Heads that Meta's code gives to the text towers, whatever their width.
std::size_t pe_heads(std::string_view name) {
  if (name.starts_with("PE-Core-T") || name.starts_with("PE-Core-S")) return 8;
  return name.starts_with("PE-Core-G") ? 20 : 16;
}

std::size_t dim(const TensorEntry* entry, std::size_t index) {
  return entry != nullptr && entry->shape.size() == 2 ? entry->shape[index] : 0;
}

/// Sizes that the tensors have; zero where they are missing or misshaped.
void read_sizes(const SourceFiles& files, TextConfig& c) {
  const TensorEntry* const table = files.find("token_embedding.weight");
  c.vocabulary_size = dim(table, 0);
  c.width = dim(table, 1);
  c.context_length = dim(files.find("positional_embedding"), 0);
  c.depth = files.count_blocks("transformer.resblocks.");
  c.mlp_dim = dim(files.find("transformer.resblocks.0.mlp.c_fc.weight"), 0);
  c.projection_dim = dim(files.find("text_projection"), 1);
}

ParsedText reading_of(TextConfig config, const Match& match, std::vector<std::string> notes = {}) {
  return {.config = std::move(config),
          .match = match,
          .layout = openai_text_layout(),
          .ignored = {kIgnored},
          .notes = std::move(notes)};
}

std::optional<ParsedText> read(const SourceFiles& files) {
  const auto match = match_anchor(files, "token_embedding.weight", kPrefixes);
  if (!match) return std::nullopt;
  SourceFiles seen{.tensors = files.tensors,
                   .options = files.options,
                   .config = files.config,
                   .weights_name = files.weights_name,
                   .match = *match};
  if (seen.find("positional_embedding") == nullptr) return std::nullopt;
  TextConfig c;
  c.family = "clip";
  c.score = {.kind = TextScore::Kind::softmax};
  read_sizes(seen, c);
  c.num_heads = std::max<std::size_t>(c.width / 64, 1);
  const std::string name = architecture_name(files);
  const Architecture* const known = name.empty() ? nullptr : find_known_architecture(name);
  c.architecture = known != nullptr ? std::string(known->name) : name;
  if (is_openai_state(files.tensors)) {
    c.library = "OpenAI";
    c.activation = Activation::quick_gelu;
    return reading_of(std::move(c), *match);
  }
  VIT_CHECK(known != nullptr, (Where{"load_checkpoint", ErrorKind::argument}), files.weights_name,
            ": the tensors do not determine the heads and the activation of its text tower, and there is no "
            "configuration that does; give ModelOptions::architecture");
  c.library = known->library;
  if (known->family != "pe") {
    c.activation = known->args.activation;
    return reading_of(
        std::move(c), *match,
        {"text tower: heads of 64 channels, as in all published ones, and the activation of the "
         "image tower"});
  }
  c.family = "pe";
  c.num_heads = pe_heads(known->name);
  return reading_of(std::move(c), *match);
}

}  // namespace
}  // namespace openai_text

const std::span<const Ignored> kOpenAiTextIgnored = openai_text::kIgnored;

Layout openai_text_layout() {
  Layout layout = {openai_text::kRows};
  layout.add(kLogitScale);
  return layout;
}

constinit const TextFamily kOpenAiTextFamily{.name = "openai_text", .read = openai_text::read};

}  // namespace vit::internal
