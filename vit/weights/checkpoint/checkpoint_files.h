// From the path that a user has to the files of one checkpoint: what a folder or adapter refers to, which of
// its files hold weights, and which folder has the configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vit::internal {

/// How the weights of a checkpoint are stored.
enum class WeightSet {
  none,       // there are no weights
  one,        // one file, or one index of shards
  shards,     // all shards, without their index
  dino_text,  // Meta's two files: the backbone; and what goes on top of it, with the text tower
  several,    // several files without a conventional name, one of which the user has to name
};

/// The files of a checkpoint.
struct CheckpointFiles {
  std::filesystem::path path;                  // folder or weight file; of an adapter its base
  std::filesystem::path folder;                // of the configuration files
  std::filesystem::path adapter;               // the LoRA adapter to merge, "" for none
  WeightSet set = WeightSet::none;             // ...
  std::vector<std::filesystem::path> weights;  // ... of these files

  bool is_folder() const { return path == folder; }
  bool has_weights() const { return set != WeightSet::none && set != WeightSet::several; }
  /// The path in messages about the weights.
  std::string weights_name() const { return (weights.size() == 1 ? weights.front() : path).string(); }
  /// Whether the weight file has a name that OpenCLIP writes.
  bool has_open_clip_name() const;
  /// All weight files; for an index of shards, those of its folder.
  std::vector<std::filesystem::path> all_weights() const;
  /// Throws Error if the weights cannot be opened: there are none, those of another program, or several.
  void require_weights() const;
};

/// The files of the checkpoint at `path`. Of sentence-transformers these are in the module that modules.json
/// names, of the cache of Hugging Face in the snapshot that its reference names, of a run of transformers'
/// Trainer without weights of its own in the last checkpoint; of an adapter they are those of its base.
/// Throws Error (io) if there is no such file or folder, Error (argument) for two adapters, and Error
/// (format) for a modules.json that cannot be meant.
CheckpointFiles find_checkpoint(const std::filesystem::path& path, const std::filesystem::path& adapter = {});

/// All files of a folder with an ending of weights, except those that are known to be something else.
std::vector<std::filesystem::path> list_weights(const std::filesystem::path& folder);

}  // namespace vit::internal
