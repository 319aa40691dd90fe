#include "vit/weights/families/tower.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::mismatch};
constexpr SizeRange kSizes{1, 1u << 22};

/// model_type of whole models that have a tower which is known here.
constexpr std::string_view kWholeModels[] = {"qwen2_vl",
                                             "qwen2_5_vl",
                                             "qwen2_5_omni",
                                             "qwen2_5_omni_thinker",
                                             "qwen3_vl",
                                             "qwen3_vl_moe",
                                             "qwen3_5",
                                             "qwen3_5_moe",
                                             "qwen4_exp",
                                             "qwen3_omni_moe",
                                             "qwen3_omni_moe_thinker",
                                             "cohere_compass",
                                             "exaone4_5",
                                             "paddleocr_vl",
                                             "video_llama_3",
                                             "kimi_k25",
                                             "kimi_vl",
                                             "llava",
                                             "pixtral",
                                             "mistral3",
                                             "lighton_ocr",
                                             "glm4v",
                                             "glm4v_moe",
                                             "glm46v",
                                             "glm_ocr",
                                             "glm5_next",
                                             "llama4",
                                             "gemma4",
                                             "llavaonevision1_5",
                                             "llava_onevision1_5",
                                             "ernie4_5_vl_moe",
                                             "ernie4_5_moe_vl",
                                             "llava_next",
                                             "llava_next_video",
                                             "llava_onevision",
                                             "video_llava",
                                             "paligemma",
                                             "colpali",
                                             "colqwen2",
                                             "gemma3",
                                             "shieldgemma2",
                                             "idefics2",
                                             "idefics3",
                                             "smolvlm",
                                             "modernvbert",
                                             "colmodernvbert",
                                             "aya_vision",
                                             "cohere2_vision",
                                             "lfm2_vl",
                                             "janus",
                                             "deepseek_vl",
                                             "internvl",
                                             "qianfan_ocr",
                                             "ovis2",
                                             "blip",
                                             "blip-2",
                                             "instructblip",
                                             "instructblipvideo",
                                             "git",
                                             "kosmos-2",
                                             "phi4_multimodal",
                                             "hyperclovax_vision_v2",
                                             "molmo2",
                                             "vipllava",
                                             "idefics",
                                             "granite_docling",
                                             "pix2struct",
                                             "kosmos-2.5",
                                             "glm_image",
                                             "hunyuan_vl",
                                             "hy_v4_vl",
                                             "step3p7",
                                             "inkling2",
                                             "muse_glimmer",
                                             "muse_spark",
                                             "minimax_m3_vl",
                                             "ultravbert",
                                             "granite4_vision",
                                             "deepseek_vl_hybrid",
                                             "bridgetower",
                                             "perception_lm"};

/// What precedes the names of tower and projector in the files of whole models, the longest first.
constexpr std::string_view kOuter[] = {"thinker.",   "vlm.model.", "vlm.",   "model.model.",
                                       "model.git.", "git.",       "model.", ""};
/// What precedes the names of the tower itself.
constexpr std::string_view kTowerNames[] = {"visual.vision_model.",
                                            "visual.",
                                            "vision_tower.vision_model.",
                                            "vision_tower.",
                                            "image_tower.vision_model.",
                                            "image_tower.",
                                            "image_encoder.vision_model.",
                                            "vision_model.vision_model.",
                                            "vision_model.model.",
                                            "vision_model.",
                                            "vision.",
                                            "vision_encoder.",
                                            "encoder.",
                                            "vit.",
                                            "embed_tokens_extend.image_embed.img_processor.",
                                            ""};

/// A name without what precedes those of tower and projector.
std::string_view inner_name(std::string_view name) {
  for (const std::string_view outer : kOuter) {
    if (name.starts_with(outer)) return name.substr(outer.size());
  }
  return name;
}

