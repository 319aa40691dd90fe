#include "apps/vit/html/board/board.h"

namespace vit::app {

std::string with_board(std::string_view frame) {
  constexpr std::string_view kMark = "@BOARD@";
  const std::size_t at = frame.find(kMark);
  if (at == frame.npos) return std::string(frame);
  return std::string(frame.substr(0, at)).append(kBoardFrame).append(frame.substr(at + kMark.size()));
}

std::string board_style(std::string_view style) {
  return std::string(kBoardStyle).append(style);
}

std::string board_script(std::string_view script) {
  return std::string(kBoardScript).append(script);
}

}  // namespace vit::app
