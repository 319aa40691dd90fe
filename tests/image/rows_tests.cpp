// Images as rows: what decoders give row by row, whatever is skipped or left out, and what becomes of a file
// that is preprocessed while it is decoded, against the whole image.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/jpeg_writer.h"
#include "tests/support/peak_memory.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/image/row_source.h"

namespace {

namespace fs = std::filesystem;
using vit::test::Bytes;
using vit::test::JpegLayout;
using vit::test::Rng;

std::span<const std::byte> as_file(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes));
}

Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t below(Rng& rng, std::size_t end) {
  return static_cast<std::size_t>(rng.next() % end);
}

/// Smooth colors with edges and noise: neighbouring blocks differ, so that a wrong one shows.
Bytes scene(std::size_t width, std::size_t height, std::size_t channels, Rng& rng) {
  Bytes samples(width * height * channels);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t value =
            ((3 * x * x + 5 * y * y + 7 * (c + 1) * x * y) >> 6) + 31 * c + (rng.next() & 31);
        samples[(y * width + x) * channels + c] = static_cast<std::uint8_t>(value);
      }
    }
  }
  return samples;
}

Bytes jpeg(const JpegLayout& layout, Rng& rng) {
  return vit::test::write_jpeg(
      layout, scene(layout.width, layout.height, static_cast<std::size_t>(layout.components), rng));
}

/// The JPEG with an EXIF block that notes the orientation.
Bytes rotated(const Bytes& file, std::uint8_t orientation) {
  // One entry: orientation (0x0112), type SHORT, one of them.
  const Bytes exif = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42,          0, 8, 0, 0, 0, 1, 0,
                      0x12, 1,   3,   0,   1, 0, 0,   0,   orientation, 0, 0, 0, 0, 0, 0, 0};
  Bytes out = {0xFF, 0xD8, 0xFF, 0xE1, 0, static_cast<std::uint8_t>(exif.size() + 2)};
  vit::test::append(out, exif);
  out.insert(out.end(), file.begin() + 2, file.end());
  return out;
}

/// An RGB or RGBA PNG of one row filter, pixels stored.
Bytes png(std::size_t width, std::size_t height, int color_type, Rng& rng) {
  const std::size_t channels = color_type == 6 ? 4 : 3;
  const Bytes samples = scene(width, height, channels, rng);
  Bytes rows;
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(0);
    rows.insert(rows.end(), samples.begin() + static_cast<std::ptrdiff_t>(y * width * channels),
                samples.begin() + static_cast<std::ptrdiff_t>((y + 1) * width * channels));
  }
  Bytes file = vit::test::png_start(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 8,
                                    color_type, 0);
  vit::test::append_chunk(file, "IDAT", vit::test::zlib_stored(rows));
  vit::test::append_chunk(file, "IEND", {});
  return file;
}

/// JPEGs of all layouts, the small and odd sizes among them.
std::vector<std::pair<JpegLayout, Bytes>> jpegs(Rng& rng) {
  std::vector<std::pair<JpegLayout, Bytes>> files;
  const auto add = [&](const JpegLayout& layout) { files.emplace_back(layout, jpeg(layout, rng)); };
  constexpr std::size_t kSizes[][2] = {{1, 1},   {1, 90},   {90, 1},    {17, 33},
                                       {64, 64}, {130, 97}, {257, 181}, {333, 250}};
  for (const auto& [width, height] : kSizes) {
    for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}, {3, 1}}) {
      add({.width = width, .height = height, .h_samples = h, .v_samples = v});
    }
    add({.width = width, .height = height, .restart_interval = 3});
    add({.width = width, .height = height, .progressive = true});
    add({.width = width, .height = height, .separate_scans = true});
    add({.width = width, .height = height, .arithmetic = true});
    add({.width = width, .height = height, .components = 1, .h_samples = 1, .v_samples = 1});
    add({.width = width, .height = height, .components = 1});
    add({.width = width, .height = height, .components = 4, .h_samples = 1, .v_samples = 1});
    add({.width = width, .height = height, .components = 4});
  }
  return files;
}

std::string name_of(const JpegLayout& layout) {
  return vit::text(layout.width, "x", layout.height, ", ", layout.components, " components, ",
                   layout.h_samples, "x", layout.v_samples, layout.progressive ? ", progressive" : "",
                   layout.separate_scans ? ", separate scans" : "", layout.arithmetic ? ", arithmetic" : "",
                   layout.restart_interval != 0 ? ", restarts" : "");
}

