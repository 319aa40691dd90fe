#include "vit/weights/families/published_facts.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kAsk{"load_checkpoint", ErrorKind::argument};

bool is_present(const SourceFiles& files, const Layout& layout, Part part) {
  return files.find(layout, part) != nullptr;
}

/// One matrix of both branches has twice the rows that the second has columns.
bool is_packed_gate(const SourceFiles& files, const Layout& layout) {
  const std::span<const Source> fc1 = layout.sources(Part::fc1_weight);
  if (fc1.size() != 1 || fc1.front().row.from.of != 1 || fc1.front().row.form != Form::as_stored)
    return false;
  const TensorEntry* const first = files.find(layout, Part::fc1_weight);
  const TensorEntry* const second = files.find(layout, Part::fc2_weight);
  return first != nullptr && second != nullptr && first->shape.size() == 2 && second->shape.size() == 2 &&
         first->shape[0] == 2 * second->shape[1];
}

/// Rows of the position table; 0 if there is none, or if it is a map.
std::size_t table_rows(const SourceFiles& files, const Layout& layout) {
  const TensorEntry* const table = files.find(layout, Part::position_table);
  if (table == nullptr || table->shape.size() < 2) return 0;
  if (layout.sources(Part::position_table).front().row.form == Form::grid) return 0;
  return table->shape[table->shape.size() - 2];
}

/// The sizes of images that have so many patches, those nearest to a square first.
std::string possible_sizes(std::size_t num_patches, std::size_t patch_size) {
  std::string out;
  std::size_t shown = 0;
  const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(num_patches)));
  for (std::size_t rows = root; rows >= 1 && shown < 2; --rows) {
    if (num_patches % rows != 0) continue;
    const std::size_t height = rows * patch_size, width = num_patches / rows * patch_size;
    out += text(out.empty() ? "" : ", ", height, "x", width, " or ", width, "x", height);
    ++shown;
  }
  return out;
}

/// A bare file does not say which rectangle its table is for.
void check_table(const SourceFiles& files, const Layout& layout, const ModelConfig& config) {
  const PositionConfig& position = config.position;
  const std::size_t rows = table_rows(files, layout);
  const std::size_t expected =
      position.added_grid.rows * position.added_grid.columns + position.added_prefix_rows;
  if (files.config || rows == 0 || position.added == AddedTable::none || rows == expected) return;
  const std::size_t patches = rows - std::min(rows, position.added_prefix_rows);
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (patches == 0 || edge * edge == patches || files.options.overrides.contains("img_size")) return;
  fail(kAsk, files.weights_name, ": the position table has ", patches,
       " rows for patches, which make no square, and no file gives the size of the images; give ",
       override_name("img_size"), " = \"HxW\", such as ", possible_sizes(patches, config.patch.size));
}

/// An RMSNorm has no bias; that a LayerNorm has none is rare.
void check_norm_kind(const SourceFiles& files, const Layout& layout, const ModelConfig& config) {
  if (!files.any_block_has(layout, Part::norm1_gamma)) return;
  const bool has_bias = files.any_block_has(layout, Part::norm1_beta),
             rms = config.encoder.norm.kind == NormKind::rms;
  if (has_bias == !rms) return;
  fail(kAsk, files.weights_name, ": the norms of its blocks have ", has_bias ? "biases" : "no bias",
       ", as those of ", has_bias ? "LayerNorm" : "RMSNorm", " do, but this architecture has ",
       rms ? "RMSNorm" : "LayerNorm", "; give ", override_name("norm_layer"), " = \"",
       has_bias ? "layernorm" : "rmsnorm", "\"");
}

/// Where the last norm lies decides how the model pools.
void check_last_norm(const SourceFiles& files, const Layout& layout, const ModelConfig& config) {
  const bool on_tokens = is_present(files, layout, Part::norm_gamma);
  const bool on_pooled = is_present(files, layout, Part::pooled_norm_gamma);
  if (on_tokens == on_pooled) return;
  const auto ask = [&](std::string_view found, std::string_view lacking, std::string_view pool,
                       std::string_view fc_norm) {
    fail(kAsk, files.weights_name, ": has a norm ", found, " and none ", lacking,
         ", where this architecture has it; give ", override_name("global_pool"), " = \"", pool, "\", or ",
         override_name("fc_norm"), " = \"", fc_norm, "\" if it pools as published");
  };
  if (on_pooled && config.encoder.token_norm && !config.head.pooled_norm)
    ask("after pooling (fc_norm)", "before it (norm)", "avg", "true");
  if (on_tokens && config.head.pooled_norm && !config.encoder.token_norm)
    ask("before pooling (norm)", "after it (fc_norm)", "token", "false");
}

