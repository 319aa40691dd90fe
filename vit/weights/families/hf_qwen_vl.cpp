// The vision towers of Qwen2-VL, Qwen2.5-VL and Qwen2.5-Omni, Qwen3-VL, Qwen3.5, Qwen3-Omni and those built
// like them, by themselves or in the whole model. An image is two equal frames; four neighbors make one
// visual token. Source: transformers, models/qwen2_vl, qwen2_5_vl, qwen2_5_omni, qwen3_vl, qwen3_5,
// qwen3_omni_moe.
#include <algorithm>
#include <cmath>
#include <functional>

#include "vit/base/check.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_qwen_vl {
namespace {

constexpr Where kWhere{"hf_qwen_vl", ErrorKind::format};

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::frames},
    {Part::clip_weight, "patch_embed.proj.weight", Form::frames_apart},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::position_table, "pos_embed.weight"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},  // Qwen2-VL
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::merger_norm_gamma, "merger.ln_q.*"},
    {Part::merger_fc1_weight, "merger.mlp.0.*"},
    {Part::merger_fc2_weight, "merger.mlp.2.*"},
    {Part::deepstack_norm_gamma, "merger_list.{}.ln_q.*"},  // Qwen3-Omni
    {Part::deepstack_fc1_weight, "merger_list.{}.mlp.0.*"},
    {Part::deepstack_fc2_weight, "merger_list.{}.mlp.2.*"},
    at(Place::outside, {Part::merger_projection_weight, "vision_projector.*"}),  // HyperCLOVA X
};
constexpr Row kGatedMlp[] = {
    // Qwen2.5-VL
    {Part::gate_weight, "blocks.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "blocks.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "blocks.{}.mlp.down_proj.*"},
};
constexpr Row kThreeProjections[] = {
    // Qwen2.5-Omni
    joined(Part::qkv_weight, {0, 3}, "blocks.{}.attn.q.*"),
    joined(Part::qkv_weight, {1, 3}, "blocks.{}.attn.k.*"),
    joined(Part::qkv_weight, {2, 3}, "blocks.{}.attn.v.*"),
};
constexpr Row kQwen3Mlp[] = {
    {Part::fc1_weight, "blocks.{}.mlp.linear_fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.linear_fc2.*"},
};
constexpr Row kQwen3Mergers[] = {
    {Part::merger_norm_gamma, "merger.norm.*"},
    {Part::merger_fc1_weight, "merger.linear_fc1.*"},
    {Part::merger_fc2_weight, "merger.linear_fc2.*"},
    {Part::deepstack_norm_gamma, "deepstack_merger_list.{}.norm.*"},
    {Part::deepstack_fc1_weight, "deepstack_merger_list.{}.linear_fc1.*"},
    {Part::deepstack_fc2_weight, "deepstack_merger_list.{}.linear_fc2.*"},
};
static_assert(is_complete(kRows) && is_sound(kGatedMlp) && is_sound(kThreeProjections) &&
              is_sound(kQwen3Mlp) && is_sound(kQwen3Mergers));

enum class Generation { qwen2, qwen2_5, qwen3 };

/// The generation of a model_type, of a whole model or of a tower; nothing for others.
std::optional<Generation> generation_of(const SourceFiles& files) {
  if (has_model_type(files, {"qwen2_vl", "qwen2_vl_vision"})) return Generation::qwen2;
  if (has_model_type(
          files, {"qwen2_5_vl", "qwen2_5_vl_vision", "qwen2_5_omni", "qwen2_5_omni_thinker",
                  "qwen2_5_omni_vision_encoder", "exaone4_5", "exaone4_5_vision", "hyperclovax_vision_v2"}))
    return Generation::qwen2_5;
  if (has_model_type(files, {"qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision", "qwen3_5",
                             "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision", "qwen4_exp",
                             "qwen4_exp_vision", "qwen3_omni_moe", "qwen3_omni_moe_thinker",
                             "qwen3_omni_moe_vision_encoder", "cohere_compass", "cohere_compass_vision"}))
    return Generation::qwen3;
  return std::nullopt;
}

/// Whether a config.json without deepstack_visual_indexes means those of the class.
bool has_deepstack_by_default(const SourceFiles& files) {
  return !has_model_type(files, {"qwen3_5", "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision",
                                 "qwen4_exp", "qwen4_exp_vision"});
}

void set_merger(const Json& json, std::size_t out, ModelConfig& c) {
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size"}, 2);
  fit_to_cells(json, c);
  merger.cells.token_norm = {.kind = c.encoder.norm.kind};
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = merger.cell_width(c.embed_dim), .out_dim = out});
}

