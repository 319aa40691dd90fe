// Model: a checkpoint ready to run, loaded from a folder as downloaded. What runs it is session.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "vit/base/export.h"
#include "vit/base/precision.h"
#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/outputs.h"

namespace vit {

namespace internal {
class VisionTransformer;
}

struct ModelOptions {
  /// timm's or the publisher's name; needed by bare weight files, overrides a config's.
  std::string architecture{};
  /// By timm's model_args names: {"num_heads", "6"}, {"img_size", "256x256"}.
  std::map<std::string, std::string> overrides{};
  ResamplerChoice resampler = ResamplerChoice::automatic;
  PillowRelease pillow = PillowRelease::from_13_0;
  ExifChoice exif = ExifChoice::automatic;
  std::string kernels{};  // a name from available_kernels(); "" = the best that this machine runs
  Precision precision = Precision::float32;  // of blocks and attention pooling

  LoadOptions load_options() const { return {.architecture = architecture, .overrides = overrides}; }
  PreprocessLoadOptions preprocess_options() const {
    return {.resampler = resampler, .pillow = pillow, .exif = exif};
  }
};

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

  const ModelConfig& config() const noexcept;
  Precision precision() const noexcept;
  const char* kernels() const noexcept;  // name
  const LoadReport& report() const noexcept;
  /// Name of class `index`; its number as text if the checkpoint has no names.
  std::string label(std::size_t index) const;

  /// Whether images can be run; preprocessed pixels always can.
  bool has_preprocess_config() const noexcept;
  /// Throws Error if no file of the checkpoint tells how images are preprocessed.
  const PreprocessConfig& preprocess_config() const;

  /// The patch grid of an input of this size. Throws Error if the model cannot take it: edges below the patch
  /// size, or another size than the native one if the reference library refuses that (config().fixed_size).
  GridSize grid_for(std::size_t height, std::size_t width) const;
  /// Leading tokens of an image that suffice for `request`, and that the last block computes alone; 0 = it
  /// computes all.
  std::size_t num_leading_tokens(const Request& request) const;

  /// The layers, for the library's own use.
  const internal::VisionTransformer& transformer() const noexcept;

 private:
  struct Parts;
  explicit Model(std::unique_ptr<const Parts> parts);
  static std::shared_ptr<const Model> build(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
