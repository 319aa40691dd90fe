// Names over a picture; nothing in a build without OpenCV, whose font draws them.
#pragma once

#include <string>

#include "apps/vit/outputs/color_maps.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"

namespace vit::app {

/// A line of text on a bar of that color over the upper left corner of a box, moved into the picture where it
/// would leave it. Characters beyond ASCII become question marks.
void draw_name(Image& picture, const Box& box, const std::string& name, const Color& color);

}  // namespace vit::app
