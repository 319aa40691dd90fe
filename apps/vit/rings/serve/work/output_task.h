// What a request makes of the outputs of an image, besides vectors and classes: maps, boxes, keypoints,
// scores.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/io/json_writer.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/zero_shot.h"

namespace vit::app {

struct WorkItem;

/// Of one request. Only prepare() and, of a request with one image, pixels_of() change it.
class OutputTask {
 public:
  virtual ~OutputTask() = default;

  /// Of work with ImageRules::thumbnail, before prepare(): the preprocessed pixels (3, H, W) of a thumbnail.
  virtual Tensor<float> pixels_of(Tensor<float> thumbnail) { return thumbnail; }
  /// What the model computes for it. Called once, before the first image, by a thread that computes. `texts`:
  /// the classes of Work::classes, null without. Throws Error if the model cannot do it.
  virtual Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* texts) = 0;
  /// The result of an image as a JSON object, of the input at `index`. Several threads at a time. Throws
  /// Error.
  virtual void write(internal::JsonWriter& json, const ImageOutputs& outputs, const WorkItem& item,
                     std::size_t index) const = 0;
};

// For write():
/// A member that holds bytes in base64.
void write_base64(internal::JsonWriter& json, std::string_view name, std::span<const std::byte> bytes);
/// A member that holds a .npy file in base64. `type`: "<f4", "<i4".
void write_npy(internal::JsonWriter& json, std::string_view name, std::string_view type,
               std::span<const std::size_t> shape, std::span<const std::byte> bytes);
void write_npy(internal::JsonWriter& json, std::string_view name, std::string_view type,
               TensorView<const float> numbers);
/// Throws Error (unsupported) for an image whose maps would be larger than the server makes.
void check_map_size(ImageSize image);

}  // namespace vit::app
