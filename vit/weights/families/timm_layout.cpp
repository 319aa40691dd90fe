#include "vit/weights/families/timm_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "vit/base/error.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "timm_layout";
constexpr std::string_view kRules[] = {"publisher", "timm"};

std::string file_name(const TimmLayout& layout, const std::string& name) {
  return layout.rename ? layout.rename(name) : name;
}

/// What the tensors tell of a file without config: everything but heads, epsilon, activation, rotation and
/// pooling.
void infer_from_tensors(const SourceFiles& files, const TimmLayout& layout, TimmArgs& args) {
  const auto find = [&](const std::string& name) { return files.find(file_name(layout, name)); };
  const std::string patch_name = file_name(layout, "patch_embed.proj.weight");
  const TensorEntry* const patch = find("patch_embed.proj.weight");
  VIT_CHECK(patch != nullptr && patch->shape.size() == 4 && patch->shape[2] == patch->shape[3], kWhere,
            files.weights_name, ": ", patch_name, " must be there and have shape (C, 3, P, P)");
  args.embed_dim = patch->shape[0];
  args.patch_size = patch->shape[2];
  const std::string block = file_name(layout, "blocks.0.norm1.weight");
  args.depth = files.count_blocks(block.substr(0, block.find("0.")));
  if (const TensorEntry* const fc2 = find("blocks.0.mlp.fc2.weight"); fc2 && fc2->shape.size() == 2) {
    args.mlp_dim = fc2->shape[1];
  }
  for (const char* name : {"head.bias", "head.weight"}) {
    const TensorEntry* const head = find(name);
    if (head != nullptr && !head->shape.empty()) args.num_classes = head->shape[0];
  }
  if (find("head.bias") == nullptr && find("head.weight") == nullptr) args.num_classes = 0;
  if (const TensorEntry* const reg = find("reg_token"); reg && reg->shape.size() == 3)
    args.reg_tokens = reg->shape[1];
  if (const TensorEntry* const freqs = find("rope.freqs"); freqs && freqs->shape.size() == 4) {
    args.num_heads = freqs->shape[2];
  }
  const auto any_block = [&](const std::string& name) {
    const std::string full = file_name(layout, "blocks.0." + name);
    return any_block_has(files, full.substr(full.find("0.") + 2));
  };
  args.layer_scale = any_block("gamma_1") || any_block("ls1.gamma");
  args.qkv_bias = any_block("attn.qkv.bias") || any_block("attn.q_bias") || any_block("attn.q_proj.bias");
  if (const TensorEntry* const fc1 = find("attn_pool.mlp.fc1.weight"); fc1 && fc1->shape.size() == 2) {
    args.attn_pool_mlp_dim = fc1->shape[0];
  }
  const TensorEntry* const table = find("pos_embed");
  if (table == nullptr || table->shape.size() < 2) return;
  const std::size_t rows = table->shape[table->shape.size() - 2];
  const std::size_t prefix =
      args.no_embed_class ? 0 : (args.class_token ? 1u : 0u) + (args.distilled ? 1u : 0u) + args.reg_tokens;
  set_square_image(rows - std::min(prefix, rows), args);
}

/// The arguments of the model as the file has it, before `--set`.
TimmArgs read_args(const SourceFiles& files, const TimmLayout& layout, const Architecture& architecture) {
  TimmArgs args = architecture.args;
  if (files.config && files.config->find("architecture")) {
    apply_timm_config(args, *files.config);
    if (hf_class_contains(*files.config, "TimmWrapperModel")) args.num_classes = 0;  // whatever else it says
  } else if (layout.sizes_from_tensors) {
    infer_from_tensors(files, layout, args);
  }
  if (layout.adjust_args) layout.adjust_args(files, architecture, args);
  return args;
}

TimmArgs with_overrides(TimmArgs args, const SourceFiles& files, const TimmLayout& layout) {
  for (const auto& [key, value] : files.options.overrides) {
    const bool own = layout.rename != nullptr || layout.apply_rules != nullptr;
    if (own && (key == "rules" || std::ranges::find(layout.own_keys, key) != layout.own_keys.end())) continue;
    apply_timm_override(args, key, value);
  }
  return args;
}

