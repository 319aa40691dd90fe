// COCO's panoptic annotations: a .json file, and a PNG of ids for each image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/rings/dense/map_metrics.h"

namespace vit::app {

class PanopticTruth {
 public:
  /// Segments get the model's numbers of classes: by the names of the categories among `labels`, by the place
  /// of the category where no name is a label, and without categories as they are. Throws Error that names
  /// the file and what is wrong.
  PanopticTruth(const std::filesystem::path& path, std::span<const std::string> labels);

  /// The folder of the PNG files of annotations in this file.
  static std::filesystem::path folder_of(const std::filesystem::path& path);

  /// The segments of an image. Throws Error if there is no annotation of this name.
  const std::vector<PanopticSegment>& segments(const std::filesystem::path& name) const {
    return entry(name).segments;
  }
  /// Their ids (H, W), -1 = none. Throws Error if the PNG cannot be read or has another size.
  Tensor<std::int32_t> map(const std::filesystem::path& name, ImageSize size) const;

 private:
  struct Entry {
    std::string png;
    std::vector<PanopticSegment> segments;
  };
  const Entry& entry(const std::filesystem::path& name) const;

  std::filesystem::path path_, folder_;
  std::map<std::string, Entry> entries_;  // by the image's name without folder and extension
};

}  // namespace vit::app
