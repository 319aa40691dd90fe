// How the maps of an answer are written.
#pragma once

namespace vit::app {

enum class MapForm {
  none,   // not at all
  png,    // PNG in base64: the numbers as integers
  color,  // PNG in base64: colors
  npy,    // .npy in base64: the numbers
};

}  // namespace vit::app
