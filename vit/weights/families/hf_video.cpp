// VideoMAE and ViViT in the files of transformers, bare or with a classifier: clips of a fixed number of
// frames, two to a patch, all of whose tokens attend to each other; added positions number the patches of the
// whole clip. An image is a clip of equal frames. Source: transformers, models/videomae and vivit.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_video {
namespace {

constexpr Where kWhere{"hf_video", ErrorKind::unsupported};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";
constexpr std::string_view kPrefixes[] = {"videomae.", "vivit.", ""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::frames},
    {Part::clip_weight, kAnchor, Form::frames_apart},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.weight"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.weight"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.weight"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"},
    {Part::fc2_weight, "encoder.layer.{}.output.dense.*"},
    {Part::norm_gamma, "layernorm.*"},
    at(Place::outside, {Part::pooled_norm_gamma, "fc_norm.*"}),
    at(Place::outside, {Part::head_weight, "classifier.*"}),
};
constexpr Row kVideoMae[] = {
    {.part = Part::position_table, .form = Form::sincos_in_order, .constant = 10000.0f},
    joined(Part::qkv_bias, {0, 3}, "encoder.layer.{}.attention.attention.q_bias"),
    joined(Part::qkv_bias, {1, 3}, ""),
    joined(Part::qkv_bias, {2, 3}, "encoder.layer.{}.attention.attention.v_bias"),
};
constexpr Row kVivit[] = {
    {Part::class_token, "embeddings.cls_token"},
    {Part::position_table, "embeddings.position_embeddings"},
    joined(Part::qkv_bias, {0, 3}, "encoder.layer.{}.attention.attention.query.bias"),
    joined(Part::qkv_bias, {1, 3}, "encoder.layer.{}.attention.attention.key.bias"),
    joined(Part::qkv_bias, {2, 3}, "encoder.layer.{}.attention.attention.value.bias"),
    {Part::pooler_weight, "pooler.dense.*"},
};
static_assert(is_complete(kRows) && is_sound(kVideoMae) && is_sound(kVivit));

constexpr Ignored kIgnored[] = {
    {"encoder_to_decoder.*", "decoder of the pretraining task", Place::outside},
    {"decoder.*", "decoder of the pretraining task", Place::outside},
    {"mask_token", "decoder of the pretraining task", Place::outside},
    {"position_embeddings", "decoder of the pretraining task", Place::outside},
};

/// Frames of a clip, and the steps in time of its patches.
void set_steps(const Json& json, std::size_t num_frames, ModelConfig& c) {
  c.image.stack = StackRule::together;
  c.image.fixed_size = true;
  VIT_CHECK(c.patch.size != 0 && c.patch.frames > 1 && num_frames % c.patch.frames == 0, kWhere, json.where(),
            ": clips of ", num_frames, " frames, ", c.patch.frames,
            " to a patch, are not implemented; the frames of a patch must be 2 or more and divide them");
  c.position.added_steps = num_frames / c.patch.frames;
  c.position.added_grid = c.native_grid();
}

void set_video_mae(const SourceFiles& files, const Json& json, ModelConfig& c) {
  c.family = "videomae";
  c.tokens.class_token = false;
  c.patch.frames = find_tower_size(json, {"tubelet_size"}, 2);
  set_steps(json, find_tower_size(json, {"num_frames"}, 16), c);
  c.position.added = AddedTable::patches;
  c.attention.qkv_bias = json.find_bool("qv_bias").value_or(true);
  const bool takes_mean = json.find_bool("use_mean_pooling").value_or(true);
  c.encoder.token_norm = !takes_mean;
  c.head.pooling = takes_mean ? Pooling::patch_mean : Pooling::first_token;
  if (takes_mean && files.tensors.find("fc_norm.weight") != nullptr) {
    c.head.pooled_norm = true;
    c.head.pooled_norm_eps = 1e-5f;  // whatever layer_norm_eps says
  }
}

void set_vivit(const SourceFiles& files, const Json& json, ModelConfig& c) {
  c.family = "vivit";
  const auto tube = json.find("tubelet_size");
  VIT_CHECK(!tube || (tube->is_array() && tube->size() == 3), kWhere, json.where(),
            ".tubelet_size must be three numbers");
  c.patch.frames = tube ? (*tube)[0].as_size({1, 64}) : 2;
  c.patch.size = tube ? (*tube)[1].as_size({1, 4096}) : 16;
  VIT_CHECK(!tube || (*tube)[2].as_size({1, 4096}) == c.patch.size, kWhere, tube->where(),
            " must have square patches");
  set_steps(json, find_tower_size(json, {"num_frames"}, 32), c);
  c.position.added = AddedTable::prefix_and_patches;
  c.position.added_prefix_rows = 1;
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.head.pooler = files.find("pooler.dense.weight") != nullptr;
  const std::string activation = json.find_string("pooler_act").value_or("tanh");
  VIT_CHECK(!c.head.pooler || activation == "tanh", kWhere, json.where(),
            ".pooler_act other than \"tanh\" is not implemented");
}

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  const bool is_vivit = hf_model_type(files) == "vivit";
  ParsedModel out{
      .config = read_hf_sizes(files, json,
                              {.norm_eps = is_vivit ? 1e-6 : 1e-12,
                               .activation = is_vivit ? Activation::gelu_tanh : Activation::gelu}),
      .layout = {kRows},
      .ignored = {kIgnored}};
  out.layout.add(is_vivit ? std::span<const Row>(kVivit) : kVideoMae);
  ModelConfig& c = out.config;
  is_vivit ? set_vivit(files, json, c) : set_video_mae(files, json, c);
  c.head.num_classes = count_hf_classes(files, "classifier");
  c.head.labels = read_hf_labels(json, c.head.num_classes);
  out.notes.push_back("an image is a clip of equal frames");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "videomae" && type != "vivit") return std::nullopt;
  return match_tower(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_video

constinit const Family kHfVideoFamily{.name = "hf_video",
                                      .anchor = hf_video::kAnchor,
                                      .prefixes = hf_video::kPrefixes,
                                      .library = "",
                                      .head = "classifier",
                                      .head_place = Place::outside,
                                      .match = hf_video::match,
                                      .read = hf_video::read};

}  // namespace vit::internal