/// Reads and skips rows of `file` in random turns, random columns of them; "" or how they differ from the
/// whole image.
std::string compare_rows(const Bytes& file, const vit::DecodeOptions& options, const vit::Image& whole,
                         Rng& rng) {
  const auto rows = vit::internal::open_rows(as_file(file), options, "memory");
  if (rows == nullptr) return "gives no rows";
  if (rows->size() != whole.size()) return "another size";
  const std::size_t begin = below(rng, whole.width());
  const vit::internal::ColumnRange wanted{begin, begin + 1 + below(rng, whole.width() - begin)};
  const vit::internal::ColumnRange held = rows->start(wanted);
  if (held.begin > wanted.begin || held.end < wanted.end || held.end > whole.width())
    return "other columns than wanted";
  Bytes strip(3 * held.count() * whole.height());
  for (std::size_t y = 0; y < whole.height();) {
    const std::size_t rest = whole.height() - y;
    if (below(rng, 8) == 0) break;  // what is left is passed over by finish()
    const std::size_t count = std::min(rest, 1 + below(rng, below(rng, 2) == 0 ? 4 : 120));
    if (below(rng, 2) == 0) {
      rows->skip(count);
    } else {
      rows->read(strip.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t* const expected = whole.row(y + i) + 3 * wanted.begin;
        const std::uint8_t* const row = strip.data() + 3 * (i * held.count() + wanted.begin - held.begin);
        if (!std::equal(expected, expected + 3 * wanted.count(), row))
          return vit::text("row ", y + i, " of columns ", wanted.begin, " to ", wanted.end, " differs");
      }
    }
    y += count;
  }
  rows->finish();
  return "";
}

std::string check_rows(const Bytes& file, const vit::DecodeOptions& options, Rng& rng) {
  const vit::Image whole = vit::decode_bytes(as_file(file), options, "memory");
  for (int turn = 0; turn < 12; ++turn) {
    if (std::string difference = compare_rows(file, options, whole, rng); !difference.empty())
      return difference;
  }
  return "";
}

/// What preprocessing gives, or says.
struct Outcome {
  std::vector<float> pixels;
  vit::ImageSize image_size;
  std::string message;
  std::optional<vit::ErrorKind> kind;
  bool operator==(const Outcome&) const = default;
};

template <typename Run>
Outcome outcome_of(Run run) {
  Outcome outcome;
  try {
    const vit::FilePixels file = run();
    outcome.image_size = file.image_size;
    outcome.pixels.assign(file.pixels.data(), file.pixels.data() + file.pixels.num_elements());
  } catch (const vit::Error& error) {
    outcome.message = error.what();
    outcome.kind = error.kind();
  }
  return outcome;
}

/// Whether the file as rows and as whole image have the same pixels, bit by bit, or the same error.
std::string compare(const vit::Preprocessor& preprocessor, const Bytes& file, vit::PreprocessMemory& memory) {
  const Outcome rows = outcome_of([&] { return preprocessor.run_bytes(as_file(file), "memory", memory); });
  const Outcome whole = outcome_of([&] {
    const vit::Image image = vit::decode_bytes(as_file(file), preprocessor.decode_options(), "memory");
    return vit::FilePixels{.pixels = preprocessor.run(image), .image_size = image.size()};
  });
  if (rows.message != whole.message) return "\"" + rows.message + "\" instead of \"" + whole.message + "\"";
  if (rows.kind != whole.kind) return "another kind of error";
  if (rows.image_size != whole.image_size) return "another image size";
  const auto equal_bits = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  return std::ranges::equal(rows.pixels, whole.pixels, equal_bits) ? "" : "other pixels";
}

using vit::PillowRelease;
using vit::Resampler;
using vit::ResizeFilter;
using vit::ResizeRule;

/// Shortest edge to `resize`, a square of `crop` from its middle.
vit::PreprocessConfig rules_of(std::size_t resize = 256, std::size_t crop = 224) {
  vit::PreprocessConfig config;
  config.resize_height = config.resize_width = resize;
  config.crop_height = config.crop_width = crop;
  config.source = "rules";
  return config;
}

