// Painting classes of pixels on the page.
#pragma once

#include "apps/vit/rings/serve/work/served_model.h"

namespace vit::app {

/// Whether classes of pixels can be painted on the features of a model.
bool takes_painting(const ServedModel& model);

}  // namespace vit::app
