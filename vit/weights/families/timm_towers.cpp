// The vision towers of language models that timm publishes by themselves: qwen3_vit_* and deepseek_vit_*.
// Variants that end in _enc are the encoder with its merger; others keep it after "encoder." and pool its
// tokens, or with _merge and _align the visual tokens. Source: timm, models/qwen3_vit.py and
// models/deepseek_vit.py.
#include <algorithm>
#include <array>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/published.h"
#include "vit/weights/families/timm_towers.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"timm_towers", ErrorKind::format};

constexpr Row kTowerRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::position_table, "pos_embed"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::merger_norm_gamma, "merger.norm.*"},
    {Part::merger_fc1_weight, "merger.fc1.*"},
    {Part::merger_fc2_weight, "merger.fc2.*"},
    {.part = Part::pooled_norm_gamma, .constant = 1.0f},
    {.part = Part::pooled_norm_beta},
    at(Place::outside, {Part::head_weight, "head.*"}),
};
constexpr Row kDeepSeek[] = {
    cut(Part::gate_weight, "blocks.{}.mlp.fc1.weight", {0, 2}),
    cut(Part::fc1_weight, "blocks.{}.mlp.fc1.weight", {1, 2}),
    {Part::norm_gamma, "norm.*"},
    {Part::merger_fc1_weight, "aligner.fc1.weight", Form::cells},
    {Part::merger_fc1_bias, "aligner.fc1.bias"},
    {Part::merger_fc2_weight, "aligner.fc2.*"},
};
static_assert(is_complete(kTowerRows) && is_sound(kDeepSeek));

/// The merger where the pooled tokens are those before it.
constexpr Ignored kMerger[] = {{"merger.*", "the model pools the tokens before the merger"},
                               {"aligner.*", "the model pools the tokens before the aligner"}};

constexpr TimmTower kTowers[] = {
    {"qwen3_vit_88m", TowerKind::qwen3, 768, 12, 12, 3072, 1024},
    {"qwen3_vit_306m", TowerKind::qwen3, 1024, 24, 16, 4096, 2560},
    {"qwen3_vit_416m", TowerKind::qwen3, 1152, 27, 16, 4304, 4096},
    {"deepseek_vit_412m", TowerKind::deepseek, 1024, 32, 16, 2816, 4096},
};

/// "qwen3_vit_88m_enc" of "timm/qwen3_vit_88m_enc.qwen3_5_0_8b".
std::string_view without_tag(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  return name.substr(0, name.find('.'));
}

/// model_args of config.json, or an empty object.
Json arguments_of(const SourceFiles& files) {
  if (files.config) {
    if (const auto args = files.config->find("model_args"); args && args->is_object()) return *args;
  }
  return parse_json("{}", files.config_name());
}

std::size_t rows_in_file(const SourceFiles& files, std::initializer_list<const char*> names,
                         std::size_t fallback) {
  for (const char* name : names) fallback = rows_of_tensor(files, name, Place::tower, fallback);
  return fallback;
}

void set_sizes(const SourceFiles& files, const Json& args, const TimmTower& tower, ModelConfig& c) {
  const bool qwen3 = tower.kind == TowerKind::qwen3;
  const auto patch = files.find("patch_embed.proj.weight");
  const bool has_patch = patch != nullptr && patch->shape.size() == 4;
  c.embed_dim = find_tower_size(args, {"embed_dim"}, has_patch ? patch->shape[0] : tower.embed_dim);
  c.patch.size = find_tower_size(args, {"patch_size"}, has_patch ? patch->shape[3] : (qwen3 ? 16u : 14u));
  const std::size_t blocks = files.count_blocks("blocks.");
  c.encoder.depth = find_tower_size(args, {"depth"}, blocks != 0 ? blocks : tower.depth);
  c.attention.num_heads = find_tower_size(args, {"num_heads"}, tower.num_heads);
  c.mlp.dim = tower.mlp_dim;
  if (const auto ratio = args.find_double("mlp_ratio"))
    c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) * *ratio);
  if (const auto fc2 = files.find("blocks.0.mlp.fc2.weight"); fc2 != nullptr && fc2->shape.size() == 2)
    c.mlp.dim = fc2->shape[1];
  VIT_CHECK(c.patch.size != 0, kWhere, files.config_name(), ": patch_size must not be 0");
  c.image.height = c.image.width = qwen3 ? 768 : 546;
  if (const auto size = args.find("img_size")) {
    const GridSize edges = read_edges(*size);
    c.image.height = edges.rows;
    c.image.width = edges.columns;
  }
}

