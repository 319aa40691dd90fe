// Perception LM: a tower of timm's Perception Encoder inside the language model of transformers, whose tokens
// an MLP brings to the width of the language model before means of cells are taken. Source: transformers,
// models/perception_lm.
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_perception_lm {
namespace {

constexpr Where kWhere{"hf_perception_lm", ErrorKind::unsupported};
constexpr std::string_view kAnchor = "patch_embed.proj.weight";
constexpr std::string_view kPrefixes[] = {"model.vision_tower.timm_model.", "vision_tower.timm_model."};

constexpr Row kProjector[] = {
    at(Place::outside, {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"}),
};
static_assert(is_sound(kProjector));

constexpr Ignored kPool[] = {{"attn_pool.*", "of a vector that the language model does not read"},
                             {"head.*", "of a vector that the language model does not read"}};

ParsedModel read(const SourceFiles& files) {
  SourceFiles tower = files;
  tower.config = tower_config(*files.config);
  const std::string name = tower.config->find_string("architecture").value_or("");
  const Architecture* const known = find_known_architecture(name);
  VIT_CHECK(known != nullptr && known->family == "pe", kWhere, tower.config->where(), ".architecture ",
            in_quotes(name), " is none of timm's Perception Encoders");
  ParsedModel out = kTimmFamily.read_as(tower, *known);
  out.layout.add(kProjector);
  out.ignored.push_back(kPool);
  out.ignored.push_back(kWholeModelIgnored);
  ModelConfig& c = out.config;
  c.library = "transformers";
  c.head = {};
  c.head.pooling = Pooling::none;
  MergerConfig& merger = c.merger.emplace();
  const std::size_t hidden =
      rows_of_tensor(files, "multi_modal_projector.linear_1.weight", Place::outside, text_width(files));
  merger.add(MergerPlace::mlp,
             MergerMlp{.hidden_dim = hidden,
                       .out_dim = rows_of_tensor(files, "multi_modal_projector.linear_2.weight",
                                                 Place::outside, text_width(files))});
  const std::size_t ratio = find_tower_size(whole_config(*files.config), {"projector_pooling_ratio"}, 1);
  if (ratio > 1) merger.add(MergerPlace::later_cells, MergerCells{.size = ratio, .rule = CellRule::mean});
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"perception_lm"})) return std::nullopt;
  return match_tower(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_perception_lm

constinit const Family kHfPerceptionLmFamily{.name = "hf_perception_lm",
                                             .anchor = hf_perception_lm::kAnchor,
                                             .library = "",
                                             .match = hf_perception_lm::match,
                                             .read = hf_perception_lm::read};

}  // namespace vit::internal
