// The encoder of pages of ColModernVBERT: ModernBERT over tokens of a text and visual tokens, and a
// projection. Source: transformers, models/colmodernvbert and modernbert.
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_modernvbert {
namespace {

constexpr Where kWhere{"hf_modernvbert", ErrorKind::unsupported};
constexpr std::string_view kPrefixes[] = {"vlm.text_model."};
constexpr SizeRange kCount{0, std::size_t{1} << 26};

constexpr Row kRows[] = {
    {Part::token_table, "embeddings.tok_embeddings.weight"},
    {Part::embed_norm_gamma, "embeddings.norm.*"},
    {Part::norm1_gamma, "layers.{}.attn_norm.*"},
    {Part::qkv_weight, "layers.{}.attn.Wqkv.*"},
    {Part::proj_weight, "layers.{}.attn.Wo.*"},
    {Part::norm2_gamma, "layers.{}.mlp_norm.*"},
    cut(Part::gate_weight, "layers.{}.mlp.Wi.*", {0, 2}),
    cut(Part::fc1_weight, "layers.{}.mlp.Wi.*", {1, 2}),
    {Part::fc2_weight, "layers.{}.mlp.Wo.*"},
    {Part::norm_gamma, "final_norm.*"},
    at(Place::outside, {Part::projection_weight, "embedding_proj_layer.*"}),
};
static_assert(is_sound(kRows));

constexpr Ignored kIgnored[] = {{"vlm.vision_model.*", "image tower", Place::outside},
                                {"vlm.connector.*", "image tower", Place::outside}};

/// "layer_types", or every global_attn_every_n_layers-th block is global.
std::vector<std::uint8_t> local_blocks(const Json& json, std::size_t depth) {
  std::vector<std::uint8_t> out;
  if (const auto types = json.find("layer_types"); types && types->is_array()) {
    for (std::size_t i = 0; i < types->size(); ++i)
      out.push_back(
          read_choice<std::uint8_t>((*types)[i], {{"full_attention", 0}, {"sliding_attention", 1}}));
    return out;
  }
  const std::size_t every = json.find_size("global_attn_every_n_layers", {1, 4096}).value_or(3);
  for (std::size_t i = 0; i < depth; ++i) out.push_back(i % every != 0 ? 1 : 0);
  return out;
}

void check_rotation(const Json& parameters) {
  auto type = parameters.find_string("rope_type");
  if (!type) type = parameters.find_string("type");
  const std::string name = type.value_or("default");
  VIT_CHECK(name == "default", kWhere, parameters.where(), ".rope_type is ", in_quotes(name),
            ", which is not implemented for encoders of pages; \"default\" is");
}

/// The base of the rotation of one kind of blocks. "rope_scaling", the name of older files, replaces members
/// of "rope_parameters".
double theta_of(const Json& json, const char* kind, const char* former, double fallback) {
  double theta = json.find_double(former).value_or(fallback);
  if (const auto all = json.find("rope_parameters")) {
    all->expect(Json::Kind::object);
    for (std::size_t i = 0; i < all->size(); ++i) {
      const Json of_kind = (*all)[i];
      of_kind.expect(Json::Kind::object);
      check_rotation(of_kind);
      if (of_kind.key() == kind) theta = of_kind.find_double("rope_theta").value_or(theta);
    }
  }
  if (const auto scaling = json.find("rope_scaling")) {
    scaling->expect(Json::Kind::object);
    check_rotation(*scaling);
    theta = scaling->find_double("rope_theta").value_or(theta);
  }
  return theta;
}

PageConfig read_config(const Json& whole, const Json& vlm, const Json& json) {
  PageConfig c{.family = "modernvbert"};
  c.vocabulary_size = json.find_size("vocab_size", kCount).value_or(c.vocabulary_size);
  c.width = json.find_size("hidden_size", kCount).value_or(c.width);
  c.depth = json.find_size("num_hidden_layers", kCount).value_or(c.depth);
  c.num_heads = json.find_size("num_attention_heads", kCount).value_or(c.num_heads);
  c.mlp_dim = json.find_size("intermediate_size", kCount).value_or(c.mlp_dim);
  c.norm_eps = static_cast<float>(json.find_double("norm_eps").value_or(1e-5));
  c.qkv_bias = json.find_bool("attention_bias").value_or(false);
  c.mlp_bias = json.find_bool("mlp_bias").value_or(false);
  c.activation = read_hf_activation(json, Activation::gelu, "hidden_activation");
  c.is_local = local_blocks(json, c.depth);
  const std::size_t reach = json.find_size("local_attention", kCount).value_or(128) / 2;
  c.reach = json.find_size("sliding_window", kCount).value_or(reach);
  c.global_theta = theta_of(json, "full_attention", "global_rope_theta", c.global_theta);
  c.local_theta = theta_of(json, "sliding_attention", "local_rope_theta", c.local_theta);
  c.dim = whole.find_size("embedding_dim", kCount).value_or(c.dim);
  const auto image_token = vlm.find_size("image_token_id", {0, 1u << 30});
  c.image_token = static_cast<std::int32_t>(image_token.value_or(50407));
  return c;
}

}  // namespace
}  // namespace hf_modernvbert

std::optional<ParsedPage> read_page_encoder(const SourceFiles& files) {
  using namespace hf_modernvbert;
  if (hf_model_type(files) != "colmodernvbert") return std::nullopt;
  const auto match = match_anchor(files, "embeddings.tok_embeddings.weight", kPrefixes);
  if (!match) return std::nullopt;
  const Json vlm = files.config->at("vlm_config"), text = vlm.at("text_config");
  ParsedPage out{.config = read_config(*files.config, vlm, text),
                 .match = *match,
                 .layout = {kRows},
                 .ignored = {kIgnored}};
  if (!text.find_bool("norm_bias").value_or(false)) {
    for (const Part beta : {Part::embed_norm_beta, Part::norm1_beta, Part::norm2_beta, Part::norm_beta})
      out.layout.set_zeros(beta, 0);
  }
  return out;
}

}  // namespace vit::internal
