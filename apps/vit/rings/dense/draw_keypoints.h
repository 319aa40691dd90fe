// The keypoints of a pose over a picture.
#pragma once

#include <span>
#include <string>

#include "apps/vit/outputs/color_maps.h"
#include "vit/image/image.h"
#include "vit/pose.h"

namespace vit::app {

/// A dot for each keypoint. Where the names are those of COCO's 17 keypoints, also the lines of its skeleton
/// whose ends both have a score of 0.3 or more.
void draw_keypoints(Image& picture, const Pose& pose, std::span<const std::string> labels,
                    const Color& color);

}  // namespace vit::app
