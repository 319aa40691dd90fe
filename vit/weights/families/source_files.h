// A checkpoint as found on disk, before a family interprets it: its tensors, its configuration, and what the
// caller says of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vit/weights/checkpoint/load_options.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/files/json.h"
#include "vit/weights/files/tensor_file.h"

namespace vit::internal {

/// How a family found its tensors.
struct Match {
  std::string prefix{};   // in front of every name of the image tower: "", "module.", "vit.", ...
  std::string outside{};  // in front of names beside the tower: "" or "module."
};

struct SourceFiles {
  const TensorFile& tensors;  // no entries where there are no weights
  const LoadOptions& options;
  std::optional<Json> config{};  // config.json or open_clip_config.json; nothing for a bare file
  std::string weights_name{};    // path of the weight file, or of the folder without one, for messages
  bool has_weights = true;       // false: configuration files alone
  Match match{};                 // of the family that reads

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
  /// The configuration's file, or that of the weights, for messages about values.
  std::string config_name() const;
};

/// The first of `prefixes` under which the file has a tensor `anchor`; nothing where none is. Without weights
/// the first.
std::optional<Match> match_anchor(const SourceFiles& files, std::string_view anchor,
                                  std::span<const std::string_view> prefixes);

}  // namespace vit::internal
