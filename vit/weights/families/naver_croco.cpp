// The encoder of CroCo v2, which DUSt3R and MASt3R share, in the publisher's files. The first half of a head
// is rotated by the row of a patch and the second by its column, each in halves of its own; loading brings
// both to the one order. Source: naver/croco, models/croco.py, blocks.py and pos_embed.py.
#include <algorithm>
#include <charconv>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace naver_croco {
namespace {

constexpr Where kWhere{"naver_croco", ErrorKind::mismatch};

/// A third of qkv, sorted by axis.
constexpr Row sorted(Share third) {
  return halved_by_axis(joined(Part::qkv_weight, third, "enc_blocks.{}.attn.qkv.*", third));
}

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::norm1_gamma, "enc_blocks.{}.norm1.*"},
    sorted({0, 3}),
    sorted({1, 3}),
    joined(Part::qkv_weight, {2, 3}, "enc_blocks.{}.attn.qkv.*", {2, 3}),
    {Part::proj_weight, "enc_blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "enc_blocks.{}.norm2.*"},
    {Part::fc1_weight, "enc_blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "enc_blocks.{}.mlp.fc2.*"},
    {Part::norm_gamma, "enc_norm.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kDecoder[] = {
    {"mask_token", "used in training only"},
    {"decoder_embed.*", "of the decoder, which compares two images"},
    {"dec_blocks.*", "of the decoder, which compares two images"},
    {"dec_blocks2.*", "of the decoder, which compares two images"},
    {"dec_norm.*", "of the decoder, which compares two images"},
    {"dec_pos_embed", "of the decoder, which compares two images"},
    {"prediction_head.*", "of the decoder, which compares two images"},
    {"downstream_head*", "of the decoder, which compares two images"},
};

constexpr std::string_view kPrefixes[] = {"", "module."};

/// The argument `key` in the text of a call, "AsymmetricCroCo3DStereo(pos_embed='RoPE100', ...)"; "" if it
/// has none.
std::string argument_in(std::string_view call, std::string_view key) {
  for (std::size_t at = call.find(key); at != call.npos; at = call.find(key, at + 1)) {
    const std::size_t value = at + key.size() + 1;
    const bool is_whole = at != 0 && (call[at - 1] == '(' || call[at - 1] == ' ' || call[at - 1] == ',');
    if (!is_whole || value > call.size() || call[value - 1] != '=') continue;
    std::string text(call.substr(value, call.find_first_of(",)", value) - value));
    std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == ' '; });
    return text;
  }
  return "";
}

/// An argument of the encoder as the publisher's files note it: in config.json, under "croco_kwargs" of
/// CroCo, in the text that makes the model under "args" of DUSt3R and MASt3R; "" where none does.
std::string noted_argument(const SourceFiles& files, const std::string& key) {
  if (files.config) {
    const auto value = files.config->find(key);
    if (value && value->is_string()) return std::string(value->as_string());
    if (value && value->is_number()) return std::to_string(value->as_size({1, 1u << 20}));
  }
  const auto& facts = files.tensors.facts();
  if (const auto noted = facts.find("croco_kwargs." + key); noted != facts.end()) return noted->second;
  const auto call = facts.find("args.model");
  return call != facts.end() ? argument_in(call->second, key) : "";
}

/// Heads are 64 wide in all published models; bare tensors do not say, and --set num_heads is for others.
std::size_t num_heads_of(const SourceFiles& files, std::size_t width) {
  const auto given = files.options.overrides.find("num_heads");
  if (given != files.options.overrides.end()) {
    return parse_json(given->second, override_name("num_heads")).as_size({1, 1024});
  }
  const std::string noted = noted_argument(files, "enc_num_heads");
  if (noted.empty()) return std::max<std::size_t>(width / 64, 1);
  return parse_json(noted, files.weights_name + ": enc_num_heads").as_size({1, 1024});
}

/// "RoPE100": the base of the rotation. Throws Error for CroCo v1's sines and cosines.
double theta_of(const SourceFiles& files) {
  constexpr std::string_view kRope = "RoPE";
  std::string noted = noted_argument(files, "pos_embed");
  if (noted.empty()) noted = files.find("enc_pos_embed") != nullptr ? "cosine" : "RoPE100";
  double theta = 0.0;
  if (noted.starts_with(kRope))
    std::from_chars(noted.data() + kRope.size(), noted.data() + noted.size(), theta);
  VIT_CHECK(theta >= 1.0 && theta < 1e9, kWhere.with(ErrorKind::unsupported), files.weights_name,
            ": positions ", in_quotes(noted),
            " are not those of CroCo v2, DUSt3R and MASt3R, \"RoPE100\"; those of CroCo v1, sines and "
            "cosines, are not implemented");
  return theta;
}

ParsedModel read(const SourceFiles& files) {
  for (const auto& [key, value] : files.options.overrides) {
    VIT_CHECK(key == "num_heads" || key == "img_size", kWhere.with(ErrorKind::argument), override_name(key),
              " is no argument of CroCo's encoder; num_heads is");
  }
  const TensorEntry* const patch = files.find("patch_embed.proj.weight");
  const TensorEntry* const fc1 = files.find("enc_blocks.0.mlp.fc1.weight");
  VIT_CHECK(patch != nullptr && patch->shape.size() == 4 && fc1 != nullptr && fc1->shape.size() == 2, kWhere,
            files.weights_name,
            ": patch_embed.proj.weight (C, 3, P, P) and enc_blocks.0.mlp.fc1.weight (h, C) are expected");
  ParsedModel out{.config = {}, .layout = {kRows}, .ignored = {kDecoder}};
  ModelConfig& c = out.config;
  c.family = "croco";
  c.library = "Naver";
  c.embed_dim = patch->shape[0];
  c.patch.size = patch->shape[2];
  c.encoder.depth = files.count_blocks("enc_blocks.");
  c.mlp.dim = fc1->shape[0];
  c.attention.num_heads = num_heads_of(files, c.embed_dim);
  c.image.height = c.image.width = 14 * c.patch.size;
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  PositionConfig& position = c.position;
  position.rope = RopeKind::axial;
  position.axis_order = AxisOrder::y_then_x;
  position.pairing = RopePairing::halves;
  position.theta = theta_of(files);
  if (noted_argument(files, "enc_num_heads").empty())
    out.notes.push_back("heads of " + std::to_string(c.head_width()) +
                        " channels, which the tensors do not say (--set num_heads for others)");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!files.has_weights || files.tensors.entries().empty()) return std::nullopt;
  return match_anchor(files, "enc_blocks.0.attn.qkv.weight", kPrefixes);
}

}  // namespace
}  // namespace naver_croco

constinit const Family kCroCoFamily{.name = "croco",
                                    .anchor = "enc_blocks.0.attn.qkv.weight",
                                    .library = "",
                                    .match = naver_croco::match,
                                    .read = naver_croco::read};

}  // namespace vit::internal
