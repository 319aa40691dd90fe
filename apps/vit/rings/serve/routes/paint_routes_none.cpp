// Replacement for builds without classes of pixels.
#include "apps/vit/rings/serve/routes/paint_routes.h"
#include "apps/vit/rings/serve/routes/route.h"

namespace vit::app {

bool takes_painting(const ServedModel& /*model*/) {
  return false;
}

std::span<const Route> paint_routes() {
  return {};
}

}  // namespace vit::app
