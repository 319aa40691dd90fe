// Reads the file, recognizes its format, calls its decoder, and does the common steps: size limit,
// transparency, orientation.
#include "vit/image/image.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/system.h"
#include "vit/image/codecs.h"
#include "vit/image/convert.h"
#include "vit/image/image_file.h"
#include "vit/io/foreign_files.h"

namespace vit {

namespace internal::codecs {

void check_size(const Source& source, std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0) refuse(source, "the header specifies ", width, " x ", height, " pixels");
  // Edges stay below 2^31, so that no decoder overflows; every product below fits 64 bits.
  constexpr std::uint64_t kMaxEdge = 0x7FFFFFFF;
  if (width > kMaxEdge || height > kMaxEdge || width * height > source.max_pixels) {
    refuse_unsupported(source, "too many pixels: ", width, " x ", height, ", the limit is ",
                       source.max_pixels);
  }
}

Decoded decode_rows(RowSource& rows) {
  const ImageSize size = rows.size();
  rows.start({0, size.width});
  Decoded decoded;
  decoded.image = Image(size.height, size.width);
  rows.read(decoded.image.data(), size.height);
  rows.finish();
  decoded.orientation = rows.orientation();
  return decoded;
}

}  // namespace internal::codecs

namespace {

namespace codecs = internal::codecs;
using codecs::Decoded;
using codecs::Source;

using codecs::kReadFile;

struct Signature {
  std::size_t offset;
  std::string_view text;
};

struct Format {
  std::string_view name;
  std::initializer_list<Signature> signatures;  // all of them
  Decoded (*decode)(const Source&);
  std::unique_ptr<internal::RowSource> (*open)(const Source&) = nullptr;  // null: delivers no rows
};

bool matches(const Signature& signature, std::span<const std::uint8_t> bytes) {
  return bytes.size() >= signature.offset + signature.text.size() &&
         std::memcmp(bytes.data() + signature.offset, signature.text.data(), signature.text.size()) == 0;
}

bool matches(const Format& format, std::span<const std::uint8_t> bytes) {
  return std::all_of(format.signatures.begin(), format.signatures.end(),
                     [&](const Signature& signature) { return matches(signature, bytes); });
}

using namespace std::string_view_literals;

/// A file of the container shared by HEIF and AVIF with neither as the first brand: AVIF if its list of
/// brands contains it.
Decoded decode_container(const Source& source) {
  const std::size_t length = source.bytes.size() < 16 ? 0 : codecs::be32(source.bytes.data());
  for (std::size_t at = 16; at + 4 <= std::min(length, source.bytes.size()); at += 4) {
    const std::string_view brand(reinterpret_cast<const char*>(source.bytes.data()) + at, 4);
    if (brand == "avif" || brand == "avis") return codecs::decode_avif(source);
  }
  return codecs::decode_heif(source);
}

const Format kFormats[] = {
    {"JPEG", {{0, "\xFF\xD8\xFF"sv}}, codecs::decode_jpeg, codecs::open_jpeg},
    {"PNG", {{0, "\x89PNG\r\n\x1A\n"sv}}, codecs::decode_png, codecs::open_png},
    {"TIFF", {{0, "II*\0"sv}}, codecs::decode_tiff, codecs::open_tiff},
    {"TIFF", {{0, "MM\0*"sv}}, codecs::decode_tiff, codecs::open_tiff},
    {"TIFF", {{0, "II+\0"sv}}, codecs::decode_tiff, codecs::open_tiff},
    {"TIFF", {{0, "MM\0+"sv}}, codecs::decode_tiff, codecs::open_tiff},
    {"WebP", {{0, "RIFF"sv}, {8, "WEBP"sv}}, codecs::decode_webp},
    {"BMP", {{0, "BM"sv}}, codecs::decode_bmp, codecs::open_bmp},
    {"BMP", {{0, "\x0C\0\0\0"sv}}, codecs::decode_dib},  // the sizes of its information header
    {"BMP", {{0, "\x28\0\0\0"sv}}, codecs::decode_dib},
    {"BMP", {{0, "\x34\0\0\0"sv}}, codecs::decode_dib},
    {"BMP", {{0, "\x38\0\0\0"sv}}, codecs::decode_dib},
    {"BMP", {{0, "\x40\0\0\0"sv}}, codecs::decode_dib},
    {"BMP", {{0, "\x6C\0\0\0"sv}}, codecs::decode_dib},
    {"BMP", {{0, "\x7C\0\0\0"sv}}, codecs::decode_dib},
    {"Windows icon", {{0, "\0\0\x01\0"sv}}, codecs::decode_ico},
    {"JPEG 2000", {{0, "\0\0\0\x0CjP  \r\n\x87\n"sv}}, codecs::decode_jpeg2000},
    {"JPEG 2000", {{0, "\xFF\x4F\xFF\x51"sv}}, codecs::decode_jpeg2000},
    {"PNM", {{0, "P1"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "P2"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "P3"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "P4"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "P5"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "P6"sv}}, codecs::decode_pnm, codecs::open_pnm},
    {"PNM", {{0, "Pf"sv}}, codecs::decode_pnm},
    {"GIF", {{0, "GIF87a"sv}}, codecs::decode_gif},
    {"GIF", {{0, "GIF89a"sv}}, codecs::decode_gif},
    {"AVIF", {{4, "ftypavif"sv}}, codecs::decode_avif},
    {"AVIF", {{4, "ftypavis"sv}}, codecs::decode_avif},
    {"HEIF", {{4, "ftyphei"sv}}, codecs::decode_heif},
    {"HEIF", {{4, "ftyphevc"sv}}, codecs::decode_heif},
    {"HEIF", {{4, "ftypmif1"sv}}, decode_container},
    {"HEIF", {{4, "ftypmsf1"sv}}, decode_container},
};

/// Formats that are recognized but not supported, with the reason: each must match Pillow's bytes, and
/// such files are rarely used with models.
struct RefusedFormat {
  std::string_view name;
  Signature signature;
  std::string_view why;
};

constexpr std::string_view kOld = "from before PNG";
constexpr std::string_view kDrawing = "a drawing or document without pixels";
constexpr std::string_view kWide = "values of more than 8 bits, which no image processor of a model supports";
constexpr std::string_view kGame = "a texture";

const RefusedFormat kRefused[] = {
    {"JPEG XL", {0, "\0\0\0\x0CJXL "sv}, "Pillow reads it only through plugins"},
    {"JPEG XL", {0, "\xFF\x0A"sv}, "Pillow reads it only through plugins"},
    {"JPEG XR", {0, "II\xBC\x01"sv}, "Pillow does not either"},
    {"QOI", {0, "qoif"sv}, "an intermediate format of programs"},
    {"PCX", {0, "\x0A\x05\x01"sv}, kOld},
    {"PCX", {0, "\x0A\x04\x01"sv}, kOld},
    {"PCX", {0, "\x0A\x03\x01"sv}, kOld},
    {"PCX", {0, "\x0A\x02\x01"sv}, kOld},
    {"PCX", {0, "\x0A\x00\x01"sv}, kOld},
    {"DCX", {0, "\xB1\x68\xDE\x3A"sv}, kOld},
    {"SGI", {0, "\x01\xDA\x00"sv}, kOld},
    {"SGI", {0, "\x01\xDA\x01"sv}, kOld},
    {"Sun raster", {0, "\x59\xA6\x6A\x95"sv}, kOld},
    {"XPM", {0, "/* XPM */"sv}, kOld},
    {"Apple icon", {0, "icns"sv}, "a set of images"},
    {"Windows cursor", {0, "\0\0\x02\0"sv}, "a set of images"},
    {"FITS", {0, "SIMPLE  ="sv}, kWide},
    {"OpenEXR", {0, "\x76\x2F\x31\x01"sv}, kWide},
    {"Radiance HDR", {0, "#?RADIANCE"sv}, kWide},
    {"Radiance HDR", {0, "#?RGBE"sv}, kWide},
    {"PDF", {0, "%PDF"sv}, kDrawing},
    {"PostScript", {0, "%!PS"sv}, kDrawing},
    {"SVG", {0, "<svg"sv}, kDrawing},
    {"PSD", {0, "8BPS"sv}, "layers, which only the original program composes correctly"},
    {"DDS", {0, "DDS "sv}, kGame},
    {"KTX", {0, "\xABKTX "sv}, kGame},
};

/// TGA has no signature: a header of 18 bytes with fields in range is recognized as TGA.
bool is_targa(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kHeaderBytes = 18;
  if (bytes.size() < kHeaderBytes) return false;
  const bool has_palette = bytes[1] == 1;
  const std::uint8_t type = bytes[2], depth = bytes[16];
  const bool is_kind =
      (has_palette ? type == 1 || type == 9 : type == 2 || type == 3 || type == 10 || type == 11);
  const bool is_depth = depth == 8 || depth == 15 || depth == 16 || depth == 24 || depth == 32;
  const bool has_no_colors =
      std::all_of(bytes.begin() + 3, bytes.begin() + 8, [](std::uint8_t b) { return b == 0; });
  return bytes[1] <= 1 && is_kind && is_depth && has_palette != has_no_colors &&
         codecs::le16(bytes.data() + 12) != 0 && codecs::le16(bytes.data() + 14) != 0 && bytes[17] < 64;
}

/// Throws Error for formats that are recognized but not supported.
void refuse_known(const Source& source) {
  const auto refuse = [&](std::string_view name, std::string_view why) {
    codecs::refuse_unsupported(source, name, " files are not supported (", why,
                               "); convert it to PNG or JPEG");
  };
  if (is_targa(source.bytes)) refuse("TGA", kOld);  // before cursors, because some share their first bytes
  for (const RefusedFormat& format : kRefused) {
    if (matches(format.signature, source.bytes)) refuse(format.name, format.why);
  }
  const std::string_view first(reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size());
  if (const internal::ForeignFile* const foreign = internal::foreign_by_content(first))
    codecs::refuse_unsupported(source, "no image, but ", internal::describe(*foreign));
}

/// A drawing after a declaration of XML, a comment or blanks.
bool is_svg(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 512));
  return text.find("<svg") != text.npos;
}