void set_merger(const SourceFiles& files, const Json& args, const TimmTower& tower, ModelConfig& c) {
  const bool qwen3 = tower.kind == TowerKind::qwen3;
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size =
      qwen3 ? find_tower_size(args, {"merge_size"}, 2) : find_tower_size(args, {"downsample_ratio"}, 3);
  std::size_t out_dim = find_tower_size(args, {"out_features"}, 0);
  if (out_dim == 0) out_dim = rows_in_file(files, {"merger.fc2.weight", "aligner.fc2.weight"}, tower.out_dim);
  if (qwen3) merger.cells.token_norm = {.eps = c.encoder.norm.eps};
  merger.cells.pads = !qwen3;
  merger.add(MergerPlace::mlp,
             MergerMlp{.hidden_dim = qwen3 ? merger.cell_width(c.embed_dim) : out_dim, .out_dim = out_dim});
  if (merger.cells.pads || merger.cells.size == 0 || merger.cells.size > 64) return;
  const std::size_t edge = merger.cells.size * c.patch.size;  // the native image is one of whole cells
  c.image.height = std::max(c.image.height / edge, std::size_t{1}) * edge;
  c.image.width = std::max(c.image.width / edge, std::size_t{1}) * edge;
}

/// What timm makes of the encoder's tokens.
void set_pooling(const SourceFiles& files, const Json& args, std::string_view name, ModelConfig& c) {
  const bool classifies = !name.ends_with("_enc");
  const std::string pool =
      args.find_string("global_pool")
          .value_or(files.config ? files.config->find_string("global_pool").value_or("") : "");
  const bool merges = args.find_string("encoder_pool").value_or("") != "" || name.ends_with("_merge") ||
                      name.ends_with("_align");
  if (!classifies) return;
  if (merges) {
    c.head.pools_merged = pool.empty() || pool == "avg";
  } else {
    c.merger.reset();
  }
  c.head.pooling = pool.empty() || pool == "avg" ? Pooling::patch_mean : Pooling::none;
  c.head.pooled_norm = c.head.pooling != Pooling::none;
  c.head.num_classes = rows_of_tensor(files, "head.weight", Place::outside, 0);
}

}  // namespace

std::span<const TimmTower> timm_towers() {
  return kTowers;
}

const TimmTower* find_timm_tower(std::string_view name) {
  name = without_tag(name);
  for (const char* ending : {"_enc", "_merge", "_align"}) {
    if (name.ends_with(ending)) name.remove_suffix(std::string_view(ending).size());
  }
  const auto found = std::ranges::find(kTowers, name, &TimmTower::name);
  return found == std::end(kTowers) ? nullptr : found;
}

ModelConfig timm_tower_config(const SourceFiles& files, std::string_view name, const TimmTower& tower) {
  const Json args = arguments_of(files);
  const bool qwen3 = tower.kind == TowerKind::qwen3;
  ModelConfig c;
  c.architecture = name;
  c.family = qwen3 ? "qwen-vl" : "deepseek-vit";
  c.library = "timm";
  c.patch.drops_remainder = true;  // by the stride of its convolution
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  set_sizes(files, args, tower, c);
  c.encoder.norm.eps = static_cast<float>(args.find_double("norm_eps").value_or(1e-6));
  PositionConfig& position = c.position;
  position.rope = RopeKind::axial;
  position.axis_order = AxisOrder::y_then_x;
  position.pairing = RopePairing::halves;
  position.theta = args.find_double("rope_temperature").value_or(10000.0);
  if (qwen3) {
    c.encoder.token_norm = false;
    c.mlp.activation = Activation::gelu_tanh;
    const std::size_t edge = find_tower_size(args, {"pos_embed_grid_size"}, 48);
    position.added = AddedTable::patches;
    position.added_grid = {edge, edge};
    position.resampling = TableResampling::bilinear_aligned;
  } else {
    c.encoder.norm.kind = NormKind::rms;
    c.mlp.kind = MlpKind::gated;
    c.mlp.activation = Activation::silu;
    c.mlp.bias = false;
  }
  set_merger(files, args, tower, c);
  set_pooling(files, args, without_tag(name), c);
  return c;
}

namespace {

ParsedModel read_timm_tower(const SourceFiles& files) {
  const std::string name = architecture_name(files);
  for (const auto& [key, value] : files.options.overrides)
    fail(kWhere.with(ErrorKind::argument), override_name(key), " is no argument of ", in_quotes(name));
  const TimmTower& tower = *find_timm_tower(name);
  ParsedModel out{.config = timm_tower_config(files, name, tower), .layout = {kTowerRows}, .ignored = {}};
  if (tower.kind == TowerKind::deepseek) out.layout.add(kDeepSeek);
  if (!out.config.merger) out.ignored.push_back(kMerger);
  return out;
}

std::optional<Match> match_timm_tower(const SourceFiles& files) {
  if (find_timm_tower(architecture_name(files)) == nullptr) return std::nullopt;
  static constexpr std::string_view kPrefixes[] = {"", "encoder.", "module.", "module.encoder."};
  std::optional<Match> found = match_anchor(files, "patch_embed.proj.weight", kPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name,
            ": no tensor patch_embed.proj.weight, with or without encoder. in front");
  // the classifier is next to the encoder, which may have been taken for a model of its own
  constexpr std::string_view kInner = "encoder.";
  if (found->prefix.ends_with(kInner))
    found->outside = found->prefix.substr(0, found->prefix.size() - kInner.size());
  return found;
}

}  // namespace

constinit const Family kTimmTowerFamily{.name = "timm_towers",
                                        .anchor = "aligner.fc1.weight",
                                        .library = "",
                                        .match = match_timm_tower,
                                        .read = read_timm_tower};

}  // namespace vit::internal
