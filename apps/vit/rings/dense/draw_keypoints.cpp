
#include <algorithm>
#include <cctype>
#include <string_view>

#include "apps/vit/rings/dense/draw_shapes.h"
#include "vit/base/ascii.h"

namespace vit::app {
namespace {

/// Two keypoints that a line connects.
struct Bone {
  std::size_t from, to;
};

/// COCO's skeleton: legs, trunk, arms, head.
constexpr Bone kCocoBones[]{{15, 13}, {13, 11}, {16, 14}, {14, 12}, {11, 12}, {5, 11}, {6, 12},
                            {5, 6},   {5, 7},   {6, 8},   {7, 9},   {8, 10},  {1, 2},  {0, 1},
                            {0, 2},   {1, 3},   {2, 4},   {3, 5},   {4, 6}};

/// The bones between keypoints: those of COCO if the names are its 17 keypoints, none otherwise (animals).
std::span<const Bone> bones_of(std::span<const std::string> labels) {
  constexpr std::string_view kParts[]{"nose",     "eye",   "eye",   "ear",   "ear",   "shoulder",
                                      "shoulder", "elbow", "elbow", "wrist", "wrist", "hip",
                                      "hip",      "knee",  "knee",  "ankle", "ankle"};
  if (labels.size() != std::size(kParts)) return {};
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if (internal::lower_ascii(labels[k]).find(kParts[k]) == std::string::npos) return {};
  }
  return kCocoBones;
}

}  // namespace

void draw_keypoints(Image& picture, const Pose& pose, std::span<const std::string> labels,
                    const Color& color) {
  constexpr float kLeastScore = 0.3f;
  for (const Bone& bone : bones_of(labels)) {
    if (std::max(bone.from, bone.to) >= pose.keypoints.size()) break;  // none outside of the image
    const Keypoint &from = pose.keypoints[bone.from], &to = pose.keypoints[bone.to];
    if (std::min(from.score, to.score) < kLeastScore) continue;
    draw_line(picture, static_cast<double>(from.x), static_cast<double>(from.y), static_cast<double>(to.x),
              static_cast<double>(to.y), color);
  }
  for (const Keypoint& point : pose.keypoints)
    draw_dot(picture, static_cast<double>(point.x), static_cast<double>(point.y), color);
}

}  // namespace vit::app
