// Audio Spectrogram Transformer: a distilled ViT on spectrograms, one plane of mel bins (rows) and frames
// (columns) that the library has the other way round, with patches that overlap. Source: transformers,
// models/audio_spectrogram_transformer.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_ast {
namespace {

constexpr std::string_view kPrefixes[] = {"", "audio_spectrogram_transformer."};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";

constexpr Row kRows[] = {
    at(Place::outside, {Part::pooled_norm_gamma, "classifier.layernorm.*"}),
    at(Place::outside, {Part::head_weight, "classifier.dense.*"}),
};
static_assert(is_sound(kRows));

ModelConfig read_config(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(files, json, {.norm_eps = 1e-12});
  c.family = "ast";
  c.image.height = json.find_size("num_mel_bins", {1, kMaxInputEdge}).value_or(128);
  c.image.width = json.find_size("max_length", {1, kMaxInputEdge}).value_or(1024);
  c.image.num_channels = 1;
  c.image.fixed_size = true;
  c.patch.step = {json.find_size("frequency_stride", {1, 1024}).value_or(10),
                  json.find_size("time_stride", {1, 1024}).value_or(10)};
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.distillation_token = true;
  add_hf_table(c, 2);
  c.head.pooling = Pooling::class_and_distillation;
  c.head.num_classes = count_hf_classes(files, "classifier.dense");
  c.head.labels = read_hf_labels(json, c.head.num_classes);
  c.head.pooled_norm = c.head.num_classes != 0;
  return c;
}

ParsedModel read(const SourceFiles& files) {
  return {.config = read_config(files),
          .layout = {kHfEmbeddings, kHfVitBlocks, kRows},
          .notes = {
              "takes spectrograms, arrays of (1, mel bins, frames): the library's input_values, transposed"}};
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "audio-spectrogram-transformer") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, (Where{"hf_ast", ErrorKind::mismatch}), files.weights_name, ": no tensor ", kAnchor,
            ", with or without the prefix audio_spectrogram_transformer.");
  return found;
}

}  // namespace
}  // namespace hf_ast

constinit const Family kHfAstFamily{.name = "hf_ast",
                                    .anchor = hf_ast::kAnchor,
                                    .prefixes = hf_ast::kPrefixes,
                                    .library = "",
                                    .head = "classifier.dense",
                                    .head_place = Place::outside,
                                    .match = hf_ast::match,
                                    .read = hf_ast::read};

}  // namespace vit::internal
