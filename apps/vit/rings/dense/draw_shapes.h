// Boxes with their names, and keypoints, over an image.
#pragma once

#include <span>
#include <string>

#include "apps/vit/outputs/color_maps.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/pose.h"

namespace vit::app {

/// Pixels that lines of a picture are thick.
int line_width(const Image& picture);
/// The frame of a box, as far as it lies in the picture.
void draw_frame(Image& picture, const Box& box, const Color& color);
/// A line between two points, as thick as frames.
void draw_line(Image& picture, double x0, double y0, double x1, double y1, const Color& color);
/// A filled circle around a point.
void draw_dot(Image& picture, double x, double y, const Color& color);

/// draw_text() with the thickness of that picture's lines.
void draw_name(Image& picture, const Box& box, const std::string& name, const Color& color);

/// A dot for each keypoint. If the names are those of COCO's 17 keypoints, also the lines of its skeleton
/// whose ends both have a score of 0.3 or more.
void draw_keypoints(Image& picture, const Pose& pose, std::span<const std::string> labels,
                    const Color& color);

}  // namespace vit::app