/// Why a tensor beside the `backbone` of a self-supervised training (DINO, iBOT) may be left unused.
std::string pretraining_head_reason(const std::string& name) {
  const std::string_view own = name.starts_with("module.") ? std::string_view(name).substr(7) : name;
  for (const std::string_view front : {"dino_head.", "ibot_head.", "head."}) {
    if (own.starts_with(front)) return "head of the self-supervised training";
  }
  return "";
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

class TimmAdapter final : public Adapter {
 public:
  TimmAdapter(const SourceFiles& files, const TimmLayout& layout, Architecture architecture)
      : files_(files),
        layout_(layout),
        architecture_(std::move(architecture)),
        stored_args_(read_args(files, layout, architecture_)),
        args_(with_overrides(stored_args_, files, layout)),
        config_(to_config(args_, architecture_)) {
    config_.labels = read_labels(files, config_.num_classes);
    config_.library = is_saved_by_timm(files) ? "timm" : layout.library;
    if (layout.apply_rules && !follows_timm(files)) layout.apply_rules(files, config_);
    if (layout.adjust_config) layout.adjust_config(files, config_);
    keep_stored_table();
    validate(config_);
  }

  ModelConfig config() const override { return config_; }

  std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const override {
    if (layout_.pieces) {
      std::vector<Piece> own = layout_.pieces(files_, config_, canonical, shape);
      if (!own.empty()) return own;
    }
    std::vector<Piece> parts = timm_pieces(canonical, shape);
    for (Piece& piece : parts) {
      if (!piece.source.empty()) piece.source = file_name(layout_, piece.source);
    }
    return parts;
  }

  std::string ignore_reason(const std::string& name, bool has_prefix) const override {
    if (layout_.ignore_reason) {
      if (std::string reason = layout_.ignore_reason(name, has_prefix); !reason.empty()) return reason;
    }
    if (!has_prefix && files_.prefix.ends_with("backbone.")) return pretraining_head_reason(name);
    if (!has_prefix || name.starts_with("text.")) return text_tower_reason(name);
    if (name == "mask_token") return "used in training only";
    if (name == "rope.freqs_cos" || name == "rope.freqs_sin" || name.ends_with(".attn.rope.freqs_cos") ||
        name.ends_with(".attn.rope.freqs_sin")) {
      return "rotation table, recomputed";
    }
    if (config_.num_classes == 0 && (name == "head.weight" || name == "head.bias")) {
      return "the config asks for no classifier";
    }
    return "";
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> lines;
    if (layout_.notes) lines = layout_.notes(files_, config_);
    if (!files_.config) {
      lines.push_back(text("heads, epsilon, activation, rotation and pooling are those of ",
                           architecture_.name, "; all sizes are those of the tensors"));
    }
    return lines;
  }

 private:
  /// `--set img_size` moves the native size, not the table: where that has the rows of the file's own size it
  /// keeps that grid and is resampled, as for other sizes. Of a bare file with a table that is not square the
  /// option tells the grid. timm resamples the tables of FlexiViT and RADIO bilinearly while loading and like
  /// all others at run time; here they are always resampled as at run time.
  void keep_stored_table() {
    PositionConfig& position = config_.position;
    if (position.added == AddedTable::none || !files_.options.overrides.contains("img_size")) return;
    const TensorEntry* const table = files_.find(file_name(layout_, "pos_embed"));
    if (table == nullptr || table->shape.size() < 2) return;
    const GridSize stored = {stored_args_.image_height / config_.patch_size,
                             stored_args_.image_width / config_.patch_size};
    const std::size_t rows = table->shape[table->shape.size() - 2];
    if (rows == position.added_prefix_rows + stored.rows * stored.columns) position.added_grid = stored;
  }

  std::vector<Piece> timm_pieces(const std::string& canonical, const Shape& shape) const {
    if (const auto block = split_block(canonical)) {
      return block_pieces("blocks." + std::to_string(block->block) + ".", block->rest, shape);
    }
    const std::size_t width = config_.embed_dim;
    if (canonical == "patch.weight") {
      return {
          {.source = "patch_embed.proj.weight", .shape = {width, 3, config_.patch_size, config_.patch_size}}};
    }
    if (canonical == "class_token") return {{.source = "cls_token", .shape = {1, 1, width}}};
    if (canonical == "distillation_token") return {{.source = "dist_token", .shape = {1, 1, width}}};
    if (canonical == "register_tokens") return {{.source = "reg_token", .shape = {1, shape[0], width}}};
    if (canonical == "position_table") return {{.source = "pos_embed", .shape = {1, shape[0], width}}};
    if (canonical == "pool.probe") return {{.source = "attn_pool.latent", .shape = {1, 1, width}}};
    static const std::map<std::string, std::string> stems = {
        {"patch", "patch_embed.proj"},      {"rope_frequencies", "rope.freqs"},
        {"norm_pre", "norm_pre"},           {"norm", "norm"},
        {"pooled_norm", "fc_norm"},         {"head", "head"},
        {"head_distillation", "head_dist"}, {"pool.q", "attn_pool.q"},
        {"pool.kv", "attn_pool.kv"},        {"pool.proj", "attn_pool.proj"},
        {"pool.norm", "attn_pool.norm"},    {"pool.fc1", "attn_pool.mlp.fc1"},
        {"pool.fc2", "attn_pool.mlp.fc2"}};
    return {renamed_piece(canonical, shape, stems)};
  }

  std::vector<Piece> block_pieces(const std::string& front, const std::string& rest,
                                  const Shape& shape) const {
    const bool eva = args_.timm_class == TimmClass::eva;
    const std::size_t width = config_.embed_dim;
    if (rest.starts_with("qkv.")) return qkv_pieces(front, rest, shape);
    const bool of_meta = architecture_.family == "deit3" && files_.find(front + "gamma_1") != nullptr;
    const bool gamma = eva || of_meta;
    if (rest == "scale1") return {{.source = front + (gamma ? "gamma_1" : "ls1.gamma"), .shape = {width}}};
    if (rest == "scale2") return {{.source = front + (gamma ? "gamma_2" : "ls2.gamma"), .shape = {width}}};
    const bool split = eva && (args_.scale_mlp || args_.swiglu_align_to != 0);
    if (config_.mlp == MlpKind::gated && !split && (rest.starts_with("gate.") || rest.starts_with("fc1."))) {
      // one matrix: rows 0 .. M - 1 gate, M .. 2M - 1 value
      return {half_of_rows(front + "mlp.fc1", rest, shape)};
    }
    static const std::map<std::string, std::string> plain = {
        {"norm1", "norm1"}, {"norm2", "norm2"}, {"attention_norm", "attn.norm"}, {"proj", "attn.proj"},
        {"fc1", "mlp.fc1"}, {"fc2", "mlp.fc2"}, {"mlp_norm", "mlp.norm"}};
    static const std::map<std::string, std::string> gated = {
        {"norm1", "norm1"},    {"norm2", "norm2"},      {"attention_norm", "attn.norm"},
        {"proj", "attn.proj"}, {"gate", "mlp.fc1_g"},   {"fc1", "mlp.fc1_x"},
        {"fc2", "mlp.fc2"},    {"mlp_norm", "mlp.norm"}};
    return {renamed_piece(rest, shape, split && config_.mlp == MlpKind::gated ? gated : plain, front)};
  }

  /// Eva's own attention has no k bias: it keeps q_bias and v_bias beside a fused matrix, or three separate
  /// projections.
  std::vector<Piece> qkv_pieces(const std::string& front, const std::string& rest, const Shape& shape) const {
    const std::size_t width = config_.embed_dim;
    const bool weight = rest == "qkv.weight";
    const bool eva = args_.timm_class == TimmClass::eva;
    const bool own_bias = eva && args_.attn_type == TimmAttention::eva;
    const std::string attn = front + "attn.";
    if (eva && !args_.qkv_fused) {
      return joined_qkv({attn + "q_proj", attn + "k_proj", attn + "v_proj"}, weight ? ".weight" : ".bias",
                        width, {.k_bias = !own_bias});
    }
    if (!weight && own_bias) {
      return {{.source = attn + "q_bias", .shape = {width}},
              {.zeros = width},
              {.source = attn + "v_bias", .shape = {width}}};
    }
    return {{.source = attn + rest, .shape = sizes_of(shape)}};
  }

  const SourceFiles files_;
  const TimmLayout& layout_;
  const Architecture architecture_;
  const TimmArgs stored_args_;
  TimmArgs args_;
  ModelConfig config_;
};

/// Whether every tensor of the file has its place in this adapter's model, and the other way round.
bool fits(const SourceFiles& files, const TimmAdapter& adapter) {
  std::vector<const TensorEntry*> used;
  bool complete = true;
  ModelWeights weights;
  for_each_tensor(
      adapter.config(), weights, [&](const std::string& canonical, const Shape& shape, WeightTensor&) {
        if (!complete) return;
        for (const Piece& piece : adapter.pieces(canonical, shape)) {
          for (const std::string& name : {piece.source, piece.mask}) {
            if (name.empty()) continue;
            const TensorEntry* const entry = piece.absolute ? files.tensors.find(name) : files.find(name);
            complete = complete && entry != nullptr && entry->shape == piece.shape;
            if (entry != nullptr) used.push_back(entry);
          }
        }
      });
  if (!complete) return false;
  std::ranges::sort(used);
  return std::ranges::all_of(files.tensors.entries(), [&](const TensorEntry& entry) {
    if (std::ranges::binary_search(used, &entry)) return true;
    const bool has_prefix = entry.name.starts_with(files.prefix);
    return !adapter
                .ignore_reason(has_prefix ? entry.name.substr(files.prefix.size()) : entry.name, has_prefix)
                .empty();
  });
}

/// Says which architectures the tensors could be (of the same size where there are any, else of the same
/// kind) and which names are close to the one that was given, or to that of the file.
[[noreturn]] void refuse_unknown(const SourceFiles& files, const TimmLayout& layout,
                                 const std::string& name) {
  std::vector<std::string> same_size, same_kind;
  for (const Architecture& a : architectures()) {
    if (a.library != "timm" && a.library != layout.library) continue;
    try {
      const TimmAdapter adapter(files, layout, a);
      if (!fits(files, adapter)) continue;
      const ModelConfig config = adapter.config();
      const bool same = config.embed_dim == a.args.embed_dim && config.depth == a.args.depth &&
                        config.patch_size == a.args.patch_size;
      (same ? same_size : same_kind).emplace_back(a.name);
    } catch (const Error&) {
      continue;  // these tensors and that architecture contradict each other
    }
  }
  const std::string fitting = !same_size.empty()   ? "its tensors are those of " + listed(same_size)
                              : !same_kind.empty() ? "its tensors are of the kind of " + listed(same_kind) +
                                                         ", in other sizes (add --set num_heads=N)"
                                                   : "its tensors fit no architecture that is known by name";
  const std::filesystem::path file = files.weights_name;
  std::string stem = file.stem().string();
  for (const char* anonymous : {"model", "pytorch_model", "model.safetensors.index"}) {
    if (stem != anonymous) continue;
    std::error_code gone;  // the working folder may be
    const std::filesystem::path full = std::filesystem::absolute(file, gone);
    if (!gone) stem = full.parent_path().filename().string();
    break;
  }
  const std::string near = listed(nearest_architectures(name.empty() ? stem : name, 3));
  if (!name.empty()) {
    fail("load_checkpoint", files.weights_name, ": unknown architecture ", in_quotes(name),
         "; the nearest known names are ", near, "; ", fitting);
  }
  fail("load_checkpoint", files.weights_name,
       ": the tensors cannot tell the number of heads, epsilon, activation, rotation and pooling, and there "
       "is no config.json "
       "that does; give --architecture: ",
       fitting, "; by the name of file or folder the nearest are ", near);
}

}  // namespace

