#include "apps/vit/inputs/npy.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/dtype.h"
#include "vit/config/patch.h"

namespace vit::app {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the array files are written in little-endian order");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxHeaderBytes = 1 << 16;  // a header of pixels needs about 100

/// Reads the Python literal of a header, character by character.
class LiteralParser {
 public:
  explicit LiteralParser(std::string_view text) : text_(text) {}

  bool at_end() { return skip_spaces().empty(); }
  bool accept(char c) {
    if (skip_spaces().empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    VIT_CHECK(accept(c), "npy", "malformed header: expected '", c, "' before '",
              printable(text_.substr(0, 20)), "'");
  }
  std::string string() {
    skip_spaces();
    VIT_CHECK(!text_.empty() && (text_.front() == '\'' || text_.front() == '"'), "npy",
              "malformed header: expected a quoted string before '", printable(text_.substr(0, 20)), "'");
    const std::size_t end = text_.find(text_.front(), 1);
    VIT_CHECK(end != std::string_view::npos, "npy", "malformed header: a string has no end");
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    fail("npy", "malformed header: expected True or False before '", printable(text_.substr(0, 20)), "'");
  }
  std::vector<std::size_t> sizes() {
    std::vector<std::size_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(size());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

 private:
  std::string_view skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
    return text_;
  }
  std::size_t size() {
    skip_spaces();
    std::size_t value = 0, digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      value =
          checked_add(checked_mul(value, 10, "npy"), static_cast<std::size_t>(text_[digits] - '0'), "npy");
    }
    VIT_CHECK(digits > 0, "npy", "malformed header: expected a size before '", printable(text_.substr(0, 20)),
              "'");
    text_.remove_prefix(digits);
    return value;
  }

