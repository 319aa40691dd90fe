// The page for a browser.
#pragma once

#include <memory>
#include <string_view>

#include "apps/vit/rings/serve/routes/service.h"

namespace vit::app {

void answer_page(Service& service, const std::shared_ptr<Call>& call);

// page.html, page.css and page.js of this folder, which the build embeds
extern const std::string_view kServePageFrame;
extern const std::string_view kServePageStyle;
extern const std::string_view kServePageScript;

}  // namespace vit::app
