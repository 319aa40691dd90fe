#include "apps/vit/inputs/video.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "apps/vit/ground/module_file.h"
#include "apps/vit/inputs/video_module.h"
#include "apps/vit/inputs/video_orientation.h"
#include "vit/base/ascii.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr Where kWhere{"read video", ErrorKind::format};

constexpr ModuleFile kVideo{.name = "vit_video",
                            .symbol = kVideoModuleSymbol,
                            .purpose = "reads videos",
                            .package = "libopencv-videoio-dev",
                            .without = "a folder of frames is read without it"};

/// Loads the module at the first call.
const VideoModule& video_module() {
  static const auto* const module = static_cast<const VideoModule*>(load_module(kVideo));
  return *module;
}

/// Writes the pixels of `stored` to `upright`, by the EXIF value of the orientation.
void rotate(const Image& stored, int orientation, Image& upright) {
  const std::size_t height = stored.height(), width = stored.width();
  const bool is_transposed = orientation >= 5;
  const bool flips_x = orientation == 2 || orientation == 3 || orientation >= 7;
  const bool flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  unsigned char* to = upright.data();
  for (std::size_t y = 0; y < upright.height(); ++y) {
    for (std::size_t x = 0; x < upright.width(); ++x, to += 3) {
      std::size_t column = is_transposed ? y : x, row = is_transposed ? x : y;
      if (flips_x) column = width - 1 - column;
      if (flips_y) row = height - 1 - row;
      std::copy_n(stored.data() + 3 * (row * width + column), 3, to);
    }
  }
}

}  // namespace

void load_video_module() {
  if (has_module(kVideo)) video_module();
}

bool has_video_extension(const fs::path& path) {
  constexpr std::string_view kExtensions[]{".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"};
  return std::ranges::find(kExtensions, internal::lower_ascii(path.extension().string())) !=
         std::end(kExtensions);
}

struct Video::Capture {
  std::string path;
  const VideoModule& module;
  std::array<char, kVideoErrorSize> error{};
  std::unique_ptr<void, void (*)(void*)> video;
  int orientation = 1;  // EXIF value by which stored frames are rotated
  ImageSize size{};     // of the frame as stored
  Image stored{};       // its pixels

  [[noreturn]] void fail_with_error() const { fail(kWhere, path, ": ", error.data()); }
};

Video::Video(const fs::path& path) {
  std::error_code error;
  VIT_CHECK(fs::is_regular_file(path, error), kWhere.with(ErrorKind::io), path.string(), ": no such file");
  const VideoModule& module = video_module();
  capture_ = std::make_unique<Capture>(
      Capture{.path = path.string(), .module = module, .video = {nullptr, module.close}});
  const std::optional<int> orientation = video_orientation(path);
  capture_->orientation = orientation.value_or(1);
  capture_->video.reset(
      module.open(fs::absolute(path).c_str(), orientation.has_value(), capture_->error.data()));
  if (capture_->video == nullptr) capture_->fail_with_error();
}

Video::~Video() = default;
Video::Video(Video&&) noexcept = default;
Video& Video::operator=(Video&&) noexcept = default;

std::optional<ImageSize> Video::next(std::size_t max_pixels) {
  auto& [height, width] = capture_->size;
  const int result = capture_->module.next(capture_->video.get(), &height, &width, capture_->error.data());
  if (result < 0) capture_->fail_with_error();
  if (result == 0) return std::nullopt;
  VIT_CHECK(height * width <= max_pixels, kWhere.with(ErrorKind::unsupported), capture_->path, ": frames of ",
            width, " x ", height, " pixels, above --max-pixels ", max_pixels);
  const bool is_transposed = capture_->orientation >= 5;
  return is_transposed ? ImageSize{width, height} : capture_->size;
}

bool Video::read(Image& frame, std::size_t max_pixels) {
  const std::optional<ImageSize> upright = next(max_pixels);
  if (!upright) return false;
  if (frame.size() != *upright) frame = Image(upright->height, upright->width);
  Image& target = capture_->orientation == 1 ? frame : capture_->stored;
  if (target.size() != capture_->size) target = Image(capture_->size.height, capture_->size.width);
  if (capture_->module.copy_rgb(capture_->video.get(), target.data(), capture_->error.data()) != 0)
    capture_->fail_with_error();
  if (capture_->orientation != 1) rotate(target, capture_->orientation, frame);
  return true;
}

std::size_t Video::num_frames() const {
  const double count = capture_->module.num_frames(capture_->video.get());
  return count > 0 && count < 1e9 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace vit::app
