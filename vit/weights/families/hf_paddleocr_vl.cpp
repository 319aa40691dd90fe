// SigLIP's blocks with rotary positions: the vision towers of PaddleOCR-VL, which adds a learned table and
// merges four neighbors, and of VideoLLaMA 3, which does neither for images; bare or inside the whole model.
// Source: transformers, models/paddleocr_vl and video_llama_3.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_paddleocr_vl {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "post_layernorm.*"},
    at(Place::outside, {Part::merger_norm_gamma, "mlp_AR.pre_norm.*"}),
    at(Place::outside, {Part::merger_fc1_weight, "mlp_AR.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "mlp_AR.linear_2.*"}),
};
constexpr Row kVideoLlamaProjector[] = {
    at(Place::outside, {Part::merger_fc1_weight, "projector.readout.0.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "projector.readout.2.*"}),
};
static_assert(is_complete(kRows) && is_sound(kVideoLlamaProjector));

constexpr Ignored kUnused[] = {
    {"head.*", "the library does not use it"},
    {"embeddings.packing_position_embedding.*", "the library does not use it"},
    {"embeddings.position_ids", "row numbers of the position table"},
};

bool is_paddle(const SourceFiles& files) {
  return has_model_type(files, {"paddleocr_vl", "paddleocr_vl_vision"});
}
bool is_video_llama(const SourceFiles& files) {
  return has_model_type(files, {"video_llama_3", "video_llama_3_vision"});
}

/// The grid of the table, of which the image may hold a part of a patch more.
void set_table(ModelConfig& c) {
  PositionConfig& position = c.position;
  position.added = AddedTable::patches;
  position.added_grid = c.native_grid();
  position.resampling = TableResampling::bilinear;
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  const bool paddle = is_paddle(files);
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = paddle ? 1152u : 768u,
                              .depth = paddle ? 27u : 12u,
                              .num_heads = paddle ? 16u : 12u,
                              .mlp_dim = paddle ? 4304u : 3072u,
                              .patch_size = paddle ? 14u : 16u,
                              .image_size = paddle ? 384u : 0u,
                              .activation = Activation::gelu_tanh});
  c.family = "paddleocr-vl";
  c.encoder.norm.eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(1e-6));
  c.encoder.token_norm = true;
  add_tower_rope(json, c);
  VIT_CHECK(c.patch.size != 0, Where("hf_paddleocr_vl", ErrorKind::format), json.where(),
            ".patch_size must not be 0");
  if (paddle) set_table(c);
  if (!is_whole_model(*files.config)) return c;
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = paddle ? find_tower_size(json, {"spatial_merge_size"}, 2) : 1;
  if (paddle) merger.cells.token_norm = {.eps = 1e-5f};
  const char* const last = paddle ? "mlp_AR.linear_2.weight" : "projector.readout.2.weight";
  const std::size_t out_dim = rows_of_tensor(files, last, Place::outside, text_width(files));
  merger.add(MergerPlace::mlp,
             MergerMlp{.hidden_dim = paddle ? merger.cell_width(c.embed_dim) : out_dim, .out_dim = out_dim});
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{
      .config = read_config(files, json), .layout = {kRows}, .ignored = {kUnused, kWholeModelIgnored}};
  if (is_video_llama(files)) out.layout.add(kVideoLlamaProjector);
  if (is_whole_model(*files.config)) fit_to_cells(json, out.config);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!is_paddle(files) && !is_video_llama(files)) return std::nullopt;
  return match_tower(files, "embeddings.patch_embedding.weight");
}

}  // namespace
}  // namespace hf_paddleocr_vl

constinit const Family kHfPaddleOcrVlFamily{.name = "hf_paddleocr_vl",
                                            .anchor = "mlp_AR.linear_1.weight",
                                            .library = "",
                                            .match = hf_paddleocr_vl::match,
                                            .read = hf_paddleocr_vl::read};

}  // namespace vit::internal
