#include "apps/vit/outputs/png_file.h"

#include <png.h>

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {

void write_png(const std::filesystem::path& path, const Image& image) {
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width());
  header.height = static_cast<png_uint_32>(image.height());
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> bytes(size);
  const bool is_written =
      png_image_write_to_memory(&header, bytes.data(), &size, 0, image.data(), 0, nullptr) != 0;
  VIT_CHECK(is_written, "write", path.string(), ": the PNG could not be written: ", header.message);
  internal::AtomicFile file(path, "write");
  file.write(std::span(bytes).first(size));
  file.commit();
}

}  // namespace vit::app
