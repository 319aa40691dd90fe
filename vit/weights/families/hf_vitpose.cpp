// Hugging Face's ViTPose and ViTPose+: a plain ViT without class token, whose patches are cut from an image
// with two rows and columns of zeros in front, and one of two decoders. Of ViTPose+ the last channels of each
// MLP are made by a layer of the data set that is asked for. Source: transformers, models/vitpose,
// vitpose_backbone.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_vitpose {
namespace {

constexpr Where kWhere{"hf_vitpose", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"backbone."};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";
constexpr std::size_t kPadding = 2;       // of the patch convolution, which no configuration changes
constexpr std::size_t kMostExperts = 64;  // ViTPose+ has 6

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::position_table, "embeddings.position_embeddings", Form::first_added},
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
    {Part::norm_gamma, "layernorm.*"},
};
static_assert(is_complete(kRows));

constexpr HeadRow kSimple[] = {
    {"norm.*", "layernorm.*", 1, 0, Place::tower},
    {"last.*", "head.conv.*"},
};
constexpr HeadRow kClassic[] = {
    {"doubling.{}.*", "head.deconv{}.*", 1, 1},
    {"doubling_norm.{}.*", "head.batchnorm{}.*", 1, 1},
};
constexpr Ignored kCounters[] = {
    {"head.batchnorm1.num_batches_tracked", "counter of a training run", Place::outside},
    {"head.batchnorm2.num_batches_tracked", "counter of a training run", Place::outside},
};

/// The names of the expert that is read, and of those that are not.
struct ExpertNames {
  explicit ExpertNames(std::size_t chosen, std::size_t count)
      : chosen_name("encoder.layer.{}.mlp.experts." + std::to_string(chosen) + ".*"),
        rows{Row{Part::fc2_expert_weight, chosen_name}} {
    for (std::size_t expert = 0; expert < count; ++expert) {
      if (expert == chosen) continue;
      for (const char* const part : {".weight", ".bias"})
        names.push_back("*.mlp.experts." + std::to_string(expert) + part);
    }
    for (const std::string& name : names) others.push_back({name, "of another data set (--expert)"});
  }
  std::string chosen_name;
  std::array<Row, 1> rows;
  std::vector<std::string> names;
  std::vector<Ignored> others;
};

/// The backbone's part of config.json, or the whole where only the backbone is saved.
Json backbone_config(const SourceFiles& files) {
  return hf_model_type(files) == "vitpose" ? files.config->at("backbone_config") : *files.config;
}

std::size_t num_experts(const SourceFiles& files) {
  return backbone_config(files).find_size("num_experts", {1, kMostExperts}).value_or(1);
}

ModelConfig read_config(const SourceFiles& files) {
  const Json json = backbone_config(files);
  ModelConfig c = read_hf_sizes(files, json, {.norm_eps = 1e-12});
  if (!json.find("image_size")) {
    c.image.height = 256;
    c.image.width = 192;
  }
  const double ratio = json.find_double("mlp_ratio").value_or(4.0);
  VIT_CHECK(ratio > 0.0 && ratio <= 64.0, kWhere.with(ErrorKind::format), json.where(),
            ": mlp_ratio must be positive and at most 64, got ", ratio);
  c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) * ratio);
  c.family = "vitpose";
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.class_token = false;
  c.head.pooling = Pooling::patch_mean;
  c.image.fixed_size = true;
  c.patch.padding = kPadding;
  if (num_experts(files) > 1) c.mlp.expert_dim = json.find_size("part_features").value_or(256);
  add_hf_table(c, 0);
  c.position.reuse = TableReuse::equal_grid;
  return c;
}

