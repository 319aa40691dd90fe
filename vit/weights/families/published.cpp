#include "vit/weights/families/published.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/published_facts.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::mismatch};
constexpr std::string_view kRules[] = {"publisher", "timm"};

/// P of the projection of patches, 0 for another shape.
std::size_t patch_edge(const std::vector<std::size_t>& shape, Form form, std::size_t num_channels) {
  if (form == Form::flax_patch) return shape.size() == 4 && shape[0] == shape[1] ? shape[0] : 0;
  if (form != Form::pixels) return shape.size() == 4 && shape[1] != 0 && shape[2] == shape[3] ? shape[2] : 0;
  if (shape.size() != 2) return 0;
  const auto edge = static_cast<std::size_t>(
      std::lround(std::sqrt(static_cast<double>(shape[1]) / static_cast<double>(num_channels))));
  return num_channels * edge * edge == shape[1] ? edge : 0;
}

Form form_of(const Layout& layout, Part part) {
  const std::span<const Source> sources = layout.sources(part);
  return sources.empty() ? Form::as_stored : sources.front().row.form;
}
/// Rows and columns of a matrix, however it lies in the file; of a bias its length.
std::size_t out_size(const TensorEntry& entry, Form form) {
  const bool swapped = form == Form::transposed || form == Form::flax;
  return swapped ? entry.shape.back() : entry.shape.front();
}
std::size_t in_size(const TensorEntry& entry, Form form) {
  const bool swapped = form == Form::transposed || form == Form::flax;
  return swapped ? entry.shape.front() : entry.shape.back();
}

/// The size of images by a table of relative positions of a square grid.
void infer_from_distances(const SourceFiles& files, const Layout& layout, TimmArgs& args) {
  // BEiT's pretraining has one table for all blocks, which fine-tuning copies into each
  if (args.rel_pos && files.find(layout, Part::relative_table) != nullptr &&
      !files.any_block_has(layout, Part::block_relative_table)) {
    args.rel_pos = false;
    args.shared_rel_pos = true;
  }
  const Part part = args.rel_pos ? Part::block_relative_table : Part::relative_table;
  const TensorEntry* const table = files.find(layout, part);
  if (table == nullptr || table->shape.size() != 2) return;
  args.num_heads = table->shape[1];
  const std::size_t of_token = args.class_token ? 3 : 0;
  const double rows = static_cast<double>(table->shape[0] - std::min(table->shape[0], of_token));
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(rows)));
  set_square_image((edge + 1) / 2 * ((edge + 1) / 2), args);
}

/// What the tensors say of a file without config: everything but heads, epsilon, activation, rotation and
/// pooling.
void infer_from_tensors(const SourceFiles& files, const Layout& layout, TimmArgs& args) {
  const auto find = [&](Part part) { return files.find(layout, part); };
  const TensorEntry* const patch = find(Part::patch_weight);
  const Source& source = layout.sources(Part::patch_weight).front();
  const std::size_t edge = patch == nullptr ? 0 : patch_edge(patch->shape, source.row.form, args.in_chans);
  VIT_CHECK(edge != 0, kWhere, files.weights_name, ": ", source.name(0), " must be there and have shape ",
            source.row.form == Form::pixels ? "(C, P P K)" : "(C, K, P, P)");
  const bool is_flax = source.row.form == Form::flax_patch;
  if (source.row.form != Form::pixels) args.in_chans = patch->shape[is_flax ? 2 : 1];
  args.embed_dim = is_flax ? patch->shape.back() : patch->shape.front();
  args.patch_size = edge;
  const std::string_view block = layout.sources(Part::norm1_gamma).front().row.source;
  args.depth = files.count_blocks(block.substr(0, block.find("{}")));
  if (const TensorEntry* const fc2 = find(Part::fc2_weight); fc2 && fc2->shape.size() == 2)
    args.mlp_dim = in_size(*fc2, form_of(layout, Part::fc2_weight));
  args.num_classes = 0;
  for (const Part part : {Part::head_bias, Part::head_weight}) {
    const TensorEntry* const head = find(part);
    if (head != nullptr && !head->shape.empty()) args.num_classes = out_size(*head, form_of(layout, part));
  }
  if (const TensorEntry* const reg = find(Part::register_tokens); reg && reg->shape.size() == 3)
    args.reg_tokens = reg->shape[1];
  if (const TensorEntry* const freqs = find(Part::rope_frequencies); freqs && freqs->shape.size() == 4)
    args.num_heads = freqs->shape[2];
  if (const TensorEntry* const query = find(Part::qkv_weight);
      query && form_of(layout, Part::qkv_weight) == Form::flax && query->shape.size() == 3)
    args.num_heads = query->shape[1];
  args.layer_scale = files.any_block_has(layout, Part::scale1);
  args.qkv_bias = files.any_block_has(layout, Part::qkv_bias);
  if (const TensorEntry* const fc1 = find(Part::pool_fc1_weight); fc1 && fc1->shape.size() == 2)
    args.attn_pool_mlp_dim = out_size(*fc1, form_of(layout, Part::pool_fc1_weight));
  const TensorEntry* const table = find(Part::position_table);
  if (table == nullptr) infer_from_distances(files, layout, args);
  if (table == nullptr || table->shape.size() < 2) return;
  if (layout.sources(Part::position_table).front().row.form == Form::grid) {
    if (table->shape.size() == 4) args.pos_embed_grid_size = {table->shape[1], table->shape[2]};
    return;
  }
  const std::size_t rows = table->shape[table->shape.size() - 2];
  const std::span<const Source> token = layout.sources(Part::class_token);
  const bool lacks_token = !token.empty() && token.front().is_stored() && find(Part::class_token) == nullptr;
  const std::size_t prefix = args.no_embed_class ? 0
                                                 : (args.class_token && !lacks_token ? 1u : 0u) +
                                                       (args.distilled ? 1u : 0u) + args.reg_tokens;
  set_square_image(rows - std::min(prefix, rows), args);
}

