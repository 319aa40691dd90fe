// The text towers of Chinese CLIP (BERT) and AltCLIP (XLM-RoBERTa) inside the whole models of transformers:
// blocks that normalize their sums, and the first token as the vector of a text. AltCLIP's has a norm and a
// layer before the projection, and its positions follow the row of padding. Source: transformers,
// models/chinese_clip and altclip.
#include "vit/base/check.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_bert_text {
namespace {

constexpr std::string_view kAnchor = "embeddings.word_embeddings.weight";
constexpr std::string_view kPrefixes[] = {"text_model.", "text_model.roberta."};
constexpr SizeRange kCount{1, std::size_t{1} << 26};

constexpr Row kRows[] = {
    {Part::token_table, kAnchor},
    {Part::position_table, "embeddings.position_embeddings.weight"},
    {Part::token_types, "embeddings.token_type_embeddings.weight"},
    {Part::norm_pre_gamma, "embeddings.LayerNorm.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.self.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.self.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.self.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::norm1_gamma, "encoder.layer.{}.attention.output.LayerNorm.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"},
    {Part::fc2_weight, "encoder.layer.{}.output.dense.*"},
    {Part::norm2_gamma, "encoder.layer.{}.output.LayerNorm.*"},
    at(Place::outside, {Part::norm_gamma, "text_model.pre_LN.*"}),
    at(Place::outside, {Part::pooler_weight, "text_model.transformation.*"}),
    at(Place::outside, {Part::projection_weight, "text_projection.weight"}),
};
static_assert(is_sound(kRows));

constexpr Ignored kIgnored[] = {
    {"embeddings.position_ids", "row numbers of the position table"},
    {"embeddings.token_type_ids", "zeros"},
    {"pooler.*", "of a vector that is not compared with images"},
    {"vision_model.*", "image tower", Place::outside},
    {"visual_projection.*", "image tower", Place::outside},
};

void set_altclip(const Json& text, TextConfig& c) {
  c.first_position = text.find_size("pad_token_id", {.max = 1u << 16}).value_or(1) + 1;
  VIT_CHECK(c.context_length > c.first_position, (Where{"hf_bert_text", ErrorKind::format}), text.where(),
            ": max_position_embeddings ", c.context_length, " leaves no positions after padding");
  c.context_length -= c.first_position;
  c.final_norm = true;
  c.pooler_dim = text.find_size("project_dim", kCount).value_or(768);
}

std::optional<ParsedText> read(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  const bool is_altclip = type == "altclip";
  if (!is_altclip && type != "chinese_clip") return std::nullopt;
  const auto match = match_anchor(files, kAnchor, kPrefixes);
  if (!match) return std::nullopt;
  const Json text = hf_tower_part(*files.config, "text");
  const auto size = [&](const char* key, std::size_t of_library) {
    return text.find_size(key, kCount).value_or(of_library);
  };
  TextConfig c{.architecture = hf_architecture(files), .family = type, .library = "transformers"};
  c.vocabulary_size = size("vocab_size", is_altclip ? 250002 : 30522);
  c.context_length = size("max_position_embeddings", is_altclip ? 514 : 512);
  c.width = size("hidden_size", is_altclip ? 1024 : 768);
  c.depth = size("num_hidden_layers", is_altclip ? 24 : 12);
  c.num_heads = size("num_attention_heads", is_altclip ? 16 : 12);
  c.mlp_dim = size("intermediate_size", is_altclip ? 4096 : 3072);
  c.token_types = size("type_vocab_size", is_altclip ? 1 : 2);
  c.norm_eps = static_cast<float>(text.find_double("layer_norm_eps").value_or(is_altclip ? 1e-5 : 1e-12));
  c.activation = read_hf_activation(text, Activation::gelu);
  c.token_norm = c.sum_norm = true;
  c.final_norm = false;
  c.mask = TextMask::padding;
  c.pooling = TextPooling::first;
  if (is_altclip) set_altclip(text, c);
  c.projection_dim = files.config->find_size("projection_dim", kCount).value_or(is_altclip ? 768 : 512);
  c.score = TextScore{.kind = TextScore::Kind::softmax};
  ParsedText out{.config = std::move(c), .match = *match, .layout = {kRows}, .ignored = {kIgnored}};
  out.layout.add(kLogitScale);
  return out;
}

}  // namespace
}  // namespace hf_bert_text

constinit const TextFamily kHfBertTextFamily{.name = "hf_bert_text", .read = hf_bert_text::read};

}  // namespace vit::internal
