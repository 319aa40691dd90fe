#include "apps/vit/inputs/video.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace vit::app {

bool has_video_extension(const std::filesystem::path& path) {
  constexpr std::string_view kExtensions[]{".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"};
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kExtensions, extension) != std::end(kExtensions);
}

}  // namespace vit::app
