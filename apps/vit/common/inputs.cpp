#include "apps/vit/common/inputs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>
#include <system_error>

#include "vit/base/error.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 15> kImageExtensions{".jpg", ".jpeg", ".jpe", ".jp2",  ".png",
                                                            ".bmp", ".dib",  ".tif", ".tiff", ".webp",
                                                            ".ppm", ".pgm",  ".pbm", ".pnm",  ".jfif"};

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

/// Adds the pictures of `folder`; `above` are the canonical paths of the folders that lead here.
void collect(const fs::path& folder, std::vector<fs::path>& above, std::vector<fs::path>& found) {
  std::error_code error;
  const fs::path canonical = fs::canonical(folder, error);
  VIT_CHECK(!error, "read folder", folder.string(), ": ", error.message());
  if (std::find(above.begin(), above.end(), canonical) != above.end()) return;
  above.push_back(canonical);
  fs::directory_iterator entries(folder, error);
  VIT_CHECK(!error, "read folder", folder.string(), ": ", error.message());
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code unreadable;  // a dangling link is no folder; as a picture it is reported when it is read
    if (fs::is_directory(entries->path(), unreadable)) {
      collect(entries->path(), above, found);
    } else if (has_image_extension(entries->path())) {
      found.push_back(entries->path());
    }
  }
  VIT_CHECK(!error, "read folder", folder.string(), ": ", error.message());
  above.pop_back();
}

void add_path(const std::string& argument, InputList& list) {
  const fs::path path(argument);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  VIT_CHECK(status.type() != fs::file_type::not_found, "open", "no such file or folder");
  VIT_CHECK(!error, "open", error.message());
  if (fs::is_directory(status)) {
    const std::vector<fs::path> images = images_below(path);
    VIT_CHECK(!images.empty(), "read folder", "no images below this folder");
    for (const fs::path& image : images)
      list.inputs.push_back({.name = image.string(), .path = image, .pixels = nullptr});
  } else if (lower_extension(path) == ".npy") {
    const auto pixels = std::make_shared<const PixelFile>(path);
    for (std::size_t i = 0; i < pixels->num_images(); ++i) {
      list.inputs.push_back(
          {.name = text(argument, "[", i, "]"), .path = path, .pixels = pixels, .pixels_index = i});
    }
  } else {
    list.inputs.push_back({.name = argument, .path = path, .pixels = nullptr});
  }
}

void try_path(const std::string& argument, InputList& list) {
  try {
    add_path(argument, list);
  } catch (const Error& error) {
    list.failures.push_back({argument, error.what()});
  }
}

}  // namespace

bool has_image_extension(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return std::find(kImageExtensions.begin(), kImageExtensions.end(), extension) != kImageExtensions.end();
}

std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<fs::path> found, above;
  collect(folder, above, found);
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return found;
}

InputList list_inputs(std::span<const std::string> arguments, std::istream& standard_input) {
  InputList list;
  for (const std::string& argument : arguments) {
    if (argument != "-") {
      try_path(argument, list);
      continue;
    }
    for (std::string line; std::getline(standard_input, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) try_path(line, list);
    }
  }
  return list;
}

}  // namespace vit::app