std::unique_ptr<Adapter> adapt_timm_layout(const SourceFiles& files, const TimmLayout& layout) {
  const std::string name = architecture_name(files);
  const Architecture* const known = name.empty() ? nullptr : find_known_architecture(name);
  if (known == nullptr) refuse_unknown(files, layout, name);
  return adapt_timm_layout(files, layout, *known);
}

std::unique_ptr<Adapter> adapt_timm_layout(const SourceFiles& files, const TimmLayout& layout,
                                           Architecture architecture) {
  return std::make_unique<TimmAdapter>(files, layout, std::move(architecture));
}

std::string architecture_name(const SourceFiles& files) {
  if (!files.options.architecture.empty()) return files.options.architecture;
  return files.config ? files.config->find_string("architecture").value_or("") : "";
}

bool is_named_by(const SourceFiles& files, std::string_view library, std::string_view family) {
  const Architecture* const known = find_known_architecture(architecture_name(files));
  return known != nullptr && known->library == library && (family.empty() || known->family == family);
}

void set_square_image(std::size_t num_patches, TimmArgs& args) {
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(num_patches))));
  if (edge * edge != num_patches) return;
  // 384 pixels have 27 patches of 14 and a rest: the architecture's own size tells more than the table
  const bool is_square = args.patch_size != 0 && args.image_height == args.image_width;
  if (is_square && args.image_height / args.patch_size == edge) return;
  args.image_height = args.image_width = edge * args.patch_size;
}

bool is_saved_by_timm(const SourceFiles& files) {
  return files.config && files.config->find("pretrained_cfg") && is_named_by(files, "timm") &&
         !files.options.overrides.contains("rules");
}

bool follows_timm(const SourceFiles& files) {
  return is_saved_by_timm(files) || layout_option(files, "rules", kRules) == "timm";
}

std::string layout_option(const SourceFiles& files, const std::string& key,
                          std::span<const std::string_view> allowed) {
  const auto found = files.options.overrides.find(key);
  if (found == files.options.overrides.end()) return std::string(allowed.front());
  std::string words;
  for (const std::string_view word : allowed) {
    if (found->second == word) return std::string(word);
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  throw OverrideError(kWhere,
                      text("--set ", key, " must be one of ", words, ", got ", in_quotes(found->second)));
}

}  // namespace vit::internal
