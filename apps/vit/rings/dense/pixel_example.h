// --like of vit segment: an image, and the pixels of it that are looked for.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"
#include "vit/pixels.h"

namespace vit::app {

/// The files that IMAGE:X,Y or IMAGE:MASK.png names; none for "".
std::vector<std::filesystem::path> example_files(const std::string& like);
/// Learns the example. Throws UsageError for another form, Error for an image or a mask that cannot be read
/// or do not fit.
PixelHead learn_example(const std::string& like, const std::shared_ptr<const Model>& model,
                        const CommonOptions& common);

}  // namespace vit::app
