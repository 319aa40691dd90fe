// Hugging Face's RADIO (model_type "radio"): NVIDIA's C-RADIO under the names that its files have or those of
// release 5's modules. The model normalizes pixels of [0, 1] itself, has several class tokens in front of its
// registers, no last norm, and one large table of which an image takes the part that its longer edge needs.
// Some class tokens side by side are the embedding. Source: transformers, models/radio.
#include <cstdint>
#include <vector>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_radio {
namespace {

constexpr Where kWhere{"hf_radio", ErrorKind::format};
constexpr std::string_view kAnchor = "embeddings.patch_projection.weight";
constexpr std::string_view kFileAnchor = "model.patch_generator.embedder.weight";
constexpr std::string_view kPrefixes[] = {"", "model."}, kFilePrefixes[] = {"radio_model.", ""};
constexpr SizeRange kCounts{0, 1024};

constexpr Row kModules[] = {
    {Part::pixel_mean, "input_conditioner.norm_mean"},
    {Part::pixel_std, "input_conditioner.norm_std"},
    {Part::patch_weight, kAnchor},
    {Part::class_token, "embeddings.cls_register_token", Form::prefix_rows},
    {Part::register_tokens, "embeddings.cls_register_token", Form::prefix_rows},
    {Part::position_table, "embeddings.position_embedding"},
    {Part::norm1_gamma, "encoder.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.o_proj.*"},
    {Part::scale1, "encoder.layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "encoder.layer.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
    {Part::scale2, "encoder.layer.{}.layer_scale2.lambda1"},
};
constexpr Row kGatedModules[] = {
    {Part::gate_weight, "encoder.layer.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.down_proj.*"},
};
constexpr Row kFiles[] = {
    {Part::pixel_mean, "input_conditioner.norm_mean"},
    {Part::pixel_std, "input_conditioner.norm_std"},
    {Part::patch_weight, kFileAnchor},
    {Part::class_token, "model.patch_generator.cls_token.token", Form::prefix_rows},
    {Part::register_tokens, "model.patch_generator.cls_token.token", Form::prefix_rows},
    {Part::position_table, "model.patch_generator.pos_embed"},
    {Part::norm1_gamma, "model.blocks.{}.norm1.*"},
    {Part::qkv_weight, "model.blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "model.blocks.{}.attn.proj.*"},
    {Part::scale1, "model.blocks.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "model.blocks.{}.norm2.*"},
    {Part::fc1_weight, "model.blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "model.blocks.{}.mlp.fc2.*"},
    {Part::scale2, "model.blocks.{}.layer_scale2.lambda1"},
};
constexpr Row kGatedFiles[] = {
    {Part::gate_weight, "model.blocks.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "model.blocks.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "model.blocks.{}.mlp.down_proj.*"},
};
static_assert(is_complete(kModules) && is_complete(kFiles) && is_sound(kGatedModules) &&
              is_sound(kGatedFiles));

constexpr Ignored kIgnored[] = {
    {"summary_idxs", "which class tokens are the embedding; read as numbers"},
    {"embeddings.video_patch_projection.weight",
     "of frames of a clip; images have a projection of their own"},
    {"model.patch_generator.video_embedder.weight",
     "of frames of a clip; images have a projection of their own"},
};

/// The tensor, which transformers reads where the file has it, else the config.
std::vector<std::size_t> read_summary(const SourceFiles& files) {
  std::vector<std::size_t> tokens;
  if (const TensorEntry* const stored = files.find("summary_idxs")) {
    VIT_CHECK(stored->dtype == Dtype::i64 && stored->shape.size() == 1 && stored->num_elements() <= 64 &&
                  stored->strides.empty(),
              kWhere, stored->describe(), " holds no list of numbers of tokens");
    std::vector<std::int64_t> numbers(stored->num_elements());
    stored->bytes.read(0, std::as_writable_bytes(std::span(numbers)));
    for (const std::int64_t number : numbers) {
      VIT_CHECK(number >= 0 && number < 1024, kWhere, stored->describe(), " holds ", number,
                ", which is no class token");
      tokens.push_back(static_cast<std::size_t>(number));
    }
    return tokens;
  }
  return read_blocks(*files.config, "summary_idxs", {0, 1});
}

ModelConfig read_config(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c =
      read_hf_sizes(files, json, {.hidden_size = 1280, .num_layers = 32, .num_heads = 16, .norm_eps = 1e-6});
  c.family = "radio";
  set_hf_mlp(json, c);
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.patch.bias = false;
  c.patch.pixels = PixelRule::stored;
  const std::size_t num_class_tokens = json.find_size("num_cls_tokens", kCounts).value_or(3);
  VIT_CHECK(num_class_tokens != 0, kWhere, json.where(), ": num_cls_tokens must be positive");
  c.tokens.num_registers = num_class_tokens - 1 + json.find_size("num_registers", kCounts).value_or(7);
  c.encoder.layer_scale = files.any_block_has("encoder.layer.{}.layer_scale1.lambda1") ||
                          files.any_block_has("model.blocks.{}.layer_scale1.lambda1") ||
                          json.find_double("layerscale_value").value_or(1.0) != 1.0;
  add_hf_table(c, 0, TableResampling::bilinear);
  const std::size_t edge = json.find_size("max_img_size").value_or(2048) / c.patch.size;
  c.position.added_grid = {edge, edge};
  c.position.reuse = TableReuse::equal_grid;
  c.position.table_grid = TableGrid::square;
  c.encoder.token_norm = false;
  c.head.pooling = Pooling::prefix_tokens;
  c.head.pooled_tokens = read_summary(files);
  for (const std::size_t token : c.head.pooled_tokens)
    VIT_CHECK(token < num_class_tokens, kWhere, json.where(), ": summary_idxs has ", token, " of ",
              num_class_tokens, " class tokens");
  return c;
}

bool has_file_names(const SourceFiles& files) {
  return files.find(kFileAnchor) != nullptr;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files), .layout = {kModules}, .ignored = {kIgnored}};
  const bool gated = out.config.mlp.kind == MlpKind::gated, of_files = has_file_names(files);
  if (of_files) out.layout = {kFiles};
  if (gated && of_files) out.layout.add(kGatedFiles);
  if (gated && !of_files) out.layout.add(kGatedModules);
  out.notes.push_back(
      "the model normalizes pixels of [0, 1] itself; pooled is the summary, some class tokens side by side");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "radio") return std::nullopt;
  auto found = match_anchor(files, kAnchor, kPrefixes);
  if (!found) found = match_anchor(files, kFileAnchor, kFilePrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor ", kAnchor, ", nor ",
            kFilePrefixes[0], kFileAnchor);
  return found;
}

}  // namespace
}  // namespace hf_radio

constinit const Family kHfRadioFamily{.name = "hf_radio",
                                      .anchor = hf_radio::kAnchor,
                                      .other_anchor = hf_radio::kFileAnchor,
                                      .prefixes = hf_radio::kPrefixes,
                                      .library = "",
                                      .match = hf_radio::match,
                                      .read = hf_radio::read};

}  // namespace vit::internal