/// Every resize rule with every resampler, release and filter that it has.
std::vector<vit::PreprocessConfig> all_rules() {
  std::vector<vit::PreprocessConfig> rules;
  const auto add_resamplers = [&](const vit::PreprocessConfig& rule) {
    for (const ResizeFilter filter : {ResizeFilter::nearest, ResizeFilter::bilinear, ResizeFilter::bicubic,
                                      ResizeFilter::lanczos, ResizeFilter::box, ResizeFilter::hamming}) {
      vit::PreprocessConfig config = rule;
      config.filter = filter;
      for (const PillowRelease release :
           {PillowRelease::up_to_12_1, PillowRelease::from_12_2, PillowRelease::from_13_0}) {
        config.pillow = release;
        rules.push_back(config);
      }
      if (filter == ResizeFilter::box || filter == ResizeFilter::hamming) continue;
      config.resampler = Resampler::torchvision_uint8;
      rules.push_back(config);
      if (filter == ResizeFilter::lanczos) continue;
      config.resampler = Resampler::torchvision_float;
      config.normalize = vit::NormalizeRule::rescale_first;
      rules.push_back(config);
    }
  };
  vit::PreprocessConfig rule = rules_of(36, 32);
  for (const ResizeRule resize : {ResizeRule::shortest_edge, ResizeRule::squash, ResizeRule::cover,
                                  ResizeRule::contain, ResizeRule::contain_trunc}) {
    rule.resize = resize;
    rule.crop = true;
    add_resamplers(rule);
    rule.crop = false;
    add_resamplers(rule);
  }
  rule.resize = ResizeRule::shortest_edge;
  rule.longest_edge = 50;
  add_resamplers(rule);
  rule.longest_edge = 0;
  rule.crop = true;
  rule.resize_height = rule.resize_width = 300;  // larger than most of the images
  rule.crop_height = rule.crop_width = 224;
  rules.push_back(rule);
  rule.resize = ResizeRule::none;
  rule.crop_multiple = 16;
  rules.push_back(rule);
  rule.channels = vit::ChannelOrder::bgr;
  rule.alpha_on_white = true;
  rule.apply_orientation = true;
  rules.push_back(rule);
  rule.crop_multiple = 0;
  rule.pad_to_square = true;
  rule.resize = ResizeRule::squash;
  rules.push_back(rule);
  return rules;
}