ModelConfig read_qwen2(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(files, json, {.activation = Activation::quick_gelu});
  const std::size_t out = find_tower_size(json, {"hidden_size"}, 3584);
  c.embed_dim = find_tower_size(json, {"embed_dim"}, 1280);  // hidden_size is the language model's
  c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) *
                                       json.find_double("mlp_ratio").value_or(4.0));
  c.patch.bias = false;
  set_merger(json, out, c);
  return c;
}

/// Windows of whole cells, with an edge of window_size pixels at most.
void set_windows(const Json& json, ModelConfig& c) {
  const std::size_t pixels = find_tower_size(json, {"window_size"}, 112);
  const std::size_t size = c.merger->cells.size;
  const std::size_t cells = pixels / size / std::max<std::size_t>(c.patch.size, 1);
  VIT_CHECK(cells != 0, kWhere, json.where(), ".window_size is ", pixels, " pixels, less than one cell of ",
            size, " x ", size, " patches of ", c.patch.size);
  WindowConfig& windows = c.attention.windows.emplace();
  windows.size = cells * size;
  windows.global_blocks = read_blocks(json, "fullatt_block_indexes", {7, 15, 23, 31});
  std::erase_if(windows.global_blocks, [&](std::size_t block) { return block >= c.encoder.depth; });
}

ModelConfig read_qwen2_5(const SourceFiles& files, const Json& json) {
  ModelConfig c =
      read_tower(files, json, {.embed_dim = 3584, .mlp_dim = 3420, .activation = Activation::silu});
  if (has_model_type(files, {"exaone4_5", "exaone4_5_vision"}))
    c.attention.num_key_heads = find_tower_size(json, {"num_key_value_heads"}, 8);
  c.encoder.norm.kind = NormKind::rms;
  c.patch.bias = false;
  c.mlp.kind = MlpKind::gated;
  set_merger(json, find_tower_size(json, {"out_hidden_size"}, 3584), c);
  if (has_model_type(files, {"hyperclovax_vision_v2"}))
    c.merger->add(MergerPlace::projection,
                  MergerLinear{.dim = rows_of_tensor(files, "vision_projector.weight", Place::outside,
                                                     text_width(files)),
                               .bias = true});
  set_windows(json, c);
  return c;
}

ModelConfig read_qwen3(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 1152,
                              .depth = 27,
                              .mlp_dim = 4304,
                              .patch_size = 16,
                              .activation = Activation::gelu_tanh});
  set_merger(json, find_tower_size(json, {"out_hidden_size"}, 3584), c);
  const std::size_t rows = find_tower_size(json, {"num_position_embeddings"}, 2304);
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(rows))));
  VIT_CHECK(rows != 0 && edge * edge == rows, kWhere, json.where(),
            ".num_position_embeddings must be a square, found ", rows);
  c.position.added = AddedTable::patches;
  c.position.added_grid = {edge, edge};
  c.position.resampling = TableResampling::bilinear_aligned;
  c.image.height = edge * c.patch.size;
  fit_to_cells(json, c);
  const bool has_default = has_deepstack_by_default(files);
  c.merger->deepstack =
      read_blocks(json, "deepstack_visual_indexes",
                  has_default ? std::vector<std::size_t>{8, 16, 24} : std::vector<std::size_t>());
  // The library numbers its outputs by blocks, its mergers by this list.
  VIT_CHECK(std::ranges::is_sorted(c.merger->deepstack, std::less_equal<>()), kWhere, json.where(),
            ".deepstack_visual_indexes must ascend");
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  const Generation generation = *generation_of(files);
  ModelConfig c = generation == Generation::qwen2     ? read_qwen2(files, json)
                  : generation == Generation::qwen2_5 ? read_qwen2_5(files, json)
                                                      : read_qwen3(files, json);
  c.family = "qwen-vl";
  c.patch.frames = find_tower_size(json, {"temporal_patch_size"}, 2);
  c.image.stack = StackRule::apart;
  add_tower_rope(json, c);
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kWholeModelIgnored}};
  if (generation == Generation::qwen2_5) out.layout.add(kGatedMlp);
  if (generation == Generation::qwen3) out.layout.add(kQwen3Mlp);
  if (generation == Generation::qwen3 && files.find("merger.mlp.0.weight") == nullptr)
    out.layout.add(kQwen3Mergers);
  if (files.any_block_has("blocks.{}.attn.q.weight")) out.layout.add(kThreeProjections);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!generation_of(files)) return std::nullopt;
  return match_tower(files, "patch_embed.proj.weight");
}

}  // namespace
}  // namespace hf_qwen_vl

constinit const Family kHfQwenVlFamily{.name = "hf_qwen_vl",
                                       .anchor = "merger.mlp.0.weight",
                                       .library = "",
                                       .match = hf_qwen_vl::match,
                                       .read = hf_qwen_vl::read};

}  // namespace vit::internal
