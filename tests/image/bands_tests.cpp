// Models of other than three channels: bands of TIFF files, and gray.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/image/image.h"
#include "vit/image/image_file.h"
#include "vit/image/preprocess.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_memory.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

constexpr std::size_t kHeight = 9, kWidth = 13;

/// A kind of samples and of their place in the file.
struct Kind {
  const char* name;
  std::uint16_t format;
  std::uint16_t bits;
  bool planar = false;
  bool tiled = false;
  std::uint16_t compression = COMPRESSION_NONE;
};

constexpr Kind kKinds[] = {
    {"uint8", SAMPLEFORMAT_UINT, 8},
    {"uint8 planar", SAMPLEFORMAT_UINT, 8, true},
    {"int16", SAMPLEFORMAT_INT, 16},
    {"uint16 tiled", SAMPLEFORMAT_UINT, 16, false, true, COMPRESSION_LZW},
    {"uint16 planar tiled", SAMPLEFORMAT_UINT, 16, true, true},
    {"float32 deflate", SAMPLEFORMAT_IEEEFP, 32, false, false, COMPRESSION_ADOBE_DEFLATE},
    {"float32 planar", SAMPLEFORMAT_IEEEFP, 32, true},
    {"float64", SAMPLEFORMAT_IEEEFP, 64},
    {"uint32", SAMPLEFORMAT_UINT, 32},
};

/// The value of a sample, which every kind can hold.
float value_of(std::size_t band, std::size_t y, std::size_t x) {
  return static_cast<float>((7 * band + 3 * y + 5 * x) % 251);
}

void append(std::string& out, const Kind& kind, float value) {
  const auto put = [&](auto number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); };
  if (kind.format == SAMPLEFORMAT_IEEEFP)
    return kind.bits == 32 ? put(value) : put(static_cast<double>(value));
  if (kind.bits == 8) return put(static_cast<std::uint8_t>(value));
  if (kind.bits == 16) return put(static_cast<std::uint16_t>(value));
  put(static_cast<std::uint32_t>(value));
}

/// Samples of the pixels [x, x + width) of a row: of all bands, or of one.
std::string samples(const Kind& kind, std::size_t num_bands, std::size_t band, std::size_t y, std::size_t x,
                    std::size_t width) {
  std::string out;
  for (std::size_t i = x; i < x + width; ++i) {
    for (std::size_t k = 0; k < num_bands; ++k) {
      if (!kind.planar || k == band) append(out, kind, i < kWidth && y < kHeight ? value_of(k, y, i) : 0);
    }
  }
  return out;
}

std::string write_tiff(const std::string& path, const Kind& kind, std::size_t num_bands) {
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kWidth);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kHeight);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, num_bands);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, kind.format);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind.compression);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  constexpr std::size_t kTile = 16;
  if (kind.tiled) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kTile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, kTile);
  }
  for (std::size_t band = 0; band < (kind.planar ? num_bands : 1); ++band) {
    if (kind.tiled) {
      std::string tile;
      for (std::size_t y = 0; y < kTile; ++y) tile += samples(kind, num_bands, band, y, 0, kTile);
      REQUIRE(TIFFWriteTile(tiff, tile.data(), 0, 0, 0, static_cast<std::uint16_t>(band)) > 0);
      continue;
    }
    for (std::size_t y = 0; y < kHeight; ++y) {
      std::string row = samples(kind, num_bands, band, y, 0, kWidth);
      REQUIRE(TIFFWriteScanline(tiff, row.data(), static_cast<std::uint32_t>(y),
                                static_cast<std::uint16_t>(band)) > 0);
    }
  }
  TIFFClose(tiff);
  return read_text(path);
}

/// Rules that bring an image of kHeight x kWidth to a size and normalize it.
PreprocessConfig rules_of(std::size_t num_channels, std::size_t height, std::size_t width) {
  PreprocessConfig rules;
  rules.resize = ResizeRule::squash;
  rules.resize_height = height;
  rules.resize_width = width;
  rules.crop = false;
  rules.filter = ResizeFilter::bilinear;
  rules.mean.clear();
  rules.std.clear();
  for (std::size_t k = 0; k < num_channels; ++k) {
    rules.mean.push_back(0.5 + 0.25 * static_cast<double>(k));
    rules.std.push_back(2.0 + static_cast<double>(k));
  }
  return rules;
}

}  // namespace

