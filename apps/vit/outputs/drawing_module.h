// The interface of the module vit_drawing.so. It links OpenCV's imgproc, which brings eleven shared libraries
// and a sixth of the time that a start of the program would take with it.
#pragma once

#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/outputs/drawing.h"

namespace vit::app {

/// Functions of the module, each with the contract of its name. Exceptions pass through: the program and its
/// module are of one build.
struct DrawingModule {
  decltype(&vit::app::draw_colors) draw_colors;
  decltype(&vit::app::draw_maps) draw_maps;
  decltype(&vit::app::draw_matches) draw_matches;
  decltype(&vit::app::draw_sheet) draw_sheet;
  decltype(&vit::app::opencv_color_map) color_map;
  decltype(&vit::app::draw_text) draw_text;
};

}  // namespace vit::app