std::span<const std::string_view> all_prefixes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string_view tower : kTowerNames) {
      for (const std::string_view outer : kOuter) all.push_back(std::string(outer).append(tower));
    }
    return all;
  }();
  static const std::vector<std::string_view> views(names.begin(), names.end());
  return views;
}

/// What connects a tower to its language model, without a "model." in front.
constexpr std::string_view kJoints[] = {"multi_modal_projector.",
                                        "mm_projector.",
                                        "mlp_AR.",
                                        "embed_vision.",
                                        "vision_language_adapter.",
                                        "projector.",
                                        "vision_projection.",
                                        "patch_merger.",
                                        "pre_mm_projector_norm.",
                                        "resampler_model.",
                                        "connector.",
                                        "aligner.",
                                        "visual_embeddings_table.",
                                        "mlp1.",
                                        "visual_projection.",
                                        "vision_projector.",
                                        "vision_adapter.",
                                        "patch_merge_mlp.",
                                        "vit_large_projector."};

constexpr Ignored kIgnored[] = {
    {"*", "of the language model, which is not read", Place::outside},
    {"rotary_pos_emb.inv_freq", "frequencies, recomputed"},
    {"*rotary_emb.inv_freq", "frequencies, recomputed"},
    {"patch_positional_embedding.inv_freq", "frequencies, recomputed"},
};

}  // namespace

constinit const std::span<const Ignored> kWholeModelIgnored = kIgnored;

bool is_whole_model(const Json& config) {
  if (find_nested(config, {"vision_encoder"}) && !config.find("model_type"))
    return true;  // Mistral's params.json
  const auto type = config.find_string("model_type");
  return type && std::ranges::find(kWholeModels, *type) != std::end(kWholeModels) &&
         (find_nested(config, {"vision_config", "thinker_config", "vlm_config"}) || *type != "pixtral");
}

bool is_page_model(const Json& config) {
  return config.find_string("model_type") == "colmodernvbert";
}

bool is_tower_name(std::string_view name) {
  const std::string_view inner = inner_name(name);
  const auto begins = [&](std::string_view front) { return !front.empty() && inner.starts_with(front); };
  return std::ranges::any_of(kTowerNames, begins) || std::ranges::any_of(kJoints, begins);
}

Json whole_config(const Json& config) {
  return nested_config(config, {"thinker_config", "vlm_config"});
}

Json tower_config(const Json& config) {
  const Json outer = whole_config(config);
  return nested_config(outer, {"vision_config", "vision_encoder"});
}

bool has_model_type(const SourceFiles& files, std::initializer_list<std::string_view> types) {
  if (!files.config) return false;
  const auto is_one = [&](const Json& config) {
    const std::string found = config.find_string("model_type").value_or("");
    return !found.empty() && std::ranges::find(types, found) != types.end();
  };
  return is_one(*files.config) || is_one(whole_config(*files.config));
}

Match match_tower(const SourceFiles& files, std::string_view anchor,
                  std::span<const std::string_view> prefixes) {
  std::optional<Match> found = match_anchor(files, anchor, prefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", in_quotes(anchor),
            ", with or without one of the prefixes that vision towers have (visual., vision_tower., ...); is "
            "its shard missing, or are these the weights of the language model only?");
  const auto outer =
      std::ranges::find_if(kOuter, [&](std::string_view front) { return found->prefix.starts_with(front); });
  found->outside = *outer == "thinker." ? "" : std::string(*outer);
  return *std::move(found);
}

Match match_tower(const SourceFiles& files, std::string_view anchor) {
  return match_tower(files, anchor, all_prefixes());
}

std::size_t find_tower_size(const Json& json, Keys keys, std::size_t fallback) {
  for (const char* key : keys) {
    const auto value = json.find(key);
    if (!value) continue;
    if (value->is_array()) {  // a size of two edges, or of frames
      const GridSize edges =
          value->size() == 1 ? read_edges((*value)[0], kSizes) : read_edges(*value, kSizes);
      VIT_CHECK(edges.rows == edges.columns, kWhere.with(ErrorKind::unsupported), value->where(),
                " must be square");
      return edges.rows;
    }
    return value->is_object() ? value->at("height").as_size(kSizes) : value->as_size(kSizes);
  }
  return fallback;
}