TEST_CASE("bands: a TIFF of any number of them, as stored, normalized band by band") {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  for (const Kind& kind : kKinds) {
    for (const std::size_t num_bands : {std::size_t{2}, std::size_t{4}, std::size_t{13}}) {
      CAPTURE(kind.name);
      CAPTURE(num_bands);
      const std::string path = (folder / "bands.tif").string();
      write_tiff(path, kind, num_bands);
      const PreprocessConfig rules = rules_of(num_bands, kHeight, kWidth);
      PreprocessMemory memory;
      const FilePixels found = Preprocessor(rules).run_file(path, memory);
      REQUIRE(found.pixels.shape() == Shape{num_bands, kHeight, kWidth});
      CHECK(found.image_size == ImageSize{kHeight, kWidth});
      const float factor = kind.bits == 8 ? static_cast<float>(1.0 / 255.0) : 1.0f;
      for (std::size_t k = 0; k < num_bands; ++k) {
        for (std::size_t i = 0; i < kHeight * kWidth; ++i) {
          const float stored = value_of(k, i / kWidth, i % kWidth) * factor;
          REQUIRE(found.pixels.data()[k * kHeight * kWidth + i] ==
                  (stored - static_cast<float>(rules.mean[k])) / static_cast<float>(rules.std[k]));
        }
      }
    }
  }
}