/// Class names: texts of label_descriptions where given, else label_names, a list or an object keyed by
/// index.
std::vector<std::string> read_labels(const SourceFiles& files, std::size_t num_classes) {
  if (!files.config) return {};
  auto names = files.config->find("label_names");
  const auto pretrained = files.config->find("pretrained_cfg");
  if (!names && pretrained)
    names = pretrained->find("label_names");  // after a model was loaded and saved again
  if (!names || names->size() != num_classes) return {};
  const auto descriptions = files.config->find("label_descriptions");
  std::vector<std::string> labels(num_classes);
  for (std::size_t i = 0; i < num_classes; ++i) {
    labels[i] = names->is_array() ? std::string((*names)[i].as_string())
                                  : std::string(names->at(std::to_string(i)).as_string());
    if (descriptions && descriptions->is_object())
      labels[i] = descriptions->find_string(labels[i]).value_or(labels[i]);
  }
  return labels;
}

/// overrides["img_size"] moves the native size, not the table: where that has the rows of the file's own size
/// it keeps that grid and is resampled, as for other sizes. Of a bare file with a table that is not square
/// the option gives the grid. timm resamples the tables of FlexiViT and RADIO bilinearly while loading, which
/// is what the option asks for, and like all others at run time.
void keep_stored_table(const SourceFiles& files, const Layout& layout, const Architecture& architecture,
                       const TimmArgs& stored_args, ModelConfig& config) {
  PositionConfig& position = config.position;
  if (position.added == AddedTable::none || !files.options.overrides.contains("img_size")) return;
  const TensorEntry* const table = files.find(layout, Part::position_table);
  if (table == nullptr || table->shape.size() < 2) return;
  const GridSize stored = {stored_args.image_height / config.patch.size,
                           stored_args.image_width / config.patch.size};
  const std::size_t rows = table->shape[table->shape.size() - 2];
  if (rows == position.added_prefix_rows + stored.rows * stored.columns) position.added_grid = stored;
  if (position.resampling != TableResampling::bicubic_antialias) return;  // a rule of its own
  const std::string_view name = architecture.name;
  if (name.ends_with("base_patch16_radio_v3") || name.ends_with("huge_patch16_radio_v3")) {
    position.resampling = TableResampling::bilinear_aligned;
  } else if (name.starts_with("flexivit") || name.find("_radio_") != name.npos) {
    position.resampling = TableResampling::bilinear;
  }
}

/// The same of a table of relative positions; of a bare file it is that of a square.
void keep_relative_table(const SourceFiles& files, const Layout& layout, const TimmArgs& stored,
                         ModelConfig& config) {
  std::optional<RelativeConfig>& relative = config.position.relative;
  if (!relative || relative->kind != RelativeKind::table) return;
  const bool shared = relative->scope == RelativeScope::shared;
  const TensorEntry* const table =
      files.find(layout, shared ? Part::relative_table : Part::block_relative_table);
  if (table == nullptr || table->shape.size() != 2) return;
  const std::size_t rows =
      table->shape[0] - std::min<std::size_t>(config.num_prefix_tokens() * 3, table->shape[0]);
  const GridSize own{stored.image_height / config.patch.size, stored.image_width / config.patch.size};
  if (rows == (2 * own.rows - 1) * (2 * own.columns - 1)) {
    relative->grid = own;
    return;
  }
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(rows))));
  if (edge * edge == rows && edge % 2 == 1) relative->grid = {(edge + 1) / 2, (edge + 1) / 2};
}

}  // namespace

TimmArgs declared_args(const SourceFiles& files, const Architecture& architecture) {
  TimmArgs args = architecture.args;
  if (files.config && files.config->find("architecture")) apply_timm_config(args, *files.config);
  return args;
}

TimmArgs stored_args(const SourceFiles& files, const Architecture& architecture, const Layout& layout) {
  TimmArgs args = declared_args(files, architecture);
  if (files.config && files.config->find("architecture")) {
    if (hf_class_contains(*files.config, "TimmWrapperModel")) args.num_classes = 0;  // whatever else it says
  } else if (files.has_weights) {
    infer_from_tensors(files, layout, args);
    apply_noted_args(files, args);
  }
  if (files.has_weights) settle_by_tensors(files, layout, args);
  return args;
}