ModelConfig read_tower(const SourceFiles& files, const Json& json, const TowerDefaults& defaults) {
  for (const auto& [key, value] : files.options.overrides) {
    fail(kWhere.with(ErrorKind::argument), override_name(key),
         " is an argument of timm's models; this checkpoint has a configuration of its own, which says "
         "everything");
  }
  ModelConfig c;
  c.library = "transformers";
  if (const auto classes = files.config->find("architectures");
      classes && classes->is_array() && classes->size() != 0) {
    c.architecture = (*classes)[0].as_string();
  }
  c.embed_dim = find_tower_size(json, {"hidden_size"}, defaults.embed_dim);
  c.encoder.depth = find_tower_size(json, {"num_hidden_layers", "depth"}, defaults.depth);
  c.attention.num_heads = find_tower_size(json, {"num_attention_heads", "num_heads"}, defaults.num_heads);
  c.mlp.dim = find_tower_size(json, {"intermediate_size"}, defaults.mlp_dim);
  c.patch.size = find_tower_size(json, {"patch_size"}, defaults.patch_size);
  VIT_CHECK(find_tower_size(json, {"in_channels", "num_channels", "in_chans"}, 3) == 3,
            kWhere.with(ErrorKind::unsupported), json.where(), ": the number of channels must be 3");
  const std::size_t nominal = defaults.image_size != 0 ? defaults.image_size : 32 * c.patch.size;
  c.image.height = c.image.width = find_tower_size(json, {"image_size"}, nominal);
  c.encoder.norm.eps = static_cast<float>(defaults.norm_eps);
  c.mlp.activation = read_hf_activation(json, defaults.activation);
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  c.encoder.token_norm = false;
  return c;
}

std::vector<std::size_t> blocks_of_features(const Json& json, const FeatureDefaults& defaults,
                                            const ModelConfig& c) {
  std::vector<std::int64_t> layers(defaults.layers.begin(), defaults.layers.end());
  if (const auto value = json.find("vision_feature_layer")) {
    layers.clear();
    if (value->is_number()) layers.push_back(value->as_integer());
    for (std::size_t i = 0; value->is_array() && i < value->size(); ++i)
      layers.push_back((*value)[i].as_integer());
    VIT_CHECK(!layers.empty(), kWhere.with(ErrorKind::format), value->where(),
              " must be a block, or several");
  }
  const std::string strategy =
      json.find_string("vision_feature_select_strategy").value_or(defaults.drops_first ? "default" : "full");
  VIT_CHECK(strategy == "default" || strategy == "full", kWhere.with(ErrorKind::format), json.where(),
            ".vision_feature_select_strategy is ", in_quotes(strategy), ", not \"default\" or \"full\"");
  VIT_CHECK((strategy == "default") == c.tokens.class_token, kWhere.with(ErrorKind::unsupported),
            json.where(), ".vision_feature_select_strategy is ", in_quotes(strategy),
            c.tokens.class_token
                ? ": the class token as a visual token is not implemented"
                : ": a tower without class token whose first patch is dropped is not implemented");
  if (layers == std::vector<std::int64_t>{-1} && defaults.is_final) return {};
  std::vector<std::size_t> blocks;
  const auto depth = static_cast<std::int64_t>(c.encoder.depth);
  for (const std::int64_t layer : layers) {
    const std::int64_t block = layer < 0 ? depth + layer : layer - 1;
    VIT_CHECK(block >= 0 && block < depth, kWhere.with(ErrorKind::format), json.where(),
              ".vision_feature_layer ", layer, " is none of the ", depth, " blocks");
    blocks.push_back(static_cast<std::size_t>(block));
  }
  return blocks;
}

