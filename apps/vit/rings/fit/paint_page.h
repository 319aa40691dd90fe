// The page of vit fit --paint: images with the features of their patches, strokes that are painted on them,
// and the classes of all pixels, which the page learns and computes itself.
#pragma once

#include <string_view>

namespace vit::app {

// page.html, page.css and page.js of this folder, which the build embeds
extern const std::string_view kPaintFrame;  // with @NAME@ as placeholders
extern const std::string_view kPaintStyle;
extern const std::string_view kPaintScript;

}  // namespace vit::app
