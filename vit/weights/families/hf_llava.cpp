// Language models and page encoders with a tower of CLIP or SigLIP: LLaVA and those like it, PaliGemma,
// Gemma 3, Idefics 3 and SmolVLM, Aya Vision, Command A Vision, LFM2-VL, Janus, DeepSeek-VL, ModernVBERT.
// They differ in the block whose tokens are read and in the projector. Source: transformers, models of these
// names.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_clip.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_llava {
namespace {

constexpr Where kWhere{"hf_llava", ErrorKind::unsupported};

constexpr Row outside(Part part, std::string_view source, Form form = Form::as_stored) {
  return at(Place::outside, {part, source, form});
}
constexpr Row kMlp[] = {
    outside(Part::merger_norm_gamma, "multi_modal_projector.layer_norm.*"),
    outside(Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"),
    outside(Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"),
};
constexpr Row kVipLlava[] = {
    outside(Part::merger_norm_gamma, "multi_modal_projector.projector_layernorm.*"),
    outside(Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"),
    outside(Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"),
};
constexpr Row kGatedMlp[] = {
    outside(Part::merger_norm_gamma, "multi_modal_projector.layernorm.*"),
    at(Place::outside, cut(Part::merger_fc1_weight, "multi_modal_projector.linear_1.*", {0, 2})),
    at(Place::outside, cut(Part::merger_gate_weight, "multi_modal_projector.linear_1.*", {1, 2})),
    outside(Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"),
};
constexpr Row kLinear[] = {outside(Part::merger_projection_weight, "multi_modal_projector.linear.*")};
constexpr Row kGemma[] = {
    outside(Part::merger_norm_gamma, "multi_modal_projector.mm_soft_emb_norm.weight", Form::one_added),
    outside(Part::merger_projection_weight, "multi_modal_projector.mm_input_projection_weight",
            Form::transposed),
};
constexpr Row kIdefics[] = {outside(Part::merger_projection_weight, "connector.modality_projection.proj.*")};
constexpr Row kModernVbert[] = {outside(Part::merger_projection_weight, "connector.modality_projection.*")};
constexpr Row kUltraVbert[] = {outside(Part::merger_projection_weight, "connector.modality_projection.*"),
                               outside(Part::merger_out_norm_gamma, "connector.norm.weight")};
constexpr Row kJanus[] = {outside(Part::merger_fc1_weight, "aligner.fc1.*"),
                          outside(Part::merger_fc2_weight, "aligner.hidden_layers.0.*")};
constexpr Row kDeepSeek[] = {outside(Part::merger_fc1_weight, "aligner.linear1.*"),
                             outside(Part::merger_fc2_weight, "aligner.linear2.*")};
static_assert(is_sound(kMlp) && is_sound(kVipLlava) && is_sound(kGatedMlp) && is_sound(kLinear) &&
              is_sound(kGemma) && is_sound(kIdefics) && is_sound(kModernVbert) && is_sound(kUltraVbert) &&
              is_sound(kJanus) && is_sound(kDeepSeek));

constexpr Ignored kPageEncoder[] = {
    {"*", "of the encoder of pages, which vit embed --features page reads", Place::outside}};

enum class Projector { linear, mlp, gated_mlp };

/// The tokens that are read where config.json does not say.
enum class Features {
  final,         // of the last block, after the final norm
  last,          // of the last block, before it
  last_but_one,  // of the block before the last
  five,          // of five blocks
};

FeatureDefaults defaults_of(Features features) {
  switch (features) {
    case Features::last: return {};
    case Features::last_but_one: return {.layers = {-2}, .drops_first = true};
    case Features::five: return {.layers = {-2, -5, -8, -11, 6}, .drops_first = true};
    case Features::final: break;
  }
  return {.is_final = true};
}

/// A whole model by its model_type.
struct Host {
  std::string_view type;
  std::string_view tower;          // model_type of the tower whose configuration names none
  std::span<const Row> rows = {};  // of the projector; empty = it is not implemented
  Projector projector = Projector::linear;
  Features features = Features::final;
  bool bias = true;                          // of the projector
  std::string_view cells{};                  // the edge of a cell in config.json
  std::size_t cell = 1;                      // ... and its default
  std::string_view eps_key{};                // the epsilon of the norm of cells
  float norm_eps = 0.0f;                     // ... and its default; 0 = there is no norm
  Activation activation = Activation::gelu;  // of an MLP
};
constexpr std::string_view kClip = "clip_vision_model", kSiglip = "siglip_vision_model";
constexpr Projector kOne = Projector::linear, kTwo = Projector::mlp, kGated = Projector::gated_mlp;
constexpr Activation kSilu = Activation::silu;

// clang-format off
constexpr Host kHosts[] = {
    {"llava", kClip, kMlp, kTwo, Features::last_but_one},
    {"llava_next", kClip, kMlp, kTwo, Features::last_but_one},
    {"llava_next_video", kClip, kMlp, kTwo, Features::last_but_one},
    {"video_llava", kClip, kMlp, kTwo, Features::last_but_one},
    {"vipllava", kClip, kVipLlava, kTwo, Features::five, true, {}, 1, "projector_layernorm_eps", 1e-5f},
    {"llava_onevision", kSiglip, kMlp, kTwo, Features::last},
    {"paligemma", kSiglip, kLinear, kOne},
    {"gemma3", kSiglip, kGemma, kOne, Features::final, false},
    {"shieldgemma2", kSiglip, kGemma, kOne, Features::final, false},
    {"idefics3", "idefics3_vision", kIdefics, kOne, Features::final, false, "scale_factor", 2},
    {"smolvlm", "smolvlm_vision", kIdefics, kOne, Features::final, false, "scale_factor", 2},
    {"modernvbert", kSiglip, kModernVbert, kOne, Features::final, false, "pixel_shuffle_factor", 4},
    {"ultravbert", kSiglip, kUltraVbert, kOne, Features::final, false, "pixel_shuffle_factor", 4},
    {"aya_vision", kSiglip, kGatedMlp, kGated, Features::last, true, "downsample_factor", 2, "adapter_layer_norm_eps", 1e-6f, kSilu},
    {"cohere2_vision", kSiglip, kGatedMlp, kGated, Features::final, true, "downsample_factor", 2, {}, 0.0f, kSilu},
    {"lfm2_vl", "siglip2_vision_model", kMlp, kTwo, Features::final, true, "downsample_factor", 2, {}, 1e-5f},
    {"janus", "janus_vision_model", kJanus, kTwo},
    {"deepseek_vl", kSiglip, kDeepSeek, kTwo},
    {"kosmos-2", "kosmos_2_vision_model"},
    {"git", "git_vision_model"},
    {"idefics", "idefics_vision"},
    {"idefics2", "idefics2_vision"},
    {"granite_docling", "granite_docling_vision"},
    {"granite4_vision", kClip},
    {"deepseek_vl_hybrid", kSiglip},  // the tower of low resolution
};
// clang-format on

const Host* find_host(const SourceFiles& files) {
  const auto found =
      std::ranges::find_if(kHosts, [&](const Host& host) { return has_model_type(files, {host.type}); });
  return found == std::end(kHosts) ? nullptr : found;
}

const ClipType& tower_type(const SourceFiles& files, const Host& host) {
  const std::string name =
      tower_config(*files.config).find_string("model_type").value_or(std::string(host.tower));
  const ClipType* const found = find_clip_type(name);
  VIT_CHECK(found != nullptr, kWhere, files.config_name(), ": a model of the type ", in_quotes(host.type),
            " with a vision tower of the type ", in_quotes(name), " is not implemented; with ",
            in_quotes(host.tower), " it is");
  return *found;
}

/// Means of cells, such that mm_tokens_per_image of them are left.
void set_gemma_cells(const Json& json, ModelConfig& c) {
  const auto tokens = static_cast<double>(json.find_size("mm_tokens_per_image", {1, 1u << 20}).value_or(256));
  const auto edge = static_cast<std::size_t>(std::sqrt(tokens));
  c.merger->cells = {.size = std::max<std::size_t>(c.native_grid().rows / edge, 1), .rule = CellRule::mean};
  c.merger->add(MergerPlace::cell_norm,
                MergerNorm{.norm = {.kind = NormKind::rms, .eps = c.encoder.norm.eps}});
}

/// The norm of visual tokens has the epsilon of those of the language model.
void set_out_norm(const Json& json, MergerConfig& merger) {
  const auto of_text = json.find("text_config");
  const bool has = of_text && of_text->is_object();
  const double eps = has ? of_text->find_double("rms_norm_eps").value_or(1e-6) : 1e-6;
  merger.add(MergerPlace::out_norm,
             MergerNorm{.norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)}});
}

void set_merger(const SourceFiles& files, const Host& host, const Layout& layout, ModelConfig& c) {
  const Json json = whole_config(*files.config);
  const auto rows_of = [&](Part part, std::size_t fallback, std::size_t dimension = 0) {
    const TensorEntry* const entry = files.find(layout, part);
    return entry != nullptr && entry->shape.size() > dimension ? entry->shape[dimension] : fallback;
  };
  MergerConfig& merger = c.merger.emplace();
  merger.blocks = blocks_of_features(json, defaults_of(host.features), c);
  if (!host.cells.empty()) merger.cells.size = find_tower_size(json, {host.cells.data()}, host.cell);
  const bool has_norm = host.norm_eps != 0 && json.find_bool("projector_use_layernorm").value_or(true);
  if (has_norm) {
    const double eps =
        host.eps_key.empty() ? host.norm_eps : json.find_double(host.eps_key.data()).value_or(host.norm_eps);
    merger.add(MergerPlace::cell_norm, MergerNorm{.norm = {.eps = static_cast<float>(eps)}});
  }
  const bool is_gemma = host.rows.data() == kGemma;
  if (is_gemma) set_gemma_cells(json, c);
  const bool has_bias = json.find_bool("multimodal_projector_bias")
                            .value_or(json.find_bool("projector_bias").value_or(host.bias));
  if (host.projector == Projector::linear) {
    merger.add(MergerPlace::projection, MergerLinear{.dim = rows_of(Part::merger_projection_weight,
                                                                    text_width(files), is_gemma ? 1 : 0),
                                                     .bias = has_bias});
    if (host.rows.data() == kUltraVbert) set_out_norm(json, merger);
  } else {
    const bool is_gated = host.projector == Projector::gated_mlp;
    const std::size_t hidden = rows_of(Part::merger_fc1_weight, text_width(files));
    // That of Janus is the tower's own.
    const bool is_janus = host.rows.data() == kJanus;
    if (is_janus) {
      const std::size_t depth = find_tower_size(tower_config(*files.config), {"depth"}, 2);
      VIT_CHECK(depth == 2, kWhere, files.config_name(), ": vision_config.depth is ", depth,
                "; an aligner of other than 2 layers is not implemented");
    }
    const Activation activation =
        is_janus ? c.mlp.activation : read_hf_activation(json, host.activation, "projector_hidden_act");
    merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = is_gated ? hidden / 2 : hidden,
                                           .out_dim = rows_of(Part::merger_fc2_weight, text_width(files)),
                                           .gated = is_gated,
                                           .bias = has_bias,
                                           .activation = activation});
  }
  fit_to_cells(json, c);
}

ParsedModel read(const SourceFiles& files) {
  const Host& host = *find_host(files);
  const ClipType& type = tower_type(files, host);
  ModelConfig c = read_clip_tower(files, tower_config(*files.config), type);
  c.head.pooling = Pooling::none;
  c.head.pooled_norm = false;
  if (!host.rows.empty()) c.image.stack = StackRule::apart;  // tiles
  ParsedModel out{
      .config = std::move(c), .layout = clip_layout(type.kind), .ignored = {kClipIgnored, kClipUnpooled}};
  if (is_page_model(*files.config)) out.ignored.push_back(kPageEncoder);
  out.ignored.push_back(kWholeModelIgnored);
  out.layout.add(host.rows);
  if (!host.rows.empty()) set_merger(files, host, out.layout, out.config);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (find_host(files) == nullptr) return std::nullopt;
  return match_tower(files, "embeddings.patch_embedding.weight");
}

}  // namespace
}  // namespace hf_llava

constinit const Family kHfLlavaFamily{.name = "hf_llava",
                                      .anchor = "embeddings.patch_embedding.weight",
                                      .library = "",
                                      .match = hf_llava::match,
                                      .read = hf_llava::read};

}  // namespace vit::internal
