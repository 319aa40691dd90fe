// Checkpoint: what the files of a checkpoint say, without loading a model to run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vit/config.h"
#include "vit/config/load_options.h"
#include "vit/dense_config.h"
#include "vit/image/preprocess.h"
#include "vit/text/tokenizer.h"
#include "vit/text_encoder.h"

namespace vit {

/// Description of an image tower without packed weights.
struct CheckpointDescription {
  ModelConfig config;                          // architecture
  std::optional<PreprocessConfig> preprocess;  // nothing if no file defines it
  LoadReport report;                           // files and tensors
  std::optional<DenseConfig> dense{};          // the dense head, if there is one
};

/// Description of a text tower without packed weights.
struct TextDescription {
  TextConfig config;  // architecture
  LoadReport report;  // files and tensors
  /// Nothing if the files have no vocabulary and none was given; then `tokenizer_missing` says what
  /// is missing and where it is published.
  std::optional<Tokenizer> tokenizer;
  std::string tokenizer_missing;  // one line; "" if there is a tokenizer
};

/// The files of a checkpoint, each read once, when it is first needed. Must not be shared between threads.
/// ```
/// const std::size_t width = vit::Checkpoint("model").describe().config.embed_dim;
/// ```
class VIT_API Checkpoint {
 public:
  /// A folder as downloaded or a single weight file. Throws Error if there is none.
  explicit Checkpoint(const std::filesystem::path& path, const ModelOptions& options = {});
  /// What Model::random() creates. Throws Error as it does.
  static Checkpoint random(const std::string& architecture, const ModelOptions& options = {});
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  /// What Model::load would load. Throws Error as it does.
  CheckpointDescription describe() const;
  /// What TextTower::load would load, with this checkpoint's architecture; nothing if there is no text tower.
  /// Throws Error as it does, but not for a missing tokenizer.
  std::optional<TextDescription> describe_text(const TextOptions& options = {}) const;
  /// The preprocessing for an input size, nothing if no file defines it; the configuration files are
  /// sufficient.
  std::optional<PreprocessConfig> preprocess_config(const InputSize& size = {}) const;
  /// How its images are compared with texts. Throws Error (mismatch) if there is no text tower or no score,
  /// and for any defect of a file.
  TextScore text_score() const;
  /// The weight files; none if a folder has none, or has several without a conventional name.
  std::vector<std::filesystem::path> weight_files() const;

 private:
  struct Parts;
  explicit Checkpoint(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
