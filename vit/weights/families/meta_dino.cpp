// Meta's own DINOv2 and DINOv3 files. DINOv2 resamples its table with a scale shifted by a tenth; DINOv3
// stores its periods rounded to bfloat16 and masks the bias of k. Source: facebookresearch/dinov2 and dinov3,
// models/vision_transformer.py, layers/attention.py, layers/rope_position_encoding.py.
#include <utility>

#include "vit/base/error.h"
#include "vit/weights/families/timm_layout.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "meta_dino";

using Renaming = std::pair<std::string_view, std::string_view>;

std::string rename_ending(const std::string& name, std::span<const Renaming> endings) {
  for (const auto& [timm, meta] : endings) {
    if (name.starts_with("blocks.") && name.ends_with(timm)) {
      return name.substr(0, name.size() - timm.size()) + std::string(meta);
    }
  }
  return name;
}

// ------------------------------------------------------------------------------------------------- DINOv3

constexpr std::string_view kPeriods = "rope_periods";
constexpr std::string_view kPeriodChoices[] = {"stored", "recomputed"};

std::string rename_dinov3(const std::string& name) {
  static constexpr Renaming kEndings[] = {
      {".gamma_1", ".ls1.gamma"},          {".gamma_2", ".ls2.gamma"},
      {".attn.q_bias", ".attn.qkv.bias"},  {".mlp.fc1_g.weight", ".mlp.w1.weight"},
      {".mlp.fc1_g.bias", ".mlp.w1.bias"}, {".mlp.fc1_x.weight", ".mlp.w2.weight"},
      {".mlp.fc1_x.bias", ".mlp.w2.bias"}};
  if (name == "reg_token") return "storage_tokens";
  return rename_ending(name, kEndings);
}

void adjust_dinov3_args(const SourceFiles& files, const Architecture&, TimmArgs& args) {
  if (!follows_timm(files)) args.global_pool = TimmPool::token;
  for (const TensorEntry& entry : files.tensors.entries()) {  // a gated MLP ends with w3
    if (entry.name.ends_with(".mlp.w3.weight") && entry.shape.size() == 2) args.mlp_dim = entry.shape[1];
  }
}

void adjust_dinov3_config(const SourceFiles& files, ModelConfig& config) {
  const bool chosen = files.options.overrides.contains(std::string(kPeriods));
  config.position.stored_periods = (chosen || !follows_timm(files)) &&
                                   layout_option(files, std::string(kPeriods), kPeriodChoices) == "stored";
  VIT_CHECK(!config.position.stored_periods || files.find("rope_embed.periods") != nullptr, kWhere,
            files.weights_name,
            ": no tensor rope_embed.periods; --set rope_periods=recomputed computes them");
}

std::vector<Piece> dinov3_pieces(const SourceFiles& files, const ModelConfig& config,
                                 const std::string& canonical, const Shape& shape) {
  if (canonical == "rope_periods") return {{.source = "rope_embed.periods", .shape = sizes_of(shape)}};
  const auto block = split_block(canonical);
  if (!block) return {};
  const std::string front = "blocks." + std::to_string(block->block) + ".";
  if (config.mlp == MlpKind::gated && block->rest.starts_with("fc2.")) {
    return {{.source = front + "mlp.w3." + block->rest.substr(4), .shape = sizes_of(shape)}};
  }
  if (block->rest != "qkv.bias") return {};
  const std::string bias = front + "attn.qkv.bias";
  const std::size_t width = config.embed_dim;
  if (files.find("blocks.0.attn.qkv.bias_mask") != nullptr) {  // all blocks have one or none has
    return {{.source = bias, .shape = {3 * width}, .mask = bias + "_mask"}};
  }
  return {{.source = bias, .shape = {3 * width}, .num_rows = width},  // k has no bias
          {.zeros = width},
          {.source = bias, .shape = {3 * width}, .first_row = 2 * width, .num_rows = width}};
}

