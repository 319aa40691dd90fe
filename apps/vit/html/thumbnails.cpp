#include "apps/vit/html/thumbnails.h"

#include <webp/encode.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <new>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/inputs/input_reader.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/image/preprocess.h"

namespace vit::app {
namespace {

constexpr float kQuality = 72.0f;
constexpr std::size_t kSmallestEdge = 96, kLargestEdge = 320;
/// Photographs of this quality take about 0.13 bytes per pixel of the enclosing square, base64 4 / 3
/// of that; pages that still become too large omit thumbnails.
constexpr double kBytesPerPixel = 0.18;
constexpr std::size_t kInputsAtOnce = 64;

Thumbnail make_thumbnail(const Input& input, std::size_t max_edge) {
  Thumbnail out;
  if (input.pixels || input.path.empty()) {
    out.failure = input.pixels ? "preprocessed pixels" : "image not found";
    return out;
  }
  try {
    const Image image = decode_input(input, {.orientation = Orientation::apply, .alpha = Alpha::on_white});
    out.size = image.size();
    out.webp = encode_thumbnail(image, max_edge);
  } catch (const Error& error) {
    out.failure = error.message();
  } catch (const std::bad_alloc&) {
    out.failure = "not enough memory for this image";
  }
  return out;
}

bool is_regular(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

std::size_t thumbnail_edge(std::size_t num_pictures, std::size_t page_bytes, std::size_t largest) {
  const double pixels = static_cast<double>(page_bytes) / kBytesPerPixel /
                        static_cast<double>(std::max<std::size_t>(num_pictures, 1));
  return std::clamp(static_cast<std::size_t>(std::sqrt(pixels)), kSmallestEdge, largest);
}

std::string encode_thumbnail(ImageView image, std::size_t max_edge) {
  PreprocessConfig rules;
  rules.source = "thumbnail";
  rules.filter = ResizeFilter::bicubic;
  const bool is_large = std::max(image.height(), image.width()) > max_edge;
  rules.resize = is_large ? ResizeRule::contain : ResizeRule::none;
  rules.resize_height = rules.resize_width = max_edge;
  rules.crop = false;
  const Image small = Preprocessor(rules).crop_stage(image);
  std::uint8_t* bytes = nullptr;
  const std::size_t size =
      ::WebPEncodeRGB(small.data(), static_cast<int>(small.width()), static_cast<int>(small.height()),
                      static_cast<int>(small.row_stride()), kQuality, &bytes);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> owner(bytes, ::WebPFree);
  VIT_CHECK(size != 0, "thumbnail", "libwebp cannot encode an image of ", small.width(), " x ",
            small.height());
  return {reinterpret_cast<const char*>(bytes), size};
}

std::vector<Thumbnail> make_thumbnails(std::span<const Input> inputs, const ThumbnailOptions& options) {
  std::vector<Thumbnail> out(inputs.size());
  const std::size_t max_edge = thumbnail_edge(inputs.size(), options.page_bytes, kLargestEdge);
  Progress progress("html", inputs.size(), options.progress, "thumbnails");
  for (std::size_t first = 0; first < inputs.size(); first += kInputsAtOnce) {
    const std::size_t count = std::min(kInputsAtOnce, inputs.size() - first);
    if (interrupted()) {
      for (std::size_t i = first; i < inputs.size(); ++i) out[i].failure = "the run was interrupted";
      break;
    }
    internal::parallel_for(count, options.threads, [&](std::size_t i, int) {
      out[first + i] = make_thumbnail(inputs[first + i], max_edge);
    });
    progress.add_done(count);
  }
  progress.finish("");
  return out;
}

std::vector<Input> find_inputs(std::span<const std::string> names) {
  std::map<std::string, std::map<std::string, Input>> archives;
  std::vector<Input> out;
  for (const std::string& name : names) {
    Input input{.name = name, .path = {}, .pixels = nullptr};
    const std::size_t tar = name.find(".tar/");
    if (is_regular(name)) {
      input.path = name;
    } else if (tar != name.npos && is_regular(name.substr(0, tar + 4))) {
      const std::string archive = name.substr(0, tar + 4);
      if (!archives.contains(archive)) {
        for (Input& member : list_inputs(std::span(&archive, 1), std::cin).inputs)
          archives[archive].emplace(member.name, member);
      }
      if (const auto found = archives[archive].find(name); found != archives[archive].end())
        input = found->second;
    }
    out.push_back(std::move(input));
  }
  return out;
}

}  // namespace vit::app