constexpr std::size_t kSignatureBytes = 512;  // distinguish the format, or text from other data

bool is_text(std::span<const std::uint8_t> bytes) {
  const auto start = bytes.first(std::min(bytes.size(), kSignatureBytes));
  return std::all_of(start.begin(), start.end(),
                     [](std::uint8_t b) { return b >= 32 || b == '\t' || b == '\n' || b == '\r'; });
}

/// The upright image of one with the orientation of the EXIF value.
Image rotated(const Image& image, int orientation) {
  const ImageSize size = internal::upright_size(image.size(), orientation);
  Image out(size.height, size.width);
  internal::rotate_upright(image.data(), image.size(), orientation, out.data());
  return out;
}

/// The format by the first bytes. Throws Error if it is unknown or not supported.
const Format& recognized(const Source& source) {
  if (source.bytes.empty()) codecs::refuse(source, "the file is empty");
  const auto format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const Format& candidate) { return matches(candidate, source.bytes); });
  if (format == std::end(kFormats)) {
    refuse_known(source);
    if (is_svg(source.bytes))
      codecs::refuse_unsupported(source, "SVG files are not supported (", kDrawing,
                                 "); convert it to PNG or JPEG");
    codecs::refuse(source, is_text(source.bytes) ? "not an image: the file contains text"
                                                 : "not an image, or of an unknown format");
  }
  return *format;
}