/// timm's features_only models end with their last block.
void drop_missing_end(const SourceFiles& files, const Layout& layout, ModelConfig& config,
                      std::vector<std::string>& notes) {
  for (const Part part : {Part::norm_gamma, Part::norm_beta, Part::pooled_norm_gamma, Part::pooled_norm_beta,
                          Part::head_weight, Part::head_bias, Part::pool_probe, Part::projection_weight}) {
    if (is_present(files, layout, part)) return;
  }
  if ((!config.encoder.token_norm && !config.head.pooled_norm) || config.head.num_classes != 0) return;
  config.encoder.token_norm = config.head.pooled_norm = false;
  config.head.pooling = Pooling::none;
  notes.push_back(
      "a model only for features (features_only of timm): it has no last norm, tokens are those of the last "
      "block, and nothing is pooled");
}

/// Of timm's CLIP towers, whose projection has no bias.
bool is_zero(const TensorEntry& bias) {
  return is_floating(bias.dtype) && std::ranges::all_of(to_double(bias), [](double x) { return x == 0.0; });
}

}  // namespace

bool head_projects(const SourceFiles& files, const Layout& layout, std::size_t projection_dim,
                   const ModelConfig& config) {
  if (config.head.num_classes == 0 || !config.head.labels.empty()) return false;
  const std::span<const Source> bias = layout.sources(Part::head_bias);
  if (!bias.empty() && !bias.front().is_stored()) return true;  // the layout calls it a projection
  if (projection_dim == 0) return false;
  if (config.head.num_classes == projection_dim) return true;
  const TensorEntry* const stored = files.find(layout, Part::head_bias);
  return stored != nullptr && is_zero(*stored);
}

void settle_by_tensors(const SourceFiles& files, const Layout& layout, TimmArgs& args) {
  if (args.timm_class == TimmClass::vision_transformer && !args.swiglu)
    args.swiglu = is_packed_gate(files, layout);
  if (!args.no_layer_scale && files.any_block_has(layout, Part::scale1)) args.layer_scale = true;
  if (files.any_block_has(layout, Part::q_norm_gamma)) args.qk_norm = true;
  if (is_present(files, layout, Part::embed_norm_gamma)) args.embed_norm = true;
  if (args.timm_class == TimmClass::vision_transformer) {
    if (files.any_block_has(layout, Part::attention_norm_gamma)) args.scale_attn_inner = true;
    if (files.any_block_has(layout, Part::mlp_norm_gamma)) args.scale_mlp = true;
  }
  const std::span<const Source> fc1 = layout.sources(Part::fc1_weight);
  args.parallel = !fc1.empty() && fc1.front().row.form == Form::mlp_and_qkv;
  if (!files.any_block_has(layout, Part::qkv_bias)) args.qkv_bias = false;
  const bool mlp_bias =
      files.any_block_has(layout, Part::fc1_bias) || files.any_block_has(layout, Part::fc2_bias);
  if (!files.any_block_has(layout, Part::proj_bias) && (!mlp_bias || args.parallel)) args.proj_bias = false;
  const TensorEntry* const registers = files.find(layout, Part::register_tokens);
  if (args.reg_tokens == 0 && registers != nullptr && registers->shape.size() == 3)
    args.reg_tokens = registers->shape[1];
  const std::size_t rows = table_rows(files, layout), edge = args.patch_size;
  if (rows == 0 || edge == 0) return;
  const std::size_t patches = (args.image_height / edge) * (args.image_width / edge);
  const std::size_t prefix = (args.class_token ? 1u : 0u) + (args.distilled ? 1u : 0u) + args.reg_tokens;
  if (prefix != 0 && rows == patches) args.no_embed_class = true;
  if (prefix != 0 && rows == patches + prefix) args.no_embed_class = false;
}

void check_facts(const SourceFiles& files, const Layout& layout, ModelConfig& config,
                 std::vector<std::string>& notes) {
  check_norm_kind(files, layout, config);
  check_table(files, layout, config);
  check_last_norm(files, layout, config);
  drop_missing_end(files, layout, config, notes);
  if (config.mlp.kind == MlpKind::gated && is_packed_gate(files, layout))
    notes.push_back("the MLP is a packed SwiGLU, as its tensors show, with " +
                    std::string(config.mlp.activation == Activation::silu ? "SiLU; act_layer names another"
                                                                          : "act_layer"));
}

}  // namespace vit::internal
