// The board to paint classes of pixels on, which the page of vit fit --paint and that of vit serve share:
// images, brushes, strokes and files. What learns from the strokes is the page's own script.
#pragma once

#include <string>
#include <string_view>

namespace vit::app {

/// The frame of a page with the board in the place of @BOARD@.
std::string with_board(std::string_view frame);
/// The style and the script of a page after those of the board.
std::string board_style(std::string_view style);
std::string board_script(std::string_view script);

// page.html, page.css and page.js of this folder, which the build embeds
extern const std::string_view kBoardFrame;
extern const std::string_view kBoardStyle;
extern const std::string_view kBoardScript;

}  // namespace vit::app