Source source_of(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& name) {
  check_choice("decode_bytes", "orientation", options.orientation, Orientation::apply);
  check_choice("decode_bytes", "alpha", options.alpha, Alpha::on_white);
  return {{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
          name,
          options.max_pixels,
          options.alpha};
}

/// A pixel takes at most 24 bytes in the supported formats; other pages and metadata may take as much
/// again, or a gigabyte.
std::uint64_t max_file_bytes(const DecodeOptions& options) {
  constexpr std::uint64_t kPixelBytes = 64;
  constexpr std::uint64_t kOtherBytes = std::uint64_t{1} << 30;
  return std::min<std::uint64_t>(options.max_pixels, std::uint64_t{1} << 50) * kPixelBytes + kOtherBytes;
}

void read_file(const std::filesystem::path& path, const DecodeOptions& options,
               std::vector<std::byte>& bytes) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  VIT_CHECK(std::filesystem::exists(status), kReadFile, name, ": no such file", internal::missing_hint(name));
  VIT_CHECK(!std::filesystem::is_directory(status), kReadFile, name, ": is a folder, not a file");
  // A pipe may never end and /dev/zero never does.
  VIT_CHECK(std::filesystem::is_regular_file(status), kReadFile, name,
            ": is a pipe or device, expected a regular file");
  const internal::system::OpenFile file(internal::system::open_file(path.c_str()));
  VIT_CHECK(file.value() >= 0, kReadFile, name,
            ": cannot be opened: ", std::generic_category().message(errno));
  // Reads as much as there is.
  const auto read = [&](std::size_t begin, std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      const std::ptrdiff_t got = internal::system::read_at(file.value(), begin + done, out.subspan(done));
      VIT_CHECK(got >= 0, kReadFile, name, ": reading failed: ", std::generic_category().message(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  };
  // A large file of another kind is recognized by its first bytes and not read.
  bytes.resize(kSignatureBytes);
  bytes.resize(read(0, bytes));
  recognized(source_of(bytes, options, name));
  const auto size = std::filesystem::file_size(path, error);
  VIT_CHECK(error || size <= max_file_bytes(options), codecs::kDecode.with(ErrorKind::unsupported), name,
            ": a file of ", size, " bytes is too large for an image; the limit is ", max_file_bytes(options));
  const std::size_t expected = error ? 0 : static_cast<std::size_t>(size) + 1;
  bytes.reserve(expected);
  constexpr std::size_t kChunk = 1u << 16;
  while (true) {
    const std::size_t used = bytes.size();
    bytes.resize(std::max(used + kChunk, expected));
    const std::size_t got = read(used, std::span(bytes).subspan(used));
    const bool ended = got < bytes.size() - used;
    bytes.resize(used + got);
    if (ended) break;
  }
}

}  // namespace

void internal::open_decoders() noexcept {
  for (const auto open : {codecs::open_avif, codecs::open_heif}) {
    try {
      open();
    } catch (const std::exception&) {  // reported for the file that needs it
      continue;
    }
  }
}

void internal::read_image_file(const std::filesystem::path& path, const DecodeOptions& options,
                               std::vector<std::byte>& bytes) {
  codecs::within_memory(source_of({}, options, path.string()), [&] { read_file(path, options, bytes); });
}

std::vector<std::byte> internal::read_image_file(const std::filesystem::path& path,
                                                 const DecodeOptions& options) {
  std::vector<std::byte> bytes;
  read_file(path, options, bytes);
  return bytes;
}

std::unique_ptr<internal::RowSource> internal::open_rows(std::span<const std::byte> bytes,
                                                         const DecodeOptions& options,
                                                         const std::string& name) {
  const Source source = source_of(bytes, options, name);
  const Format& format = recognized(source);
  if (format.open == nullptr) return nullptr;
  return codecs::within_memory(source, [&] { return format.open(source); });
}

std::optional<internal::Bands> internal::decode_bands(std::span<const std::byte> bytes,
                                                      const DecodeOptions& options, const std::string& name,
                                                      std::size_t num_bands) {
  const Source source = source_of(bytes, options, name);
  const Format& format = recognized(source);
  const bool is_tiff = format.decode == codecs::decode_tiff;
  if (!is_tiff && num_bands == 1) return std::nullopt;
  VIT_CHECK(is_tiff, codecs::kDecode.with(ErrorKind::mismatch), name, ": a ", format.name,
            " file has red, green and blue, but the model takes ", num_bands,
            " channels; expected a TIFF with that many bands, or preprocessed pixels in a .npy");
  return codecs::within_memory(source, [&] { return codecs::decode_tiff_bands(source, num_bands); });
}

Image decode_bytes(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& name) {
  const Source source = source_of(bytes, options, name);
  const Format& format = recognized(source);
  return codecs::within_memory(source, [&] {
    Decoded decoded = format.decode(source);
    const std::span<const std::uint8_t> alpha = decoded.alpha.flat();
    for (std::size_t i = 0; options.alpha == Alpha::on_white && i < alpha.size(); ++i)
      internal::composite_on_white(decoded.image.data() + 3 * i, alpha[i]);
    const bool rotate = decoded.always_rotate || options.orientation == Orientation::apply;
    return rotate && decoded.orientation > 1 ? rotated(decoded.image, decoded.orientation)
                                             : std::move(decoded.image);
  });
}

Image decode_file(const std::filesystem::path& path, const DecodeOptions& options) {
  std::vector<std::byte> bytes;
  internal::read_image_file(path, options, bytes);
  return decode_bytes(bytes, options, path.string());
}

}  // namespace vit