/// The images below data/, of formats that give rows and of some that do not.
std::vector<fs::path> sample_files() {
  std::vector<fs::path> files;
  for (const char* const folder : {"images", "golden/preprocess/decode", "golden/tagger"}) {
    for (const auto& entry : fs::directory_iterator(vit::test::data_path(folder))) {
      constexpr std::string_view kImages[] = {".jpg", ".png",  ".tif", ".bmp",
                                              ".ppm", ".webp", ".gif", ".jp2"};
      if (std::find(std::begin(kImages), std::end(kImages), entry.path().extension()) != std::end(kImages))
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("image: rows of every JPEG layout, skipped and cut to columns, are those of the whole image") {
  Rng rng(1);
  for (const auto& file : jpegs(rng)) {
    CAPTURE(name_of(file.first));
    CHECK(check_rows(file.second, {}, rng) == "");
  }
}

TEST_CASE("image: rows of the sample files are those of the whole image") {
  Rng rng(2);
  std::size_t num_files = 0;
  for (const fs::path& path : sample_files()) {
    CAPTURE(path.filename().string());
    const Bytes file = read_bytes(path);
    for (const vit::Alpha alpha : {vit::Alpha::drop, vit::Alpha::on_white}) {
      const vit::DecodeOptions options{.alpha = alpha};
      if (vit::internal::open_rows(as_file(file), options, "memory") == nullptr) continue;
      CHECK(check_rows(file, options, rng) == "");
      ++num_files;
    }
  }
  CHECK(num_files > 60);  // two of each: JPEG, PNG, TIFF, BMP, PNM
}

TEST_CASE("image: a rotated image is preprocessed to the same bits as rows and as a whole, by every rule") {
  Rng rng(8);
  vit::PreprocessMemory memory;
  const Bytes wide = jpeg({.width = 150, .height = 60}, rng);
  const Bytes tall = jpeg({.width = 20, .height = 333}, rng);
  const vit::DecodeOptions upright{.orientation = vit::Orientation::apply};
  REQUIRE(vit::decode_bytes(as_file(rotated(wide, 6)), upright, "memory").size() == vit::ImageSize{150, 60});
  for (vit::PreprocessConfig config : all_rules()) {
    config.apply_orientation = true;
    const vit::Preprocessor preprocessor(config);
    CAPTURE(preprocessor.describe());
    for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
      CAPTURE(orientation);
      CHECK(compare(preprocessor, rotated(wide, orientation), memory) == "");
      CHECK(compare(preprocessor, rotated(tall, orientation), memory) == "");
    }
  }
}

TEST_CASE("image: rows of a rotated image are those that are stored") {
  for (const char* const name : {"orientation_6.jpg", "orientation_6.png"}) {
    const Bytes file = read_bytes(vit::test::data_path("golden/preprocess/decode") / name);
    const vit::DecodeOptions upright{.orientation = vit::Orientation::apply};
    const auto rows = vit::internal::open_rows(as_file(file), upright, name);
    REQUIRE(rows != nullptr);
    CHECK(rows->orientation() == 6);
    CHECK(rows->size() == vit::decode_bytes(as_file(file), {}, name).size());
  }
}

TEST_CASE("image: a file is preprocessed to the same bits as rows and as a whole, by every rule") {
  Rng rng(3);
  std::vector<Bytes> files;
  for (const auto& [width, height] :
       {std::pair{1u, 1u}, {3u, 40u}, {40u, 3u}, {36u, 36u}, {97u, 61u}, {64u, 800u}}) {
    files.push_back(jpeg({.width = width, .height = height}, rng));
    files.push_back(png(width, height, 6, rng));
  }
  files.push_back(jpeg({.width = 333, .height = 250, .h_samples = 2, .v_samples = 1}, rng));
  vit::PreprocessMemory memory;
  for (const vit::PreprocessConfig& config : all_rules()) {
    const vit::Preprocessor preprocessor(config);
    CAPTURE(preprocessor.describe());
    for (std::size_t i = 0; i < files.size(); ++i) {
      CAPTURE(i);
      CHECK(compare(preprocessor, files[i], memory) == "");
    }
  }
}

TEST_CASE("image: the sample files are preprocessed to the same bits as rows and as a whole") {
  vit::PreprocessMemory memory;
  vit::PreprocessConfig config = rules_of();
  for (const Resampler resampler :
       {Resampler::pillow, Resampler::torchvision_uint8, Resampler::torchvision_float}) {
    config.resampler = resampler;
    if (resampler == Resampler::torchvision_float) config.normalize = vit::NormalizeRule::rescale_first;
    for (const bool upright : {false, true}) {
      config.apply_orientation = config.alpha_on_white = upright;
      const vit::Preprocessor preprocessor(config);
      for (const fs::path& path : sample_files()) {
        CAPTURE(path.filename().string());
        CHECK(compare(preprocessor, read_bytes(path), memory) == "");
      }
    }
  }
}

TEST_CASE("image: photographs are preprocessed to the same bits as rows and as a whole") {
  SKIP_WITHOUT_SHARED("images/imagenet-sample");
  vit::PreprocessMemory memory;
  const vit::Preprocessor cropped(rules_of());
  const vit::Preprocessor cropped_more(rules_of(64, 16));
  std::size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(vit::test::shared_path("images/imagenet-sample"))) {
    CAPTURE(entry.path().filename().string());
    const Bytes file = read_bytes(entry.path());
    CHECK(compare(cropped, file, memory) == "");
    CHECK(compare(cropped_more, file, memory) == "");
    ++num_files;
  }
  CHECK(num_files > 0);
}

TEST_CASE("image: a file cut anywhere is refused as rows as it is as a whole") {
  Rng rng(4);
  const vit::Preprocessor preprocessor(rules_of(20, 8));
  vit::PreprocessMemory memory;
  const auto check_cuts = [&](const Bytes& file) {
    const std::size_t step = std::max<std::size_t>(file.size() / 150, 1);
    for (std::size_t size = 0; size<file.size(); size += size + 40> file.size() ? 1 : step) {
      CAPTURE(size);
      CHECK(compare(preprocessor, Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                    memory) == "");
    }
  };
  for (const JpegLayout& layout :
       {JpegLayout{.width = 90, .height = 200}, JpegLayout{.width = 200, .height = 90, .restart_interval = 2},
        JpegLayout{.width = 90, .height = 200, .progressive = true},
        JpegLayout{.width = 90, .height = 200, .arithmetic = true},
        JpegLayout{.width = 90, .height = 200, .separate_scans = true},
        JpegLayout{.width = 200, .height = 90, .h_samples = 2, .v_samples = 1}}) {
    CAPTURE(name_of(layout));
    check_cuts(jpeg(layout, rng));
  }
  check_cuts(png(60, 100, 2, rng));
  for (const char* const name : {"rgb.bmp", "rgb.ppm", "lzw.tif", "grey16.tif", "rgba.tif", "rgba.png"}) {
    CAPTURE(name);
    check_cuts(read_bytes(vit::test::data_path("golden/preprocess/decode") / name));
  }
}

TEST_CASE("image: a damaged file is the same as rows and as a whole") {
  Rng rng(5);
  const vit::Preprocessor preprocessor(rules_of(20, 8));
  vit::PreprocessMemory memory;
  std::vector<Bytes> files = {png(60, 100, 2, rng), png(60, 100, 6, rng)};
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}}) {
    files.push_back(jpeg({.width = 150, .height = 200, .h_samples = h, .v_samples = v}, rng));
    files.push_back(
        jpeg({.width = 150, .height = 200, .h_samples = h, .v_samples = v, .restart_interval = 4}, rng));
  }
  files.push_back(jpeg({.width = 150, .height = 200, .progressive = true}, rng));
  for (const char* const name : {"rgb.bmp", "palette.bmp", "rgb.ppm", "lzw.tif", "rgba.tif", "rgba.png"})
    files.push_back(read_bytes(vit::test::data_path("golden/preprocess/decode") / name));
  for (const Bytes& file : files) {
    for (int turn = 0; turn < 150; ++turn) {
      Bytes damaged = file;
      for (std::size_t i = 0, count = 1 + below(rng, 4); i < count; ++i)
        damaged[below(rng, damaged.size())] = static_cast<std::uint8_t>(rng.next());
      CHECK(compare(preprocessor, damaged, memory) == "");
    }
  }
}

