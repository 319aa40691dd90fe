// A checkpoint as found on disk, before a family interprets it: its tensors, its configuration, and what the
// caller says of it.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/config/load_options.h"
#include "vit/config/patch.h"
#include "vit/io/json.h"
#include "vit/io/tensor_file.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

/// Edges of images that configuration files may state.
inline constexpr SizeRange kEdgeRange{1, kMaxInputEdge};

/// How a family found its tensors.
struct Match {
  std::string prefix{};   // in front of every name of the image tower: "", "vit.", "net.vit.", ...
  std::string outside{};  // in front of names outside of the tower: the root of the model
};

struct SourceFiles {
  const TensorFile& tensors;  // no entries if there are no weights
  const ModelOptions& options;
  std::optional<Json> config{};   // config.json or open_clip_config.json; nothing for a bare file
  std::string weights_name{};     // path of the weight file, or of the folder without one, for messages
  bool has_weights = true;        // false: only configuration files
  std::string root{};             // in front of all names of the model: "", "net.", "teacher.", ...
  bool in_training_file = false;  // the model is one member of its file
  Match match{};                  // of the family that reads

  /// The tensor of that name, or null.
  const TensorEntry* find(std::string_view name, Place place = Place::tower) const;
  /// The tensor in which block `block` of this part starts, or null.
  const TensorEntry* find(const Layout& layout, Part part, std::size_t block = 0) const;
  /// Whether some block has the part. Looks at all tensors: to be asked once, not for every block.
  bool any_block_has(const Layout& layout, Part part) const;
  /// Whether some block has a tensor of that name, which has a {}.
  bool any_block_has(std::string_view pattern, Place place = Place::tower) const;
  /// Number of blocks that have a tensor whose name starts with `stem`, an index and a dot, counted without
  /// gaps from 0.
  std::size_t count_blocks(std::string_view stem, Place place = Place::tower) const;
  /// Whether overrides["num_classes"] = "0" leaves the classifier out.
  bool drops_classifier() const;
  /// The configuration's file, or that of the weights, for messages about values.
  std::string config_name() const;
};

/// Throws Error (unsupported) that a word is none of these.
[[noreturn]] void refuse_choice(const Json& value, const std::vector<std::string>& words);

/// The meaning of a word of a configuration. Throws Error for another word.
template <typename Value>
Value read_choice(const Json& value, std::initializer_list<std::pair<std::string_view, Value>> choices) {
  const std::string_view found = value.as_string();
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) {
    if (found == word) return meaning;
    words.emplace_back(word);
  }
  refuse_choice(value, words);
}

/// One number for both edges, or [height, width].
GridSize read_edges(const Json& value, SizeRange range = kEdgeRange);

/// The first of `prefixes` under which the model has a tensor `anchor`; nothing if none is. Without weights
/// the first.
std::optional<Match> match_anchor(const SourceFiles& files, std::string_view anchor,
                                  std::span<const std::string_view> prefixes);

}  // namespace vit::internal
