// What a path leads to, found out once: which weight file is read, which configuration describes it, which
// family reads it. Gives the configurations of towers and preprocessing, and the weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "vit/config.h"
#include "vit/config/load_options.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/io/tensor_file.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/family.h"

namespace vit::internal {

/// A folder as downloaded (timm, Hugging Face, OpenCLIP, publisher), or one weight file and what lies beside
/// it. Reads each file when it is first needed, and once. Not for use by several threads at a time.
class CheckpointFolder {
 public:
  /// Throws Error if there is no such file or folder.
  explicit CheckpointFolder(const std::filesystem::path& path, ModelOptions options = {});

  const ModelOptions& options() const noexcept { return options_; }

  /// What `path` was found to mean: the checkpoint itself, of an adapter its base.
  const std::filesystem::path& path() const { return path_; }
  /// The files that hold the weights; none if a folder has none, or several of which none is called as
  /// weights are. Of weights in shards, all weight files of their folder.
  std::vector<std::filesystem::path> weight_files() const;

  /// Whether open_clip_config.json, not config.json, describes these weights.
  bool uses_open_clip_config() const;

  /// A tower as its family, or the caller's layout, reads it, valid; by the configuration files only if there
  /// are no weights. Of ModelConfig there is always one: throws Error where no family reads the files. Of
  /// TextConfig nothing if the checkpoint has no text tower that is known.
  template <typename Config>
  const std::optional<ParsedCheckpoint<Config>>& parsed() const;
  const ModelConfig& model_config() const { return parsed<ModelConfig>()->config; }

  /// The tower with its weights: every tensor of the file is used or ignored for a stated reason and every
  /// expected one is found with its shape; otherwise throws Error naming them. Throws Error if there is no
  /// such tower.
  template <typename Config>
  Checkpoint<Config> load() const;

  /// As the checkpoint's own files say, or as the architecture's published weights want it where the caller
  /// named one; OpenCLIP's file counts in either case, for it describes these very weights. Nothing if no
  /// file says.
  std::optional<PreprocessConfig> preprocess_config() const;

 private:
  /// What a family saw, and what it made of it; empty until it is asked for.
  template <typename Config>
  struct Tower {
    std::shared_ptr<const SourceFiles> files;
    std::optional<ParsedCheckpoint<Config>> parsed;
  };

  /// The file of that name as JSON, nothing if it is not there.
  const std::optional<Json>& json(const char* name) const;
  std::optional<Json> config_of(const ModelConfig*) const;
  std::optional<Json> config_of(const TextConfig*) const;
  std::optional<ParsedModel> parse(SourceFiles& files, const ModelConfig*) const;
  std::optional<ParsedText> parse(SourceFiles& files, const TextConfig*) const;
  /// The weights of the model, opened once for all towers.
  const std::shared_ptr<const TensorFile>& tensors() const;
  /// Whether the configuration is that of a language model with a vision tower.
  bool is_whole_model_of_language() const;
  TensorFile open_files() const;
  /// Whether there is one weight file, or the two of dino.txt.
  bool has_weights() const;
  void check_weights() const;
  void fill_report(const std::vector<std::string>& notes, LoadReport& report) const;
  std::optional<PreprocessConfig> stored_preprocess_config() const;
  std::optional<PreprocessConfig> own_preprocess_config() const;
  /// Whether a family reads it whose models have a head that gives maps.
  bool is_dense() const;
  std::optional<PreprocessConfig> dense_preprocess_config() const;

  std::filesystem::path path_;
  ModelOptions options_;
  std::optional<Json> layout_;
  bool is_folder_ = false;
  bool is_pair_ = false;                           // the two files of dino.txt
  bool is_sharded_ = false;                        // shards that lost their index
  std::filesystem::path folder_;                   // where the configuration files lie
  std::vector<std::filesystem::path> candidates_;  // files that could hold the weights
  mutable std::map<std::string, std::optional<Json>> json_;
  mutable std::shared_ptr<const TensorFile> tensors_;
  mutable std::tuple<Tower<ModelConfig>, Tower<TextConfig>> towers_;
  mutable std::string root_;  // in front of all names of the model
  mutable bool in_training_file_ = false;
  mutable std::vector<std::string> found_;  // what the reader should know of the place of the model
};

/// The preprocessing of a folder, or of the folder in which a weight file lies. Throws Error naming file and
/// key for values out of range, for keys that ask for something that is not implemented, or if no file
/// tells.
PreprocessConfig load_preprocess_config(const std::filesystem::path& path, const ModelOptions& options = {});
/// Throws the Error for a checkpoint of which no file tells how images are preprocessed.
[[noreturn]] void fail_without_preprocess_config(const std::filesystem::path& path);

}  // namespace vit::internal
