// The checkpoint at a path, examined once: which weight file is read, which configuration describes it, which
// family reads it. Provides the configurations of towers and preprocessing, and the weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "vit/config.h"
#include "vit/config/load_options.h"
#include "vit/config/load_report.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/io/tensor_file.h"
#include "vit/text_config.h"
#include "vit/weights/checkpoint/checkpoint_files.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/family.h"

namespace vit::internal {

/// A folder as downloaded (timm, Hugging Face, OpenCLIP, publisher), or one weight file and the files next to
/// it. Reads each file once, when it is first needed. Not thread-safe.
class CheckpointFolder {
 public:
  /// Throws Error if there is no such file or folder.
  explicit CheckpointFolder(const std::filesystem::path& path, ModelOptions options = {});
  /// A folder in memory, which must outlive this and the weights that it loads. Throws Error for a file of
  /// JSON that is none.
  CheckpointFolder(std::span<const std::byte> weights, const std::map<std::string, std::string>& files,
                   ModelOptions options);

  const ModelOptions& options() const noexcept { return options_; }

  /// The checkpoint that `path` refers to: itself, or the base of an adapter.
  const std::filesystem::path& path() const { return files_.path; }
  /// The weight files; none if a folder has none, or several without a conventional
  /// name. For sharded weights, all weight files of their folder.
  std::vector<std::filesystem::path> weight_files() const { return files_.all_weights(); }

  /// Whether open_clip_config.json, not config.json, describes these weights.
  bool uses_open_clip_config() const;

  /// A tower as parsed by its family, or the caller's layout, valid; only from the configuration files if
  /// there are no weights. For ModelConfig there is always one: throws Error if no family reads the files.
  /// For TextConfig, PromptConfig and PageConfig nothing if the checkpoint has no supported text tower,
  /// detector or encoder of pages.
  template <typename Config>
  const std::optional<ParsedCheckpoint<Config>>& parsed() const;
  const ModelConfig& model_config() const { return parsed<ModelConfig>()->config; }

  /// The tower with its weights: every tensor of the file is used or ignored for a stated reason and every
  /// expected one is found with its shape; otherwise throws Error naming them. Throws Error if there is no
  /// such tower.
  template <typename Config>
  LoadedTower<Config> load() const;

  /// As defined by the checkpoint's own files, or by the architecture's published weights if the caller
  /// named one; OpenCLIP's file is used in either case, because it describes these weights. Nothing if no
  /// file defines it.
  std::optional<PreprocessConfig> preprocess_config() const;

 private:
  /// The result of a family's parsing; empty until it is requested.
  template <typename Config>
  struct Tower {
    std::shared_ptr<const SourceFiles> files;
    std::optional<ParsedCheckpoint<Config>> parsed;
  };

  /// The file of that name as JSON, nothing if it does not exist.
  const std::optional<Json>& json(const char* name) const;
  /// Whether there is a file of that name.
  bool has_file(const char* name) const;
  /// config.json, or params.json of Mistral's own files: those are consolidated.safetensors and params.json,
  /// whatever lies next to them.
  const std::optional<Json>& own_config() const;
  std::optional<Json> encoder_config() const;
  std::optional<Json> config_of(const ModelConfig*) const;
  std::optional<Json> config_of(const TextConfig*) const;
  std::optional<Json> config_of(const PromptConfig*) const;
  std::optional<Json> config_of(const PageConfig*) const;
  std::optional<ParsedModel> parse(SourceFiles& files, const ModelConfig*) const;
  std::optional<ParsedText> parse(SourceFiles& files, const TextConfig*) const;
  std::optional<ParsedPrompts> parse(SourceFiles& files, const PromptConfig*) const;
  std::optional<ParsedPage> parse(SourceFiles& files, const PageConfig*) const;
  /// The weights of the model, opened once for all towers.
  const std::shared_ptr<const TensorFile>& tensors() const;
  /// Whether the configuration is that of a language model with a vision tower.
  bool is_whole_model_of_language() const;
  TensorFile open_files() const;
  /// The files as a family reads them.
  SourceFiles source_files(std::optional<Json> config) const;
  void fill_report(const std::vector<std::string>& notes, LoadReport& report) const;
  std::optional<PreprocessConfig> stored_preprocess_config() const;
  std::optional<PreprocessConfig> own_preprocess_config() const;
  /// Whether it is read by a family of models with a dense head.
  bool is_dense() const;
  std::optional<PreprocessConfig> dense_preprocess_config() const;

  ModelOptions options_;
  CheckpointFiles files_;
  std::optional<Json> layout_;
  std::span<const std::byte> memory_{};  // the weights, if the folder is in memory
  mutable std::map<std::string, std::optional<Json>> json_;
  mutable std::shared_ptr<const TensorFile> tensors_;
  mutable std::tuple<Tower<ModelConfig>, Tower<TextConfig>, Tower<PromptConfig>, Tower<PageConfig>> towers_;
  mutable std::string root_;  // prefix of all names of the model
  mutable bool in_training_file_ = false;
  mutable std::vector<std::string> found_;  // notes on the location of the model
};

/// The preprocessing of a folder, or of the folder in which a weight file lies. Throws Error naming file and
/// key for values out of range, for keys that need something unimplemented, or if no file
/// defines it.
PreprocessConfig load_preprocess_config(const std::filesystem::path& path, const ModelOptions& options = {});
/// Throws the Error for a checkpoint without a file that defines the preprocessing.
[[noreturn]] void fail_without_preprocess_config(const std::filesystem::path& path);

}  // namespace vit::internal
