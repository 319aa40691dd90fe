// The orientation of the frames of a video, from the matrices in its headers. The decoder is not asked:
// OpenCV 4.6 rotates by 90 and 270 degrees the wrong way around.
#pragma once

#include <filesystem>
#include <optional>

namespace vit::app {

/// The EXIF value, 1 to 8, of the orientation that the track header (tkhd) of the first video track and the
/// movie header (mvhd) demand of players (ISO/IEC 14496-12, 6.2.2); angles between are rounded to quarter
/// turns. 1 if the file has no such headers. Nothing if it is not of the MP4 and QuickTime family. Reads
/// headers of boxes only, a limited number of them. Throws Error (io) if the file cannot be read.
std::optional<int> video_orientation(const std::filesystem::path& path);

}  // namespace vit::app
