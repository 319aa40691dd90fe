// Boxes as lines, arrays, files and pages.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/vit/rings/dense/map_outputs.h"
#include "vit/boxes.h"

namespace vit::app {

inline constexpr MapFormat kDetectFormats[]{{"color", "_color.png"}, {"coco", ".json"}};

std::string line_of_detections(const std::string& file, std::span<const Detection> found, bool is_json);
/// boxes, scores and classes.
std::vector<NamedArray> arrays_of_detections(std::span<const Detection> found);
/// Writes the files that `outputs` wants of an image, and its part of the page.
void write_detections(MapOutputs& outputs, ImageRun& run, const StreamedImage& image,
                      std::span<const Detection> found);

}  // namespace vit::app
