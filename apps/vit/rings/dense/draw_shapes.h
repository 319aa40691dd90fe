// Frames, lines and dots over a picture, for boxes and keypoints.
#pragma once

#include "apps/vit/outputs/color_maps.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"

namespace vit::app {

/// Pixels that lines of a picture are thick.
int line_width(const Image& picture);
/// The frame of a box, as far as it lies in the picture.
void draw_frame(Image& picture, const Box& box, const Color& color);
/// A line between two points, as thick as frames.
void draw_line(Image& picture, double x0, double y0, double x1, double y1, const Color& color);
/// A filled circle around a point.
void draw_dot(Image& picture, double x, double y, const Color& color);

}  // namespace vit::app
