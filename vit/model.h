// Model: a checkpoint ready to run, loaded from a folder as downloaded. What runs it is session.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/config.h"
#include "vit/config/load_options.h"
#include "vit/image/preprocess.h"
#include "vit/outputs.h"

namespace vit {

namespace internal {
class VisionTransformer;
class CheckpointFolder;
}  // namespace internal

/// A checkpoint ready to run: weights packed, preprocessing known if its files tell it. Immutable; share it
/// between threads.
class VIT_API Model {
 public:
  /// Loads a folder as downloaded or a single weight file. Throws Error naming the file and what is wrong
  /// with it.
  static std::shared_ptr<const Model> load(const std::filesystem::path& path,
                                           const ModelOptions& options = {});
  /// A model of a known architecture with random weights (seeded), for benchmarks and tests.
  static std::shared_ptr<const Model> random(const std::string& architecture,
                                             const ModelOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const noexcept;  // architecture
  Precision precision() const noexcept;        // of blocks and attention pooling
  const char* kernels() const noexcept;        // name
  const LoadReport& report() const noexcept;   // what loading found
  /// For messages: the architecture's name, else that of the folder or file.
  std::string name() const;
  const DenseConfig* dense_config() const noexcept;  // the head that gives maps, null if there is none
  /// Name of class `index`; its number as text if the checkpoint has no names.
  std::string label(std::size_t index) const;

  /// Whether images can be run; preprocessed pixels always can.
  bool has_preprocess_config() const noexcept;
  /// Throws Error if no file of the checkpoint tells how images are preprocessed, or of other channels than
  /// the model's.
  const PreprocessConfig& preprocess_config() const;

  /// The patch grid of an input of this size. Throws Error if the model cannot take it: edges below the patch
  /// size, edges that it does not divide (unless config().drops_remainder or the size is the native one), or
  /// another size than the native one if the reference library refuses that (config().fixed_size).
  GridSize grid_for(std::size_t height, std::size_t width) const;
  /// Throws Error if no file of the checkpoint says how images are preprocessed.
  void require_preprocess_config() const;
  /// Throws Error if the model cannot take an input of this size, as grid_for() does.
  void require_grid(std::size_t height, std::size_t width) const;
  /// Leading tokens of an image that suffice for `request`, and that the last block computes alone; 0 = it
  /// computes all.
  std::size_t num_leading_tokens(const Request& request) const;

  /// The layers, for the library's own use.
  const internal::VisionTransformer& transformer() const noexcept;

 private:
  struct Parts;
  friend struct ImageAndText;
  [[gnu::visibility("hidden")]] static std::shared_ptr<const Model> load(
      const internal::CheckpointFolder& folder);
  explicit Model(std::unique_ptr<const Parts> parts);
  static std::shared_ptr<const Model> build(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

/// A checkpoint looked at, but not packed.
struct CheckpointDescription {
  ModelConfig config;                          // architecture
  std::optional<PreprocessConfig> preprocess;  // nothing if no file tells
  LoadReport report;                           // files and tensors
};
/// What Model::load would load. Throws Error as it does.
VIT_API CheckpointDescription describe_checkpoint(const std::filesystem::path& path,
                                                  const ModelOptions& options = {});
/// What Model::random would make.
VIT_API CheckpointDescription describe_architecture(const std::string& architecture,
                                                    const ModelOptions& options = {});
/// How a checkpoint's images are preprocessed for an input size, nothing if no file tells; its configuration
/// files suffice.
VIT_API std::optional<PreprocessConfig> find_preprocess_config(const std::filesystem::path& path,
                                                               const ModelOptions& options = {},
                                                               const InputSize& size = {});
/// The files that hold the weights of a checkpoint; none if a folder has none, or several and none is called
/// as weights are.
VIT_API std::vector<std::filesystem::path> weight_files(const std::filesystem::path& path);

}  // namespace vit
