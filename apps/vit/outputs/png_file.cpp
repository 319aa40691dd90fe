#include "apps/vit/outputs/png_file.h"

#include <png.h>

#include <cstddef>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {

std::vector<std::byte> encode_png(const Image& image) {
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width());
  header.height = static_cast<png_uint_32>(image.height());
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> bytes(size);
  const bool is_written =
      png_image_write_to_memory(&header, bytes.data(), &size, 0, image.data(), 0, nullptr) != 0;
  VIT_CHECK(is_written, "write", "the PNG could not be made: ", header.message);
  bytes.resize(size);
  return bytes;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  const std::vector<std::byte> bytes = encode_png(image);
  internal::AtomicFile file(path, "write");
  file.write(bytes);
  file.commit();
}

}  // namespace vit::app
