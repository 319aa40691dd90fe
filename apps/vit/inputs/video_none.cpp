// Replacement for builds without OpenCV.
#include "apps/vit/inputs/video.h"
#include "vit/base/check.h"

namespace vit::app {

struct Video::Capture {};

Video::Video(const std::filesystem::path& path) {
  fail(Where("read video", ErrorKind::unsupported), path.string(),
       ": this program was built without OpenCV, which reads videos (Debian: libopencv-dev)");
}

Video::~Video() = default;
Video::Video(Video&&) noexcept = default;
Video& Video::operator=(Video&&) noexcept = default;

bool Video::read(Image&, std::size_t) {
  return false;
}
std::size_t Video::num_frames() const {
  return 0;
}

}  // namespace vit::app
