// The frame, the style and the script of the page for a browser: page.html, page.css and page.js of this
// folder, which the build embeds.
#pragma once

#include <string_view>

namespace vit::app {

extern const std::string_view kServePageFrame;
extern const std::string_view kServePageStyle;
extern const std::string_view kServePageScript;

}  // namespace vit::app
