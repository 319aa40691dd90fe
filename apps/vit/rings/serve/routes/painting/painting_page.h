// The part of the page on which classes of pixels are painted.
#pragma once

#include <string_view>

namespace vit::app {

// page.html with @BOARD@ in the place of the board, page.css and page.js of this folder, which the build
// embeds
extern const std::string_view kServePaintingFrame;
extern const std::string_view kServePaintingStyle;
extern const std::string_view kServePaintingScript;

}  // namespace vit::app
