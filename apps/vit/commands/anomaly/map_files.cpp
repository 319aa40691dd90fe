#include "apps/vit/commands/anomaly/map_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/vit/commands/show/drawing.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/outputs/png_file.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {

namespace fs = std::filesystem;

std::string parse_map_format(const std::string& value) {
  if (value != "npy" && value != "color" && value != "overlay") fail_value("npy, color or overlay", value);
  return value;
}

AnomalyMaps::AnomalyMaps(fs::path folder, std::vector<std::string> formats, std::span<const Input> inputs)
    : folder_(std::move(folder)), inputs_(inputs), formats_(std::move(formats)) {
  if (formats_.empty()) formats_ = {"npy", "color", "overlay"};
  if (has("color") || has("overlay")) check_can_draw();
  std::error_code error;
  fs::create_directories(folder_, error);
  VIT_CHECK(fs::is_directory(folder_, error), Where("write maps", ErrorKind::io), folder_.string(),
            ": no such folder, and it cannot be made");
}

bool AnomalyMaps::has(std::string_view format) const {
  return std::ranges::find(formats_, format) != formats_.end();
}

fs::path AnomalyMaps::path_of(const std::string& name) const {
  const fs::path path = folder_ / name;
  inputs_.check_kept(path);
  return path;
}

void AnomalyMaps::write(const std::string& input_name, TensorView<const float> map, double scale,
                        const Image& source) {
  std::string stem = fs::path(input_name).filename().string();
  if (const std::size_t dot = stem.rfind('.'); dot != std::string::npos && dot != 0 && !stem.ends_with(']'))
    stem.resize(dot);
  const std::size_t before = names_[stem]++;
  if (before != 0) stem += text("-", before);
  if (has("npy")) {
    const std::array<std::size_t, 2> shape{map.dim(0), map.dim(1)};
    const std::string header = npy_header("<f4", shape);
    internal::AtomicFile file(path_of(stem + ".npy"), "write maps");
    file.write(std::as_bytes(std::span(header)));
    file.write(std::as_bytes(map.flat()));
    file.commit();
  }
  if (has("color")) write_png(path_of(stem + ".png"), draw_colors(map, 0, scale, nullptr));
  if (has("overlay")) write_png(path_of(stem + "-overlay.png"), draw_colors(map, 0, scale, &source));
}

}  // namespace vit::app