DenseConfig read_head(const SourceFiles& files, const ModelConfig& backbone) {
  const Json& config = *files.config;
  const bool simple = config.find_bool("use_simple_decoder").value_or(true);
  const TensorEntry* const last = files.find("head.conv.bias", Place::outside);
  const auto names = find_hf_labels(config);
  const std::size_t keypoints = last != nullptr && !last->shape.empty() ? last->shape[0]
                                : names                                 ? names->size()
                                                                        : 2;
  HeatmapConfig heatmaps;
  heatmaps.decoder = simple ? HeatmapDecoder::simple : HeatmapDecoder::classic;
  if (const TensorEntry* const norm = files.find("head.batchnorm1.bias", Place::outside);
      norm != nullptr && !norm->shape.empty())
    heatmaps.channels = norm->shape[0];  // 256 in the library
  heatmaps.enlarged = config.find_size("scale_factor", {1, 16}).value_or(4);
  const Json inner = config.at("backbone_config");
  std::vector<std::size_t> taps{backbone.encoder.depth - 1};  // of several the library reads the last
  const auto indices = inner.find("out_indices"), features = inner.find("out_features");
  if ((indices && indices->is_array()) || (features && features->is_array())) {
    const std::vector<std::size_t> all = read_hf_taps(inner, backbone.encoder.depth);
    if (!all.empty()) taps = {*std::ranges::max_element(all)};
  }
  DenseBranch branch{
      .name = "",
      .taps = std::move(taps),
      .tap_norm = true,
      .tap_norm_eps = backbone.encoder.norm.eps,
      .layers = heatmaps,
      .outputs = {{.meaning = Output::heatmaps, .channels = keypoints, .finish = MapFinish::none}}};
  return {.family = "vitpose", .branches = {std::move(branch)}, .labels = read_hf_labels(config, keypoints)};
}

ParsedModel read_alone(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files), .layout = {kRows}, .ignored = {kCounters}};
  const std::size_t experts = num_experts(files), expert = files.options.dense.expert;
  VIT_CHECK(expert < experts, kWhere.with(ErrorKind::argument), files.config_name(), ": no expert ", expert,
            "; the model has ", experts, experts == 1 ? " for all data sets" : ", counted from 0");
  if (experts > 1) {
    const auto read_names = std::make_shared<const ExpertNames>(expert, experts);
    out.layout.add(read_names->rows);
    out.ignored.push_back(read_names->others);
    out.notes.push_back(text("the MLPs are those of data set ", expert, " of ", experts));
    out.texts = read_names;
  }
  return out;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out = read_alone(files);
  out.dense =
      DenseReading{.config = read_head(files, out.config), .tables = {{"", "", kSimple}, {"", "", kClassic}}};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "vitpose") return std::nullopt;
  VIT_CHECK(files.config->find("backbone_config") && files.config->at("backbone_config").is_object(),
            kWhere.with(ErrorKind::unsupported), files.config_name(),
            ": backbone_config must describe the backbone");
  const std::string type = files.config->at("backbone_config").find_string("model_type").value_or("");
  VIT_CHECK(type == "vitpose_backbone" || type.empty(), kWhere.with(ErrorKind::unsupported),
            files.config_name(), ": a backbone of the model_type ", type,
            "; ViTPose on vitpose_backbone is implemented");
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor backbone.", kAnchor);
  return found;
}

std::optional<Match> match_alone(const SourceFiles& files) {
  if (hf_model_type(files) != "vitpose_backbone") return std::nullopt;
  constexpr std::string_view kAlone[] = {""};
  const auto found = match_anchor(files, kAnchor, kAlone);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kAnchor);
  return found;
}

}  // namespace
}  // namespace hf_vitpose

constinit const Family kHfVitPoseBackboneFamily{.name = "hf_vitpose_backbone",
                                                .anchor = hf_vitpose::kAnchor,
                                                .library = "",
                                                .match = hf_vitpose::match_alone,
                                                .read = hf_vitpose::read_alone};

constinit const Family kHfVitPoseFamily{.name = "hf_vitpose",
                                        .anchor = hf_vitpose::kAnchor,
                                        .prefixes = hf_vitpose::kPrefixes,
                                        .library = "",
                                        .match = hf_vitpose::match,
                                        .read = hf_vitpose::read,
                                        .is_dense = true};

}  // namespace vit::internal
