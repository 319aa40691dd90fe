#include "apps/vit/rings/dense/draw_shapes.h"

namespace vit::app {

void draw_name(Image&, const Box&, const std::string&, const Color&) {}

}  // namespace vit::app
