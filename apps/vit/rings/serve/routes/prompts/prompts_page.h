// The part of the server's page that asks a model of prompts: page.html, page.css and page.js of this folder,
// which the build embeds.
#pragma once

#include <string_view>

namespace vit::app {

extern const std::string_view kServePromptsFrame;
extern const std::string_view kServePromptsStyle;
extern const std::string_view kServePromptsScript;

}  // namespace vit::app
