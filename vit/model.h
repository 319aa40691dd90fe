// Model: a checkpoint ready to run, loaded from a folder as downloaded. session.h runs it; checkpoint.h
// examines its files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config/load_options.h"
#include "vit/config/load_report.h"
#include "vit/dense_config.h"
#include "vit/image/preprocess.h"
#include "vit/outputs.h"
#include "vit/position/config.h"

namespace vit {
struct ModelConfig;  // config.h

namespace internal {
class CheckpointFolder;
struct LayersOf;
}  // namespace internal

/// Tensors of a model by the names of Model::tensor_names(), in memory of the caller.
using TensorViews = std::map<std::string, TensorView<const float>>;

/// A checkpoint in memory: one that is embedded in a program or encrypted.
struct ModelBytes {
  std::span<const std::byte> weights;          // a .safetensors file
  std::map<std::string, std::string> files{};  // JSON next to it, by name: {"config.json", "{...}"}
};

/// A checkpoint ready to run: weights packed, preprocessing known if its files define it. Immutable; share it
/// between threads.
class VIT_API Model {
 public:
  /// Loads a folder as downloaded or a single weight file. Throws Error naming the file and its
  /// defect.
  static std::shared_ptr<const Model> load(const std::filesystem::path& path,
                                           const ModelOptions& options = {});
  /// Loads files in memory, which may be freed afterwards. Throws Error as for a folder of these files.
  static std::shared_ptr<const Model> load(const ModelBytes& bytes, const ModelOptions& options = {});
  /// A model of a known architecture with random weights (seeded), for benchmarks and tests.
  static std::shared_ptr<const Model> random(const std::string& architecture,
                                             const ModelOptions& options = {});
  /// The same of a configuration, which validate() checks. `preprocess`: of its images; nothing = as the
  /// published weights of config.architecture, none without a name.
  static std::shared_ptr<const Model> random(const ModelConfig& config, const ModelOptions& options = {},
                                             const std::optional<PreprocessConfig>& preprocess = {});
  /// A model of a configuration and its tensors, which are copied. Throws Error (mismatch) naming those that
  /// are missing, misshaped or left over.
  static std::shared_ptr<const Model> from_tensors(const ModelConfig& config, const TensorViews& tensors,
                                                   const ModelOptions& options = {},
                                                   const std::optional<PreprocessConfig>& preprocess = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const noexcept;  // architecture
  Precision precision() const noexcept;        // of blocks and attention pooling
  const char* kernels() const noexcept;        // name
  const LoadReport& report() const noexcept;   // files and tensors
  /// For messages: the architecture's name, else that of the folder or file.
  std::string name() const;
  const DenseConfig* dense_config() const noexcept;  // the head that outputs maps, null if there is none
  /// Name of class `index`; its number as text if the checkpoint has no names.
  std::string label(std::size_t index) const;

  /// Names of the tensors in the order of the data, whatever the file calls them: "blocks.0.qkv.weight".
  std::vector<std::string> tensor_names() const;
  /// A tensor in float32 before it was packed, read from the file. Throws Error for an unknown name, a file
  /// that changed since it was loaded, and for models of bytes or tensors of the caller, which are not kept.
  Tensor<float> tensor(const std::string& name) const;

  /// Whether images can be run; preprocessed pixels always can.
  bool has_preprocess_config() const noexcept;
  /// Throws Error if no file of the checkpoint defines the preprocessing, or only for other channels than
  /// the model's.
  const PreprocessConfig& preprocess_config() const;

  /// The patch grid of an input of this size. Throws Error if the model cannot take it: edges below the patch
  /// size, edges that are not multiples of it (unless config().patch.drops_remainder or the native size), or
  /// another size than the native one if the reference library refuses that (config().image.fixed_size).
  GridSize grid_for(std::size_t height, std::size_t width) const;
  /// The steps of an input of so many planes (ImageConfig::stack): 1 for one image, else images over
  /// patch_frames. Throws Error if the model cannot take it.
  std::size_t steps_for(std::size_t num_planes) const;
  /// Throws Error if no file of the checkpoint defines the preprocessing.
  void require_preprocess_config() const;
  /// Throws Error if the model does not support an input of this size, as grid_for() does.
  void require_grid(std::size_t height, std::size_t width) const;
  /// Number of leading tokens sufficient for `request`, so that the last block computes only those; 0 = it
  /// computes all.
  std::size_t num_leading_tokens(const Request& request) const;

 private:
  struct Parts;
  friend struct ImageAndText;
  friend struct internal::LayersOf;
  VIT_HIDDEN static std::shared_ptr<const Model> load(const internal::CheckpointFolder& folder);
  explicit Model(std::unique_ptr<const Parts> parts);
  static std::shared_ptr<const Model> build(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