constexpr TimmLayout kDinov3Layout{
    .library = "Meta",
    .rename = rename_dinov3,
    .adjust_args = adjust_dinov3_args,
    .adjust_config = adjust_dinov3_config,
    .pieces = dinov3_pieces,
    .ignore_reason = [](const std::string& name, bool) -> std::string {
      if (name == "rope_embed.periods") return "recomputed in full precision, as asked";
      if (name.starts_with("local_cls_norm.")) return "used in training only";
      return "";
    },
    .notes = [](const SourceFiles&, const ModelConfig& config) -> std::vector<std::string> {
      return {config.position.stored_periods
                  ? "rotation by the stored periods, as Meta's code does; --set rope_periods=recomputed "
                    "gives timm's and transformers' numbers"
                  : "rotation by periods recomputed in full precision, as timm and transformers do"};
    },
    .own_keys = std::span(&kPeriods, 1)};

bool matches_dinov3(SourceFiles& files) {
  if (!files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return false;
  return files.find("storage_tokens") != nullptr || files.find("rope_embed.periods") != nullptr;
}

// ------------------------------------------------------------------------------------------------- DINOv2

std::string rename_dinov2(const std::string& name) {
  return name == "reg_token" ? "register_tokens" : name;
}

void adjust_dinov2_args(const SourceFiles& files, const Architecture&, TimmArgs& args) {
  args.no_embed_class = false;
  const TensorEntry* const table = files.find("pos_embed");
  if (table == nullptr || table->shape.size() != 3) return;
  // one row for the class token, none for registers
  if (table->shape[1] > 1) set_square_image(table->shape[1] - 1, args);
  for (const TensorEntry& entry : files.tensors.entries()) {
    if (entry.name.ends_with(".mlp.w3.weight") && entry.shape.size() == 2) args.mlp_dim = entry.shape[1];
  }
}

void apply_dinov2_rules(const SourceFiles&, ModelConfig& config) {
  config.position.resampling = config.num_register_tokens != 0 ? TableResampling::bicubic_antialias
                                                               : TableResampling::bicubic_plus_tenth;
  config.position.reuse = TableReuse::equal_count_and_square;
}

void adjust_dinov2_config(const SourceFiles&, ModelConfig& config) {
  config.position.added = AddedTable::prefix_and_patches;
  config.position.added_prefix_rows = 1;
}

std::vector<Piece> dinov2_pieces(const SourceFiles&, const ModelConfig& config, const std::string& canonical,
                                 const Shape& shape) {
  const auto block = split_block(canonical);
  if (!block || config.mlp != MlpKind::gated) return {};
  const std::string front = "blocks." + std::to_string(block->block) + ".mlp.";
  if (block->rest.starts_with("gate.") || block->rest.starts_with("fc1.")) {
    return {half_of_rows(front + "w12", block->rest, shape)};
  }
  if (block->rest.starts_with("fc2."))
    return {{.source = front + "w3." + block->rest.substr(4), .shape = sizes_of(shape)}};
  return {};
}

constexpr TimmLayout kDinov2Layout{
    .library = "Meta",
    .rename = rename_dinov2,
    .adjust_args = adjust_dinov2_args,
    .apply_rules = apply_dinov2_rules,
    .adjust_config = adjust_dinov2_config,
    .pieces = dinov2_pieces,
    .notes = [](const SourceFiles&, const ModelConfig& config) -> std::vector<std::string> {
      const bool tenth = config.position.resampling == TableResampling::bicubic_plus_tenth;
      return {std::string("other sizes: the learned table is resampled ") +
              (tenth ? "as Meta does (bicubic, scale shifted by 0.1); --set rules=timm chooses timm's way"
                     : "bicubic with antialias")};
    }};

bool matches_dinov2(SourceFiles& files) {
  if (!files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return false;
  if (is_named_by(files, "Meta", "dinov2")) return true;
  for (const char* name : {"blocks.0.ls1.gamma", "mask_token", "pos_embed"}) {
    if (files.find(name) == nullptr) return false;
  }
  // timm's own names beside timm's config.json: mask_token is merely left over
  return !is_saved_by_timm(files) || files.find("register_tokens") != nullptr ||
         files.find("blocks.0.mlp.w12.weight") != nullptr;
}

}  // namespace

constinit const Family kMetaDinov3Family{
    "meta_dinov3", "patch_embed.proj.weight", matches_dinov3,
    [](const SourceFiles& files) { return adapt_timm_layout(files, kDinov3Layout); }};
constinit const Family kMetaDinov2Family{
    "meta_dinov2", "patch_embed.proj.weight", matches_dinov2,
    [](const SourceFiles& files) { return adapt_timm_layout(files, kDinov2Layout); }};

}  // namespace vit::internal
