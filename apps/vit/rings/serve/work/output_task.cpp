#include "apps/vit/rings/serve/work/output_task.h"

#include <string>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/inputs/npy.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kMostMapPixels = std::size_t{1} << 26;  // 256 MiB of float32 while a map is written

void write_text_in_base64(internal::JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name).json("\"" + encode_base64(text) + "\"");
}

}  // namespace

void write_base64(internal::JsonWriter& json, std::string_view name, std::span<const std::byte> bytes) {
  write_text_in_base64(json, name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void write_npy(internal::JsonWriter& json, std::string_view name, std::string_view type,
               std::span<const std::size_t> shape, std::span<const std::byte> bytes) {
  std::string file = npy_header(type, shape);
  file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  write_text_in_base64(json, name, file);
}

void write_npy(internal::JsonWriter& json, std::string_view name, std::string_view type,
               TensorView<const float> numbers) {
  std::vector<std::size_t> shape;
  for (std::size_t i = 0; i < numbers.rank(); ++i) shape.push_back(numbers.dim(i));
  write_npy(json, name, type, shape, std::as_bytes(numbers.flat()));
}

void check_map_size(ImageSize image) {
  VIT_CHECK(image.height != 0 && image.width <= kMostMapPixels / image.height,
            (Where{"answer", ErrorKind::unsupported}), "an image of ", image.width, " x ", image.height,
            " pixels: maps have at most ", kMostMapPixels, " pixels");
}

}  // namespace vit::app
