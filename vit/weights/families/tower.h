// What the pages of vision towers of language models share: which models these are, where a tower lies in the
// files of a whole model, and how transformers writes its configuration.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Whether config.json is that of a language model with a vision tower: then the tower is read and nothing
/// else of the weights.
bool is_whole_model(const Json& config);
/// Whether a tensor of a whole model may belong to its vision tower or to what connects that to the language
/// model, by the front of its name.
bool is_tower_name(std::string_view name);

/// Whether what a whole model makes of its visual tokens is implemented (families/hf_modernvbert.cpp).
bool is_page_model(const Json& config);

/// The language model's part of config.json, which may be nested.
Json whole_config(const Json& config);
/// The tower's part of config.json: its vision_config, or the whole where only the tower is saved.
Json tower_config(const Json& config);

/// Whether config.json's model_type, or that of the language model in it, is one of these.
bool has_model_type(const SourceFiles& files, std::initializer_list<std::string_view> types);

/// The first of the known prefixes of towers under which `anchor` lies; names outside of the tower begin with
/// "model." where its own do. Throws Error if there is none.
Match match_tower(const SourceFiles& files, std::string_view anchor,
                  std::span<const std::string_view> prefixes);
Match match_tower(const SourceFiles& files, std::string_view anchor);

/// Names of config.json that mean one size, in the order in which they are asked.
using Keys = std::initializer_list<const char*>;
std::size_t find_tower_size(const Json& json, Keys keys, std::size_t fallback);

/// Sizes of a tower by the names that towers have for them.
struct TowerDefaults {
  std::size_t embed_dim = 1280, depth = 32, num_heads = 16, mlp_dim = 5120;
  std::size_t patch_size = 14;
  std::size_t image_size = 0;  // pixels of the native image; 0 = a square of 32 x 32 patches
  double norm_eps = 1e-6;
  Activation activation = Activation::gelu;
};

/// Sizes, activation, no position; a tower without class token, pooling, and final norm.
ModelConfig read_tower(const SourceFiles& files, const Json& json, const TowerDefaults& defaults);

/// Which tokens a language model reads where config.json does not say.
struct FeatureDefaults {
  std::vector<int> layers{-1};  // vision_feature_layer: 0 = the embedded patches, -1 = the last block
  bool is_final = false;        // -1 means the tokens after the final norm
  bool drops_first = false;     // vision_feature_select_strategy is "default", not "full"
};
/// MergerConfig::blocks by vision_feature_layer. Throws Error if the tokens that are read are not those of
/// the patches.
std::vector<std::size_t> blocks_of_features(const Json& json, const FeatureDefaults& defaults,
                                            const ModelConfig& config);

/// Checks the merger's edge of a cell, and makes the native image one of whole cells.
void fit_to_cells(const Json& json, ModelConfig& config);

/// Rows of a tensor that may be missing: the width of what it gives.
std::size_t rows_of_tensor(const SourceFiles& files, std::string_view name, Place place,
                           std::size_t fallback);
/// The width of the language model.
std::size_t text_width(const SourceFiles& files);

/// rope_theta, or rope_parameters.rope_theta, or `fallback`. Throws Error for a rope_type that no tower has.
double read_rope_theta(const Json& json, double fallback);
/// Rows first, pairs of halves, raw indices: the rotation of most towers.
void add_tower_rope(const Json& json, ModelConfig& config, double theta = 10000.0);

/// A list of blocks; `fallback` where there is none.
std::vector<std::size_t> read_blocks(const Json& json, const char* key, std::vector<std::size_t> fallback);
/// The blocks of `depth`, at most 1024, that are not listed.
std::vector<std::size_t> other_blocks(const std::vector<std::size_t>& listed, std::size_t depth);

/// Gemma 4's tower by the names of transformers or of timm: all but clipping, width of heads, and merger.
ModelConfig gemma4_config(const Json& json, const TowerDefaults& defaults);

/// What is left unread of a whole model, and tables of old files.
extern const std::span<const Ignored> kWholeModelIgnored;

/// A note on what the tower belongs to, where it is part of a whole model.
void add_whole_model_notes(const SourceFiles& files, ParsedModel& parsed);

}  // namespace vit::internal
