// What a path leads to, found out once: which weight file is read, which configuration speaks for it, which
// family reads it. Gives the configurations of model and preprocessing, and the weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vit/config.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/io/tensor_file.h"
#include "vit/weights/checkpoint/load_options.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/text_family.h"

namespace vit::internal {

/// A folder as downloaded (timm, Hugging Face, OpenCLIP, publisher), or one weight file and what lies beside
/// it. Reads each file when it is first needed, and once. Not for use by several threads at a time.
class CheckpointFolder {
 public:
  /// Throws Error if there is no such file or folder.
  explicit CheckpointFolder(const std::filesystem::path& path, LoadOptions options = {});

  /// The files that hold the weights; none if a folder has none, or several of which none is called as
  /// weights are. Of weights in shards, all weight files of their folder.
  std::vector<std::filesystem::path> weight_files() const;

  /// Whether open_clip_config.json, not config.json, describes these weights.
  bool open_clip_speaks() const;

  /// Valid; by the configuration files alone if there are no weights.
  const ModelConfig& model_config() const;

  /// As the checkpoint's own files say, or as the architecture's published weights want it where the caller
  /// named one; OpenCLIP's file counts in either case, for it speaks of these very weights. Nothing if no
  /// file tells.
  std::optional<PreprocessConfig> preprocess_config(const PreprocessLoadOptions& options = {}) const;

  /// Every tensor of the file is used or ignored for a stated reason and every expected one is found with its
  /// shape; otherwise throws Error naming them.
  Checkpoint load() const;

  /// The text tower as its family reads it, valid; nothing if the checkpoint has none.
  const std::optional<TextReading>& text_reading() const;
  /// The same for its tensors as load(); those of the image tower are not looked at. Throws Error if there
  /// is no text tower.
  TextCheckpoint load_text() const;

 private:
  struct Read;

  /// The file of that name as JSON, nothing if it is not there.
  const std::optional<Json>& json(const char* name) const;
  std::optional<Json> speaking_config() const;
  /// The checkpoint as its family, or the caller's layout, reads it.
  const Read& read() const;
  /// The weights, opened once for both towers.
  const std::shared_ptr<const TensorFile>& tensors() const;
  /// Whether there is one weight file, or the two of dino.txt.
  bool has_weights() const;
  /// What a family gets to see, with the configuration that speaks for it.
  SourceFiles source_files(std::optional<Json> config) const;
  void check_weights() const;
  void fill_report(const std::vector<std::string>& notes, LoadReport& report) const;
  Reading read_files(SourceFiles& files) const;
  std::optional<PreprocessConfig> stored_preprocess_config(const PreprocessLoadOptions& options) const;
  std::optional<PreprocessConfig> own_preprocess_config(const PreprocessLoadOptions& options) const;

  std::filesystem::path path_;
  LoadOptions options_;
  std::optional<Json> layout_;
  bool is_folder_ = false;
  bool is_pair_ = false;                           // the two files of dino.txt
  std::filesystem::path folder_;                   // where the configuration files lie
  std::vector<std::filesystem::path> candidates_;  // files that could hold the weights
  mutable std::map<std::string, std::optional<Json>> json_;
  mutable std::shared_ptr<const TensorFile> tensors_;
  mutable std::shared_ptr<const Read> read_;
  mutable std::optional<std::optional<TextReading>> text_;
};

/// The preprocessing of a folder, or of the folder in which a weight file lies. Throws Error naming file and
/// key for values out of range, for keys that ask for something that is not implemented, or if no file
/// tells.
PreprocessConfig load_preprocess_config(const std::filesystem::path& path,
                                        const PreprocessLoadOptions& options = {});
/// Throws the Error for a checkpoint of which no file tells how images are preprocessed.
[[noreturn]] void fail_without_preprocess_config(const std::filesystem::path& path);

}  // namespace vit::internal
