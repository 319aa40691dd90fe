// The page for a browser.
#pragma once

#include <memory>

#include "apps/vit/serve/service.h"

namespace vit::app {

void answer_page(Service& service, const std::shared_ptr<Call>& call);

}  // namespace vit::app
