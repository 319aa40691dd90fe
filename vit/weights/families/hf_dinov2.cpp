// Hugging Face's DINOv2, plain or gated, with or without registers, bare or with a classifier that reads
// class token and mean of patches, or the tower of RF-DETR. Blocks have the published names or those of
// release 5's modules. Source: transformers, models/dinov2 and dinov2_with_registers.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_dinov2 {
namespace {

constexpr Where kWhere{"hf_dinov2", ErrorKind::format};
constexpr std::string_view kPrefixes[] = {"", "dinov2.", "dinov2_with_registers.", "backbone.",
                                          "backbone.0.encoder.encoder."};

constexpr Row kRows[] = {
    {Part::norm1_gamma, "encoder.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::scale1, "encoder.layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "encoder.layer.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
    {Part::scale2, "encoder.layer.{}.layer_scale2.lambda1"},
    {Part::norm_gamma, "layernorm.*"},
    at(Place::outside, {Part::head_weight, "classifier.*"}),
};
constexpr Row kGated[] = {
    cut(Part::gate_weight, "encoder.layer.{}.mlp.weights_in.*", {0, 2}),
    cut(Part::fc1_weight, "encoder.layer.{}.mlp.weights_in.*", {1, 2}),
    {Part::fc2_weight, "encoder.layer.{}.mlp.weights_out.*"},
};
constexpr Row kModules[] = {
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.o_proj.*"},
};
constexpr Row kGatedModules[] = {
    {Part::gate_weight, "encoder.layer.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.down_proj.*"},
};
static_assert(is_sound(kRows) && is_sound(kGated) && is_sound(kModules) && is_sound(kGatedModules));

constexpr Ignored kIgnored[] = {{"embeddings.mask_token", "used in training only"}};

/// RF-DETR's tower: blocks attend in windows of equal size, where config.json does not list them those before
/// the last stage that the head reads whose number is that of no such stage; the native image is one of whole
/// windows.
void set_windows(const Json& json, ModelConfig& c) {
  c.head.pooling = Pooling::none;
  const std::size_t per_side = json.find_size("num_windows", {1, 64}).value_or(4);
  if (per_side == 1) return;
  const std::vector<std::size_t> stages = read_blocks(json, "out_indices", {c.encoder.depth});
  VIT_CHECK(!stages.empty(), kWhere, json.where(), ".out_indices is empty");
  std::vector<std::size_t> windowed;
  for (std::size_t block = 0; block < *std::ranges::max_element(stages); ++block) {
    if (std::ranges::find(stages, block) == stages.end()) windowed.push_back(block);
  }
  windowed = read_blocks(json, "window_block_indexes", std::move(windowed));
  WindowConfig windows{.per_side = per_side, .class_tokens = true};
  windows.global_blocks = other_blocks(windowed, c.encoder.depth);
  c.attention.windows = std::move(windows);
  const std::size_t unit = c.edge_multiple();
  c.image.height = std::max(unit, c.image.height / unit * unit);
  c.image.width = std::max(unit, c.image.width / unit * unit);
}

ModelConfig read_config(const SourceFiles& files, bool registers) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(files, json, {.patch_size = registers ? 16u : 14u, .norm_eps = 1e-6});
  c.family = "dinov2";
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  if (registers) c.tokens.num_registers = json.find_size("num_register_tokens").value_or(4);
  c.encoder.layer_scale = true;
  set_hf_mlp(json, c);
  // registers come after the table was added and have no row in it
  const bool antialias = registers || hf_model_type(files) == "rf_detr_dinov2";
  add_hf_table(c, 1, antialias ? TableResampling::bicubic_antialias : TableResampling::bicubic);
  if (hf_model_type(files) == "rf_detr_dinov2") {
    set_windows(json, c);
    return c;
  }
  c.head.num_classes = count_hf_classes(files, "classifier");
  c.head.labels = read_hf_labels(json, c.head.num_classes);
  c.head.input = HeadInput::class_and_patch_mean;
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const bool registers = hf_model_type(files) == "dinov2_with_registers";
  ParsedModel out{
      .config = read_config(files, registers), .layout = {kHfEmbeddings, kRows}, .ignored = {kIgnored}};
  const bool gated = out.config.mlp.kind == MlpKind::gated, modules = has_module_names(files);
  if (modules) out.layout.add(kModules);
  // RF-DETR's files have the published names of attention and those of modules of the MLP
  const bool gated_modules = files.any_block_has("encoder.layer.{}.mlp.gate_proj.weight");
  if (gated && gated_modules) out.layout.add(kGatedModules);
  if (gated && !gated_modules) out.layout.add(kGated);
  if (hf_model_type(files) == "dinov2") {
    out.notes.push_back(
        "other sizes: the learned table is resampled to the exact size, as transformers does today (its "
        "first releases and Meta shift the scale by 0.1)");
  }
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "dinov2" && type != "dinov2_with_registers" && type != "rf_detr_dinov2") return std::nullopt;
  const auto found = match_anchor(files, "embeddings.patch_embeddings.projection.weight", kPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name,
            ": no tensor embeddings.patch_embeddings.projection.weight, with or without the prefix ", type,
            ".");
  return found;
}

}  // namespace
}  // namespace hf_dinov2

constinit const Family kHfDinov2Family{.name = "hf_dinov2",
                                       .anchor = "embeddings.patch_embeddings.projection.weight",
                                       .prefixes = hf_dinov2::kPrefixes,
                                       .library = "",
                                       .head = "classifier",
                                       .head_place = Place::outside,
                                       .match = hf_dinov2::match,
                                       .read = hf_dinov2::read};

}  // namespace vit::internal
