// Labels of pixels, and the heads that are learned from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The input is a file of labels: COCO or LabelMe where it begins as JSON, else PNG.
void run_pixel_labels(std::string_view input);
std::vector<std::string> pixel_labels_seeds();

/// The input is the file of a learned upsampler, .safetensors.
void run_upsampler(std::string_view input);
std::vector<std::string> upsampler_seeds();

/// The input is what a head of pixels says about itself.
void run_pixel_head(std::string_view input);
std::vector<std::string> pixel_head_seeds();

}  // namespace vit::fuzz
