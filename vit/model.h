// Model: a checkpoint ready to run, loaded from a folder as downloaded. What runs it is session.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/vision_transformer.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace vit {

struct ModelOptions {
  LoadOptions load{};                  // architecture name of a bare file, overrides: checkpoint.h
  PreprocessLoadOptions preprocess{};  // resampler, Pillow release, EXIF: checkpoint.h
  std::string kernels{};               // name of a kernel table; "" = the best that this machine runs
  Dtype dtype = Dtype::f32;  // arithmetic of blocks and attention pooling: f32, bf16 or i8, rounded at load
};

/// A checkpoint ready to run: weights packed, preprocessing known where its files tell it. Immutable; share
/// it between threads.
class Model {
 public:
  /// Loads a folder as downloaded or a single weight file. Throws Error naming the file and what is wrong
  /// with it.
  static std::shared_ptr<const Model> load(const std::filesystem::path& path,
                                           const ModelOptions& options = {});
  /// A model of a known architecture with random weights (seeded), for benchmarks and tests.
  static std::shared_ptr<const Model> random(const std::string& architecture,
                                             const ModelOptions& options = {});

  const ModelConfig& config() const noexcept { return transformer_.config(); }
  const VisionTransformer& transformer() const noexcept { return transformer_; }
  /// Whether pictures can be run; prepared pixels always can.
  bool has_preprocess_config() const noexcept { return preprocess_.has_value(); }
  /// Throws Error where no file of the checkpoint tells how pictures are prepared.
  const PreprocessConfig& preprocess_config() const;
  const LoadReport& report() const noexcept { return report_; }
  /// Name of class `index`; its number as text where the checkpoint has no names.
  std::string label(std::size_t index) const;

  Model(VisionTransformer transformer, std::optional<PreprocessConfig> preprocess, LoadReport report);

 private:
  VisionTransformer transformer_;
  std::optional<PreprocessConfig> preprocess_;
  LoadReport report_;
};

}  // namespace vit
