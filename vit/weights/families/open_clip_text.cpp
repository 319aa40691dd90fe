// OpenCLIP's own text tower, which open_clip_config.json describes. Text models of transformers
// inside OpenCLIP and CoCa's are refused by name. Source: mlfoundations/open_clip, src/open_clip/model.py
// (CLIPTextCfg, _build_text_tower) and transformer.py (TextTransformer).
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/open_clip_config.h"
#include "vit/weights/families/openai_clip.h"

namespace vit::internal {
namespace open_clip_text {
namespace {

constexpr Where kWhere{"open_clip", ErrorKind::unsupported};
// Models whose text tower has a prefix; old files of them lack it.
constexpr std::string_view kPrefixes[] = {"text.", ""};
constexpr SizeRange kRowCount{1, std::size_t{1} << 26};

constexpr Row kLinearProjection[] = {{Part::projection_weight, "text_projection.*"}};
static_assert(is_sound(kLinearProjection));

/// Fields of the tokenizer and of training, and those that change nothing for one pooled token.
constexpr std::string_view kInert[] = {
    "hf_tokenizer_name", "tokenizer_kwargs", "tokenizer_mode",     "pad_id",
    "output_tokens",     "block_type",       "hf_proj_type",       "hf_model_pretrained",
    "hf_pooler_type",    "eos_id",           "final_ln_after_pool"};

TextPooling pooling_of(const Json& value) {
  return read_choice<TextPooling>(value, {{"argmax", TextPooling::largest_id},
                                          {"eos", TextPooling::end_token},
                                          {"last", TextPooling::last},
                                          {"first", TextPooling::first}});
}

/// Fields of text_cfg that are not copied as they are.
struct Extras {
  double mlp_ratio = 4.0;
  bool has_projection = true, tanh = false;
};

/// Sets one field; false for an unknown one.
bool set_field(const Json& value, TextConfig& c, Extras& extras) {
  const std::string_view key = value.key();
  if (key == "context_length") {
    c.context_length = value.as_size(kRowCount);
  } else if (key == "vocab_size") {
    c.vocabulary_size = value.as_size(kRowCount);
  } else if (key == "width") {
    c.width = value.as_size(kOpenClipCount);
  } else if (key == "heads") {
    c.num_heads = value.as_size(kOpenClipCount);
  } else if (key == "layers") {
    c.depth = value.as_size(kOpenClipCount);
  } else if (key == "mlp_ratio") {
    extras.mlp_ratio = value.as_double();
  } else if (key == "no_causal_mask") {
    c.mask = value.as_bool() ? TextMask::none : TextMask::causal;
  } else if (key == "pool_type") {
    c.pooling = pooling_of(value);
  } else if (key == "proj_type") {
    extras.has_projection = read_choice<bool>(value, {{"linear", true}, {"none", false}});
  } else if (key == "proj_bias") {
    c.projection_bias = value.as_bool();
  } else if (key == "act_kwargs") {
    const auto form = only_member(value, "approximate");
    extras.tanh = form && read_choice<bool>(*form, {{"none", false}, {"tanh", true}});
  } else if (key == "norm_kwargs") {
    if (const auto eps = only_member(value, "eps")) c.norm_eps = static_cast<float>(eps->as_double());
  } else {
    return std::ranges::find(kInert, key) != std::end(kInert);
  }
  return true;
}

void read_text_cfg(const Json& json, TextConfig& c, Extras& extras) {
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Json value = json[i];
    if (value.is_null()) continue;
    const std::string_view key = value.key();
    if (key == "hf_model_name" || key == "ls_init_value" || (key == "embed_cls" && value.as_bool()))
      fail(kWhere, value.where(), " asks for a text tower that is not implemented");
    if (is_open_clip_switch(key) || key == "embed_cls") {
      VIT_CHECK(value.is_bool() && !value.as_bool(), kWhere, value.where(),
                " is set, which is not implemented");
      continue;
    }
    VIT_CHECK(set_field(value, c, extras), kWhere, value.where(), ": unknown field");
  }
  c.end_token = static_cast<std::int32_t>(json.find_size("eos_id", {0, kRowCount.max}).value_or(2));
}

std::optional<ParsedText> read(const SourceFiles& files) {
  if (!files.config || !files.config->find("model_cfg")) return std::nullopt;
  const auto match = match_anchor(files, "token_embedding.weight", kPrefixes);
  const Json model = open_clip_model_cfg(files);
  const auto text_cfg = model.find("text_cfg");
  if (!text_cfg) return std::nullopt;
  VIT_CHECK(!model.find("multimodal_cfg"), kWhere, model.where(),
            ".multimodal_cfg asks for a text tower that is not implemented");
  TextConfig c;
  Extras extras;
  read_text_cfg(*text_cfg, c, extras);
  VIT_CHECK(match, kWhere.with(ErrorKind::mismatch), files.weights_name,
            ": no tensor token_embedding.weight, with or without the prefix text., which the text tower of ",
            files.config->where(), " has; are these weights another library's?");
  c.family = "clip";
  c.library = "OpenCLIP";
  c.mlp_dim = static_cast<std::size_t>(
      std::clamp(static_cast<double>(c.width) * extras.mlp_ratio, 0.0, 1e9));  // cut as int() does
  const bool quick = model.find_bool("quick_gelu").value_or(false);
  VIT_CHECK(!quick || !extras.tanh, kWhere, model.where(), ": quick_gelu has no tanh form");
  c.activation = quick ? Activation::quick_gelu : extras.tanh ? Activation::gelu_tanh : Activation::gelu;
  if (extras.has_projection) c.projection_dim = model.at("embed_dim").as_size(kOpenClipCount);
  c.projection_bias = c.projection_bias && extras.has_projection;
  const bool has_bias = model.find("init_logit_bias").has_value();
  c.score = {.kind = has_bias ? TextScore::Kind::sigmoid : TextScore::Kind::softmax};

  Layout layout = openai_text_layout();
  if (c.projection_bias) layout.add(kLinearProjection);
  if (has_bias) layout.add(kLogitScaleAndBias);
  return ParsedText{
      .config = std::move(c), .match = *match, .layout = std::move(layout), .ignored = {kOpenAiTextIgnored}};
}

}  // namespace
}  // namespace open_clip_text

constinit const TextFamily kOpenClipTextFamily{.name = "open_clip_text", .read = open_clip_text::read};

}  // namespace vit::internal
