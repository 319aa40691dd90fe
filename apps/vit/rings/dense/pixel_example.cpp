#include "apps/vit/rings/dense/pixel_example.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/png_values.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr Where kExample{"like", ErrorKind::mismatch};

struct Example {
  fs::path image;
  fs::path mask;                     // or
  std::vector<std::size_t> numbers;  // x, y, x, y, ...
};

/// The integers of a list with commas; nothing for anything else.
std::optional<std::vector<std::size_t>> integers_of(std::string_view list) {
  std::vector<std::size_t> out;
  while (true) {
    const std::string_view word = list.substr(0, list.find(','));
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    out.push_back(number);
    if (word.size() == list.size()) return out;
    list.remove_prefix(word.size() + 1);
  }
}

Example parse_example(const std::string& like) {
  constexpr const char* kForm = "--like IMAGE:X,Y[,X,Y...] or IMAGE:MASK.png";
  const std::size_t colon = like.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == like.size()) fail_value(kForm, like);
  Example out{.image = like.substr(0, colon), .mask = {}, .numbers = {}};
  const std::string rest = like.substr(colon + 1);
  if (const auto numbers = integers_of(rest)) {
    if (numbers->size() % 2 != 0) fail_value(kForm, like);
    out.numbers = *numbers;
  } else {
    if (fs::path(rest).extension() != ".png") fail_value(kForm, like);
    out.mask = rest;
  }
  return out;
}

/// 1 for the pixels of the marked patches, 0 for all others.
Tensor<std::int32_t> labels_of_points(const Example& example, const PixelFeatures& features) {
  const ImageSize size = features.size();
  std::vector<std::size_t> marked;
  for (std::size_t i = 0; i + 1 < example.numbers.size(); i += 2) {
    const std::size_t x = example.numbers[i], y = example.numbers[i + 1];
    VIT_CHECK(x < size.width && y < size.height, kExample, example.image.string(), ": pixel ", x, ",", y,
              " lies outside of the image of ", size.width, " x ", size.height, " (width x height)");
    marked.push_back(features.patch_at(x, y));
  }
  std::ranges::sort(marked);
  Tensor<std::int32_t> labels(Shape{size.height, size.width});
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; ++x)
      labels.view().row(y)[x] = std::ranges::binary_search(marked, features.patch_at(x, y)) ? 1 : 0;
  }
  return labels;
}

/// 1 where a mask is not 0, and not transparent.
Tensor<std::int32_t> labels_of_mask(const Example& example, ImageSize size) {
  const PngValues png = read_png_values(example.mask, kExample);
  VIT_CHECK(png.values.dim(0) == size.height && png.values.dim(1) == size.width, kExample,
            example.mask.string(), ": a mask of ", png.values.dim(1), " x ", png.values.dim(0),
            " pixels for an image of ", size.width, " x ", size.height);
  Tensor<std::int32_t> labels(png.values.shape());
  std::size_t count = 0;
  for (std::size_t i = 0; i < labels.num_elements(); ++i) {
    const bool is_marked = png.alpha.empty() ? png.values.data()[i] != 0 : png.alpha.data()[i] != 0;
    labels.data()[i] = is_marked ? 1 : 0;
    count += is_marked;
  }
  VIT_CHECK(count > 0 && count < labels.num_elements(), kExample, example.mask.string(), ": marks ",
            count == 0 ? "no pixel" : "all pixels", "; what is looked for is not 0, and all else is");
  return labels;
}

}  // namespace

std::vector<fs::path> example_files(const std::string& like) {
  if (like.empty()) return {};
  const Example example = parse_example(like);
  if (example.mask.empty()) return {example.image};
  return {example.image, example.mask};
}

std::string example_digest(const std::string& like) {
  std::string out;
  for (const fs::path& file : example_files(like)) out += sha256(internal::SourceFile(file, kExample)) + " ";
  for (const std::size_t number : parse_example(like).numbers) out += text(number, ",");
  return out;
}

PixelHead learn_example(const std::string& like, const std::shared_ptr<const Model>& model,
                        const CommonOptions& common) {
  const Example example = parse_example(like);
  PixelExtractor extractor(model, {.size = common.session.input_size}, common.session.threads);
  const Preprocessor preprocessor(model->preprocess_config());
  const Image image = decode_file(example.image, preprocessor.decode_options());
  const PixelFeatures features = extractor.extract(image);
  PixelTrainer trainer;
  trainer.add(
      features,
      example.mask.empty() ? labels_of_points(example, features) : labels_of_mask(example, image.size()),
      common.session.threads);
  return trainer.fit_example();
}

}  // namespace vit::app
