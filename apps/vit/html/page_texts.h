// The frame, the style and the script of a page: page.html, page.css and page.js of this folder, which the
// build embeds.
#pragma once

#include <string_view>

namespace vit::app {

extern const std::string_view kPageFrame;  // with @NAME@ as placeholders
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace vit::app