  std::string_view text_;
};

std::string bracketed(std::span<const std::size_t> shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

/// A .npy is used as model input without preprocessing: raw pixels would give wrong results.
void check_dtype(const std::string& descr) {
  constexpr std::string_view kWhat =
      "a .npy must contain preprocessed pixels, float32 ('<f4'): resized, scaled and normalized for the "
      "model";
  const std::string found = text("; found '", printable(descr), "'");
  if (descr == "<f4") return;
  if (descr == ">f4" || descr == "<f8" || descr == ">f8" || descr == "<f2" || descr == ">f2")
    fail("npy", kWhat, found, "; convert preprocessed pixels with .astype('<f4')");
  fail(
      "npy", kWhat, found,
      ", which looks like raw pixels; save them as an image (.png, .tif) and pass that, or normalize them as "
      "described by vit info (vit preprocess does it for an image)");
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string read_exactly(std::istream& file, std::size_t bytes) {
  std::string out(bytes, '\0');
  file.read(out.data(), static_cast<std::streamsize>(bytes));
  VIT_CHECK(static_cast<std::size_t>(file.gcount()) == bytes, "npy",
            "the file ends inside its header; truncated?");
  return out;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view dictionary) {
  NpyHeader header;
  bool seen_descr = false, seen_order = false, seen_shape = false;
  LiteralParser parser(dictionary);
  parser.expect('{');
  while (!parser.accept('}')) {
    const std::string key = parser.string();
    parser.expect(':');
    bool* seen = nullptr;
    if (key == "descr") {
      header.descr = parser.string();
      seen = &seen_descr;
    } else if (key == "fortran_order") {
      header.fortran_order = parser.boolean();
      seen = &seen_order;
    } else if (key == "shape") {
      header.shape = parser.sizes();
      seen = &seen_shape;
    }
    VIT_CHECK(seen != nullptr && !*seen, "npy", "malformed header: unexpected key '", printable(key), "'");
    *seen = true;
    if (!parser.accept(',')) {
      parser.expect('}');
      break;
    }
  }
  VIT_CHECK(parser.at_end(), "npy", "malformed header: text after the dictionary");
  VIT_CHECK(seen_descr && seen_order && seen_shape, "npy",
            "malformed header: descr, fortran_order or shape is missing");
  return header;
}

namespace {

/// The start of a .npy file, whose numbers follow.
struct NpyStart {
  NpyHeader header;
  std::size_t data_offset = 0;
  std::uintmax_t file_bytes = 0;
};

NpyStart read_start(std::istream& file, std::uintmax_t file_bytes) {
  NpyStart out{.header = {}, .file_bytes = file_bytes};
  VIT_CHECK(out.file_bytes > 0, "npy", "the file is empty");
  std::string start(8, '\0');
  file.read(start.data(), 8);
  VIT_CHECK(file.gcount() == 8 && start.starts_with(kMagic), "npy",
            "not a .npy file: the magic bytes are missing");
  const int version = static_cast<unsigned char>(start[6]);
  VIT_CHECK(version >= 1 && version <= 3 && start[7] == 0, "npy", "unknown format version ", version, ".",
            static_cast<int>(static_cast<unsigned char>(start[7])));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t header_bytes = little_endian(read_exactly(file, length_bytes));
  VIT_CHECK(header_bytes <= kMaxHeaderBytes, "npy", "a header of ", header_bytes,
            " bytes is too long for pixels");
  out.header = parse_npy_header(read_exactly(file, header_bytes));
  out.data_offset = 8 + length_bytes + header_bytes;
  return out;
}

/// An open file and its length.
struct NpyFile {
  std::ifstream file;
  std::uintmax_t bytes = 0;
};

NpyFile open_npy(const std::filesystem::path& path) {
  std::error_code ignored;
  VIT_CHECK(std::filesystem::exists(path, ignored), "npy", "no such file");
  VIT_CHECK(std::filesystem::is_regular_file(path, ignored), "npy",
            "is a pipe or device, expected a regular file");
  std::ifstream file(path, std::ios::binary);
  VIT_CHECK(file.is_open(), "npy", "cannot open the file: ", std::strerror(errno));
  std::error_code no_size;
  const std::uintmax_t bytes = std::filesystem::file_size(path, no_size);
  VIT_CHECK(!no_size, "npy", "cannot determine the length of the file: ", no_size.message());
  return {std::move(file), bytes};
}

/// The number at these bytes.
template <typename Number>
Number number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

Tensor<float> read_floats(std::istream& file, std::uintmax_t file_bytes, std::optional<double> unit = {}) {
  const NpyStart start = read_start(file, file_bytes);
  const NpyHeader& header = start.header;
  const bool is_half = header.descr == "<f2", is_double = header.descr == "<f8";
  const bool is_unsigned = unit && header.descr == "<u2";
  if (!is_half && !is_double && !is_unsigned) check_dtype(header.descr);
  VIT_CHECK(!header.fortran_order, "npy", "the array is in Fortran order; save numpy.ascontiguousarray(x)");
  VIT_CHECK(!header.shape.empty() && header.shape.size() <= Shape::kMaxRank, "npy",
            "expected an array of 1 to ", Shape::kMaxRank, " dimensions, found ", bracketed(header.shape));
  std::size_t count = 1;
  for (const std::size_t size : header.shape) count = checked_mul(count, size, "npy");
  const std::size_t width = is_half || is_unsigned ? 2 : is_double ? 8 : 4;
  const std::size_t bytes = checked_mul(count, width, "npy");
  VIT_CHECK(count > 0 && start.file_bytes == checked_add(start.data_offset, bytes, "npy"), "npy", "shape ",
            bracketed(header.shape), " needs ", bytes, " bytes of data, the file has ",
            start.file_bytes - std::min<std::uintmax_t>(start.file_bytes, start.data_offset));
  std::vector<char> stored(bytes);
  file.read(stored.data(), static_cast<std::streamsize>(bytes));
  VIT_CHECK(file.good(), "npy", "cannot read the numbers; did the file change?");
  Tensor<float> out{Shape(std::span<const std::size_t>(header.shape))};
  for (std::size_t i = 0; i < count; ++i) {
    const char* const from = stored.data() + i * width;
    out.data()[i] = is_half       ? internal::f16_to_float(number_at<std::uint16_t>(from))
                    : is_unsigned ? static_cast<float>(number_at<std::uint16_t>(from) / *unit)
                    : is_double   ? static_cast<float>(number_at<double>(from))
                                  : number_at<float>(from);
  }
  return out;
}

}  // namespace

Tensor<float> load_npy_floats(const std::filesystem::path& path, std::optional<double> unit) {
  NpyFile npy = open_npy(path);
  return read_floats(npy.file, npy.bytes, unit);
}

Tensor<float> npy_floats(std::string_view file) {
  std::istringstream stream{std::string(file)};
  return read_floats(stream, file.size());
}

PixelFile::PixelFile(const std::filesystem::path& path) : path_(path) {
  NpyFile npy = open_npy(path);
  const NpyStart start = read_start(npy.file, npy.bytes);
  const NpyHeader& header = start.header;
  const std::uintmax_t file_bytes = start.file_bytes;
  data_offset_ = start.data_offset;

  check_dtype(header.descr);
  VIT_CHECK(!header.fortran_order, "npy", "the array is in Fortran order; save numpy.ascontiguousarray(x)");
  std::vector<std::size_t> shape = header.shape;
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  if (shape.size() == 5) {  // the planes of all frames of a clip
    shape[1] = checked_mul(shape[1], shape[2], "npy");
    shape.erase(shape.begin() + 2);
  }
  VIT_CHECK(
      shape.size() == 4, "npy",
      "preprocessed pixels are (B, channels, H, W), (channels, H, W), or (B, frames, channels, H, W) of "
      "clips, found ",
      bracketed(header.shape));
  num_images_ = shape[0];
  num_channels_ = shape[1];
  height_ = shape[2];
  width_ = shape[3];
  VIT_CHECK(num_images_ > 0 && num_channels_ > 0 && height_ > 0 && width_ > 0, "npy", "the array ",
            bracketed(header.shape), " contains no image");
  VIT_CHECK(height_ <= kMaxInputEdge && width_ <= kMaxInputEdge, "npy", "edges of ", bracketed(header.shape),
            " exceed ", kMaxInputEdge);
  VIT_CHECK(num_channels_ <= kMaxChannels, "npy", num_channels_, " channels of ", bracketed(header.shape),
            " exceed ", kMaxChannels, "; the planes come before height and width");
  const std::size_t data_bytes =
      checked_mul(checked_mul(num_images_, num_channels_ * height_ * width_, "npy"), sizeof(float), "npy");
  VIT_CHECK(file_bytes == checked_add(data_offset_, data_bytes, "npy"), "npy", "shape ",
            bracketed(header.shape), " needs ", data_bytes, " bytes of data, the file has ",
            file_bytes - std::min<std::uintmax_t>(file_bytes, data_offset_),
            file_bytes < data_offset_ + data_bytes ? "; truncated?" : "");
}

Tensor<float> PixelFile::load(std::size_t index) const {
  VIT_CHECK(index < num_images_, "npy", "image ", index, " of ", num_images_);
  Tensor<float> pixels(Shape{num_channels_, height_, width_});
  const std::size_t bytes = pixels.num_elements() * sizeof(float);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data_offset_ + index * bytes));
  file.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(bytes));
  VIT_CHECK(file.good(), "npy", "cannot read image ", index, " of ", num_images_, "; did the file change?");
  return pixels;
}

std::string npy_header(std::string_view descr, std::span<const std::size_t> shape) {
  std::string dictionary =
      text("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", bracketed(shape), ", }");
  constexpr std::size_t kPreamble = 10;  // magic, version, two bytes of length
  const std::size_t total = round_up(kPreamble + dictionary.size() + 1, 64);
  dictionary.resize(total - kPreamble - 1, ' ');
  dictionary += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(dictionary.size() & 0xFF);
  out += static_cast<char>(dictionary.size() >> 8);
  return out + dictionary;
}

std::string npy_strings(std::span<const std::string> values) {
  std::vector<std::u32string> decoded;
  std::size_t width = 1;
  for (const std::string& value : values) {
    decoded.push_back(decode_utf8(value));
    width = std::max(width, decoded.back().size());
  }
  const std::size_t count = values.size();
  std::string out = npy_header("<U" + std::to_string(width), std::span(&count, 1));
  for (std::u32string& value : decoded) {
    value.resize(width, U'\0');
    out.append(reinterpret_cast<const char*>(value.data()), width * sizeof(char32_t));
  }
  return out;
}

}  // namespace vit::app