TEST_CASE("bands: each is resized as torch's antialias kernel resizes a plane, in any number of threads") {
  constexpr std::size_t kBands = 5;
  Tensor<float> planes(Shape{kBands, kHeight, kWidth});
  for (std::size_t i = 0; i < planes.num_elements(); ++i)
    planes.data()[i] = static_cast<float>((i * 37) % 101) - 50.0f;
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic, ResizeFilter::nearest}) {
    for (const ImageSize target : {ImageSize{4, 6}, ImageSize{20, 13}, ImageSize{9, 30}, ImageSize{9, 13}}) {
      const ResizeWindow window{.top = 1, .left = 2, .height = target.height - 2, .width = target.width - 3};
      Tensor<float> out(Shape{kBands, window.height, window.width});
      for (const int threads : {1, 3}) {
        ResizeMemory memory;
        resize_planes(planes, target, window, filter, threads, memory, out.view());
        for (std::size_t k = 0; k < kBands; ++k) {
          // the plain form: rows of weighted sums of columns, in double
          const auto at = [&](std::size_t y, std::size_t x) {
            return static_cast<double>(planes.view()[k].row(y)[x]);
          };
          const AxisSpan columns{.in = kWidth, .out = target.width, .begin = 0, .end = target.width};
          const AxisSpan rows{.in = kHeight, .out = target.height, .begin = 0, .end = target.height};
          for (std::size_t y = 0; y < window.height; ++y) {
            for (std::size_t x = 0; x < window.width; ++x) {
              double expected = 0;
              if (filter == ResizeFilter::nearest) {
                expected = at(NearestAxis(rows, Resampler::torchvision_float).inputs[window.top + y],
                              NearestAxis(columns, Resampler::torchvision_float).inputs[window.left + x]);
              } else {
                const FloatAxis of_rows(rows, filter), of_columns(columns, filter);
                const auto weight = [](const FloatAxis& axis, bool changes, std::size_t i, std::size_t j) {
                  if (!changes) return i == j ? 1.0 : 0.0;
                  if (j < axis.first[i] || j >= axis.first[i] + axis.count[i]) return 0.0;
                  return static_cast<double>(axis.weights[axis.offset[i] + j - axis.first[i]]);
                };
                for (std::size_t from_y = 0; from_y < kHeight; ++from_y)
                  for (std::size_t from_x = 0; from_x < kWidth; ++from_x)
                    expected += at(from_y, from_x) *
                                weight(of_rows, target.height != kHeight, window.top + y, from_y) *
                                weight(of_columns, target.width != kWidth, window.left + x, from_x);
              }
              // a dozen terms of at most 50, each product and sum rounded in float32
              REQUIRE(std::abs(static_cast<double>(out.view()[k].row(y)[x]) - expected) < 2e-4);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("bands: files that do not fit the model are refused by numbers") {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  const std::string path = (folder / "bands.tif").string();
  write_tiff(path, kKinds[0], 4);
  PreprocessMemory memory;
  const auto run = [&](const std::string& file, std::size_t num_channels) {
    return Preprocessor(rules_of(num_channels, 8, 8)).run_file(file, memory);
  };
  CHECK_ERROR(ErrorKind::mismatch, ("bands.tif", "4 bands", "6 channels"), run(path, 6));
  folder.write("image.ppm", "P6 2 2 255\n" + std::string(12, 'x'));
  CHECK_ERROR(ErrorKind::mismatch, ("image.ppm", "PNM", "6", ".npy"),
              run((folder / "image.ppm").string(), 6));
  const Image image(4, 4);
  CHECK_ERROR(ErrorKind::mismatch, ("6 channels"), Preprocessor(rules_of(6, 8, 8)).run(image.view()));
  const std::string whole = read_text(path);
  for (std::size_t length = 0; length + 8 < whole.size(); length += 7) {
    folder.write("cut.tif", whole.substr(0, length));
    CHECK_THROWS_AS(run((folder / "cut.tif").string(), 4), Error);
  }
  PreprocessConfig square = rules_of(4, 8, 8);
  square.pad_to_square = true;
  CHECK_THROWS_AS(Preprocessor(square).run_file(path, memory), Error);
  PreprocessConfig lanczos = rules_of(4, 8, 8);
  lanczos.filter = ResizeFilter::lanczos;
  CHECK_THROWS_AS(Preprocessor(lanczos).run_file(path, memory), Error);
}

TEST_CASE("gray: what Pillow's convert(\"L\") makes, resized as one of three equal channels") {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  Image image(kHeight, kWidth);
  for (std::size_t i = 0; i < 3 * kHeight * kWidth; ++i) image.data()[i] = static_cast<std::uint8_t>(i * 41);
  std::string file = "P6 13 9 255\n";
  file.append(reinterpret_cast<const char*>(image.data()), 3 * kHeight * kWidth);
  folder.write("image.ppm", file);
  Image gray(kHeight, kWidth);
  for (std::size_t i = 0; i < kHeight * kWidth; ++i) {
    const std::uint8_t* const rgb = image.data() + 3 * i;
    const unsigned level = (rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16;
    std::fill_n(gray.data() + 3 * i, 3, static_cast<std::uint8_t>(level));
  }
  for (const bool in_float : {false, true}) {
    for (const ImageSize size : {ImageSize{9, 13}, ImageSize{6, 5}, ImageSize{20, 24}}) {
      PreprocessConfig rules = rules_of(1, size.height, size.width);
      if (in_float) {
        rules.resampler = Resampler::torchvision_float;
        rules.normalize = NormalizeRule::rescale_first;
      }
      rules.crop = true;
      rules.crop_height = size.height + 3;  // padded
      rules.crop_width = size.width;
      PreprocessConfig color = rules;
      color.mean.assign(3, rules.mean[0]);
      color.std.assign(3, rules.std[0]);
      const Tensor<float> expected = Preprocessor(color).run(gray.view());
      PreprocessMemory memory;
      const Tensor<float> of_image = Preprocessor(rules).run(image.view());
      const FilePixels of_file = Preprocessor(rules).run_file(folder / "image.ppm", memory);
      REQUIRE(of_image.shape() == Shape{1, size.height + 3, size.width});
      CHECK(std::ranges::equal(of_image.flat(), expected.view()[0].flat()));
      CHECK(std::ranges::equal(of_file.pixels.flat(), of_image.flat()));
    }
  }
  // one band of more than 8 bits is no gray image, but values
  const Kind deep{"uint16", SAMPLEFORMAT_UINT, 16};
  write_tiff((folder / "deep.tif").string(), deep, 1);
  PreprocessMemory memory;
  const PreprocessConfig rules = rules_of(1, kHeight, kWidth);
  const FilePixels values = Preprocessor(rules).run_file((folder / "deep.tif").string(), memory);
  CHECK(values.pixels.data()[1] == (value_of(0, 0, 1) - 0.5f) / 2.0f);
  write_tiff((folder / "bytes.tif").string(), kKinds[0], 1);
  const FilePixels bytes = Preprocessor(rules).run_file((folder / "bytes.tif").string(), memory);
  CHECK(bytes.pixels.data()[1] == doctest::Approx((value_of(0, 0, 1) / 255.0 - 0.5) / 2.0).epsilon(1e-6));
}
