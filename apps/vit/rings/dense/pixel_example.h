// --like of vit segment: an image, and the pixels of it that are looked for.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"
#include "vit/pixels.h"

namespace vit::app {

/// The files that IMAGE:X,Y or IMAGE:MASK.png names: IMAGE, and MASK.png if there is one; none for "".
std::vector<std::filesystem::path> example_files(const std::string& like);
/// What tells one example from another: the pixels that are named, and the SHA-256 of each file. Throws Error
/// if one cannot be read.
std::string example_digest(const std::string& like);
/// Learns the example. Throws UsageError for another form, Error for an image or a mask that cannot be read
/// or do not fit.
PixelHead learn_example(const std::string& like, const std::shared_ptr<const Model>& model,
                        const CommonOptions& common);

}  // namespace vit::app