Published read_published(const SourceFiles& files, const Architecture& architecture, const TimmArgs& stored,
                         const char* library, std::span<const std::string_view> own_keys) {
  Published out{.stored = stored, .args = stored, .config = {}};
  for (const auto& [key, value] : files.options.overrides) {
    if (std::ranges::find(own_keys, key) == own_keys.end()) apply_timm_override(out.args, key, value);
  }
  out.config = to_config(out.args, architecture, files.config_name());
  out.config.head.labels = read_labels(files, out.config.head.num_classes);
  if (files.has_weights) out.config.library = is_saved_by_timm(files) ? "timm" : library;
  return out;
}

ParsedModel finish(const SourceFiles& files, const Architecture& architecture, Published published,
                   Layout layout, std::vector<std::span<const Ignored>> ignored,
                   std::vector<std::string> notes) {
  static constexpr Ignored kAlways[] = {
      {"text.*", "text tower"},
      {"mask_token", "used in training only"},
      {"masked_embed", "used in training only"},  // iBOT's mask_token
      {"lm_head.weight", "head of masked image modelling"},
      {"lm_head.bias", "head of masked image modelling"},
      {"decoder_*", "decoder of masked pretraining"},
      {"rope.freqs_cos", "rotation table, recomputed"},
      {"rope.freqs_sin", "rotation table, recomputed"},
      {"*.attn.rope.freqs_cos", "rotation table, recomputed"},
      {"*.attn.rope.freqs_sin", "rotation table, recomputed"},
      {"*relative_position_index", "recomputed"},
      {"*rel_coords_log", "recomputed"},
  };
  static constexpr Ignored kClassifier[] = {
      {"head.weight", "the config asks for no classifier"},
      {"head.bias", "the config asks for no classifier"},
  };
  ignored.push_back(kTextTower);
  ignored.push_back(kAlways);
  if (published.config.head.num_classes == 0) ignored.push_back(kClassifier);
  ignored.push_back(noted_projector(files));
  keep_stored_table(files, layout, architecture, published.stored, published.config);
  keep_relative_table(files, layout, published.stored, published.config);
  if (files.has_weights) check_facts(files, layout, published.config, notes);
  if (head_projects(files, layout, architecture.projection_dim, published.config))
    published.config.head.logits = LogitKind::joint_space;
  if (const std::string noted = noted_architecture(files);
      !noted.empty() && files.options.architecture.empty() && !files.config)
    notes.push_back("the file notes its architecture, " + noted);
  if (!files.config) {
    notes.push_back("heads, epsilon, activation, rotation and pooling are those of " +
                    std::string(architecture.name) + "; all sizes are those of the tensors");
  }
  return {.config = std::move(published.config),
          .layout = std::move(layout),
          .ignored = std::move(ignored),
          .notes = std::move(notes)};
}

std::string architecture_name(const SourceFiles& files) {
  if (!files.options.architecture.empty()) return files.options.architecture;
  if (files.config) return files.config->find_string("architecture").value_or("");
  return noted_architecture(files);
}

bool is_named_by(const SourceFiles& files, std::string_view library, std::string_view family) {
  const Architecture* const known = find_known_architecture(architecture_name(files));
  return known != nullptr && known->library == library && (family.empty() || known->family == family);
}

void set_square_image(std::size_t num_patches, TimmArgs& args) {
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(num_patches))));
  if (edge * edge != num_patches) return;
  // 384 pixels have 27 patches of 14 and a rest: the architecture's own size says more than the table
  const bool is_square = args.patch_size != 0 && args.image_height == args.image_width;
  if (is_square && args.image_height / args.patch_size == edge) return;
  args.image_height = args.image_width = edge * args.patch_size;
}

bool is_saved_by_timm(const SourceFiles& files) {
  return files.config && files.config->find("pretrained_cfg") && is_named_by(files, "timm") &&
         !files.options.overrides.contains("rules");
}

bool has_library_config(const SourceFiles& files) {
  if (!files.config) return false;
  return files.config->find("model_type") || files.config->find("architecture");
}

bool follows_timm(const SourceFiles& files) {
  return is_saved_by_timm(files) || own_option(files, "rules", kRules) == "timm";
}

std::string own_option(const SourceFiles& files, const std::string& key,
                       std::span<const std::string_view> allowed) {
  const auto found = files.options.overrides.find(key);
  if (found == files.options.overrides.end()) return std::string(allowed.front());
  std::vector<std::string> words;
  for (const std::string_view word : allowed) {
    if (found->second == word) return std::string(word);
    words.emplace_back(word);
  }
  fail(kWhere.with(ErrorKind::argument), override_name(key), " must be one of ", listed(words), ", got ",
       in_quotes(found->second));
}

}  // namespace vit::internal