void fit_to_cells(const Json& json, ModelConfig& c) {
  const std::size_t size = c.merger->cells.size;
  VIT_CHECK(
      size >= 1 && size <= 64, kWhere.with(ErrorKind::format), json.where(), ": cells of ", size, " x ", size,
      " patches for a visual token (spatial_merge_size, merge_kernel_size or pooling_kernel_size); 1 to 64 "
      "are possible");
  VIT_CHECK(c.patch.size != 0, kWhere.with(ErrorKind::format), json.where(), ".patch_size must not be 0");
  const std::size_t edge = size * c.patch.size;
  c.image.height = c.image.width = std::max<std::size_t>(c.image.height / edge, 1) * edge;
}

std::size_t rows_of_tensor(const SourceFiles& files, std::string_view name, Place place,
                           std::size_t fallback) {
  const TensorEntry* const entry = files.find(name, place);
  return entry != nullptr && !entry->shape.empty() ? entry->shape[0] : fallback;
}

std::size_t text_width(const SourceFiles& files) {
  const auto text = whole_config(*files.config).find("text_config");
  return text && text->is_object() ? find_tower_size(*text, {"hidden_size"}, 4096) : 4096;
}

double read_rope_theta(const Json& json, double fallback) {
  if (const auto theta = json.find_double("rope_theta")) return *theta;
  const auto parameters = json.find("rope_parameters");
  if (!parameters || !parameters->is_object()) return fallback;
  const std::string type = parameters->find_string("rope_type").value_or("axial");
  VIT_CHECK(type == "axial" || type == "default", kWhere.with(ErrorKind::unsupported), parameters->where(),
            ".rope_type is ", in_quotes(type), "; towers have axial");
  return parameters->find_double("rope_theta").value_or(fallback);
}

void add_tower_rope(const Json& json, ModelConfig& config, double theta) {
  PositionConfig& position = config.position;
  position.rope = RopeKind::axial;
  position.axis_order = AxisOrder::y_then_x;
  position.pairing = RopePairing::halves;
  position.theta = read_rope_theta(json, theta);
}

std::vector<std::size_t> read_blocks(const Json& json, const char* key, std::vector<std::size_t> fallback) {
  const auto list = json.find(key);
  if (!list) return fallback;
  list->expect(Json::Kind::array);
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < list->size(); ++i) blocks.push_back((*list)[i].as_size({0, 1023}));
  return blocks;
}

std::vector<std::size_t> other_blocks(const std::vector<std::size_t>& listed, std::size_t depth) {
  std::vector<std::size_t> blocks;
  for (std::size_t block = 0; block < std::min<std::size_t>(depth, 1024); ++block) {
    if (std::ranges::find(listed, block) == listed.end()) blocks.push_back(block);
  }
  return blocks;
}

void add_whole_model_notes(const SourceFiles& files, ParsedModel& parsed) {
  if (!files.config || !is_whole_model(*files.config)) return;
  const std::size_t apart = files.tensors.contents().unread.size();
  std::size_t others = 0, bytes = 0;
  for (const TensorEntry& entry : files.tensors.entries()) {
    if (is_tower_name(entry.name)) continue;
    ++others;
    bytes += entry.bytes.size();
  }
  std::string name = parsed.config.architecture;
  if (name.empty()) name = hf_model_type(files);
  const bool has_pages = is_page_model(*files.config);
  std::string note =
      has_pages ? "the vision tower of a model of pages" : "the vision tower of a language model";
  if (!name.empty()) note += " (" + name + ")";
  if (others != 0) note += text("; ", others, " other tensors, ", bytes / 1'000'000, " MB, are not read");
  if (others != 0 && has_pages)
    note += " but by vit embed --features page and vit index --pages (vit/pages.h)";
  if (apart != 0) note += text("; ", apart, " lie in shards that are not opened");
  parsed.notes.push_back(std::move(note));
}

}  // namespace vit::internal