TEST_CASE("image: a JPEG without its end marker is whole if the data of all rows are there") {
  Rng rng(8);
  const vit::Preprocessor preprocessor(rules_of(20, 8));
  vit::PreprocessMemory memory;
  const auto decoded = [](const Bytes& file) { return vit::decode_bytes(as_file(file), {}, "memory"); };
  const auto unended = [](Bytes file) {
    file.resize(file.size() - 2);
    file.resize(file.size() + 100, 0);  // as cameras fill up their buffers
    return file;
  };
  for (const JpegLayout& layout :
       {JpegLayout{.width = 90, .height = 50}, JpegLayout{.width = 33, .height = 41, .components = 1},
        JpegLayout{.width = 90, .height = 50, .restart_interval = 2}}) {
    CAPTURE(name_of(layout));
    const Bytes file = jpeg(layout, rng), open = unended(file);
    const vit::Image whole = decoded(file), image = decoded(open);
    REQUIRE(image.size() == whole.size());
    CHECK(std::equal(whole.data(), whole.data() + 3 * whole.width() * whole.height(), image.data()));
    CHECK(compare(preprocessor, open, memory) == "");
  }
  // Several scans are read to their end before the first row.
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "truncated"),
              decoded(unended(jpeg({.width = 90, .height = 50, .progressive = true}, rng))));
}

TEST_CASE("image: the pixel limit of a file holds for rows") {
  Rng rng(6);
  const Bytes file = jpeg({.width = 100, .height = 80}, rng);
  const auto open = [&](std::size_t max_pixels) {
    return vit::internal::open_rows(as_file(file), {.max_pixels = max_pixels}, "memory");
  };
  CHECK(open(8000) != nullptr);
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "100 x 80", "7999"), open(7999));
}

TEST_CASE("image: a photograph of 12 megapixels passes through a few megabytes") {
  Rng rng(7);
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  const Bytes file = jpeg({.width = 4000, .height = 3000}, rng);
  const vit::Preprocessor preprocessor(rules_of());
  vit::PreprocessMemory memory;
  CHECK(vit::test::peak_growth_bytes([&] {
          CHECK(preprocessor.run_bytes(as_file(file), "memory", memory).image_size ==
                vit::ImageSize{3000, 4000});
        }) < 6 * kMegabyte);
  CHECK(memory.bytes() < 2 * kMegabyte);
  // Another one like it: the source, its name, a row of it and the pixels. libjpeg has memory of its own.
  const std::size_t before = vit::test::allocation_count();
  preprocessor.run_bytes(as_file(file), "memory", memory);
  CHECK(vit::test::allocation_count() - before <= 8);
}
