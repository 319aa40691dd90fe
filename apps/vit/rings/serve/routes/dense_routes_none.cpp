// Replacement for builds without dense heads, which have no such routes.
#include "apps/vit/rings/serve/routes/service.h"

namespace vit::app {

std::span<const Route> dense_routes() {
  return {};
}

}  // namespace vit::app
