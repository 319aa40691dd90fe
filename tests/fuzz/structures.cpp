// Cutting files into parts and putting them together again. The first bytes of a part say what it is.
#include "tests/fuzz/structures.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace vit::fuzz {
namespace {

using Parts = std::vector<std::string>;

std::uint64_t big(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::uint64_t little(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string to_big(std::uint64_t value, std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[bytes - 1 - i] = static_cast<char>(value >> (8 * i));
  return out;
}

std::string to_little(std::uint64_t value, std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(value >> (8 * i));
  return out;
}

/// Takes `count` bytes, or what is there, from the front.
std::string_view take(std::string_view& rest, std::uint64_t count) {
  const std::string_view front = rest.substr(0, count);
  rest.remove_prefix(front.size());
  return front;
}

std::string concatenated(const Parts& parts) {
  std::string file;
  for (const std::string& part : parts) file += part;
  return file;
}

unsigned char byte_at(std::string_view bytes, std::size_t index) {
  return index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0;
}

// -------------------------------------------------------------------------------------------------- JPEG

/// Whether a segment of this marker has a length.
bool has_length(unsigned char marker) {
  return marker != 0 && marker != 1 && marker != 0xFF && (marker < 0xD0 || marker > 0xD9);
}

Parts split_jpeg(std::string_view file) {
  Parts parts;
  while (file.size() >= 2 && byte_at(file, 0) == 0xFF) {
    const unsigned char marker = byte_at(file, 1);
    std::string part(take(file, 2));
    if (has_length(marker)) {
      const std::uint64_t length = std::max<std::uint64_t>(big(take(file, 2)), 2);
      part += take(file, length - 2);
    }
    parts.push_back(part);
    if (marker != 0xDA) continue;
    std::size_t end = 0;
    while (end + 1 < file.size() && (byte_at(file, end) != 0xFF ||
                                     !(has_length(byte_at(file, end + 1)) || byte_at(file, end + 1) == 0xD9)))
      ++end;
    if (end + 1 >= file.size()) end = file.size();
    parts.emplace_back(take(file, end));
  }
  if (!file.empty()) parts.emplace_back(file);
  return parts;
}

std::string join_jpeg(const Parts& parts) {
  std::string file;
  for (const std::string& part : parts) {
    if (part.size() < 2 || byte_at(part, 0) != 0xFF || !has_length(byte_at(part, 1))) {
      file += part;
      continue;
    }
    const std::string_view data = std::string_view(part).substr(2).substr(0, 0xFFFD);
    file += part.substr(0, 2) + to_big(data.size() + 2, 2);
    file += data;
  }
  return file;
}

// --------------------------------------------------------------------------------------------------- PNG

constexpr std::string_view kUnpacked = "idat";  // replaces IDAT in a part that is not compressed
constexpr std::size_t kMaxUnpacked = 1u << 20;

std::string inflated(std::string_view packed) {
  std::string out(kMaxUnpacked, '\0');
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

std::string deflated(std::string_view data) {
  uLongf size = ::compressBound(data.size());
  std::string out(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
              data.size(), 1);
  out.resize(size);
  return out;
}

Parts split_png(std::string_view file) {
  Parts parts{std::string(take(file, 8))};
  std::string packed;
  const auto flush = [&] {
    if (!packed.empty()) parts.push_back(std::string(kUnpacked) + inflated(packed));
    packed.clear();
  };
  while (file.size() >= 8) {
    const std::uint64_t length = big(take(file, 4));
    const std::string type(take(file, 4));
    const std::string_view data = take(file, length);
    take(file, 4);
    if (type == "IDAT") {
      packed += data;
      continue;
    }
    flush();
    parts.push_back(type + std::string(data));
  }
  flush();
  return parts;
}

std::string join_png(const Parts& parts) {
  std::string file;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0) {
      file += parts[i];
      continue;
    }
    const bool is_unpacked = parts[i].starts_with(kUnpacked);
    const std::string chunk =
        is_unpacked ? "IDAT" + deflated(std::string_view(parts[i]).substr(4))
                    : parts[i] + std::string(parts[i].size() < 4 ? 4 - parts[i].size() : 0, 'x');
    const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(chunk.data()), chunk.size());
    file += to_big(chunk.size() - 4, 4) + chunk + to_big(crc, 4);
  }
  return file;
}

// -------------------------------------------------------------------------------------------------- TIFF

constexpr std::size_t kTiffEntry = 12;

/// The entries of the first directory after the header and all the rest, into which they point.
Parts split_tiff(std::string_view file) {
  const bool is_big = file.starts_with("MM");
  const auto number = [&](std::string_view bytes) { return is_big ? big(bytes) : little(bytes); };
  if (file.size() < 8) return {std::string(file)};
  const std::uint64_t begin = number(file.substr(4, 4));
  if (begin < 8 || begin + 2 > file.size()) return {std::string(file)};
  std::string_view entries = file.substr(begin);
  const std::uint64_t count = std::min<std::uint64_t>(number(take(entries, 2)), entries.size() / kTiffEntry);
  const bool is_last = entries.size() <= count * kTiffEntry + 4;
  Parts parts{std::string(file.substr(0, 8)), std::string(file.substr(8, is_last ? begin - 8 : file.npos))};
  for (std::uint64_t i = 0; i < count; ++i) parts.emplace_back(take(entries, kTiffEntry));
  return parts;
}

/// The directory comes last, so that what the entries point to stays where it is.
std::string join_tiff(const Parts& parts) {
  if (parts.size() < 2 || parts[0].size() < 8) return concatenated(parts);
  const bool is_big = parts[0].starts_with("MM");
  std::string file = parts[0] + parts[1];
  file.replace(4, 4, is_big ? to_big(file.size(), 4) : to_little(file.size(), 4));
  file += is_big ? to_big(parts.size() - 2, 2) : to_little(parts.size() - 2, 2);
  for (std::size_t i = 2; i < parts.size(); ++i) file += parts[i];
  return file + std::string(4, '\0');
}

// -------------------------------------------------------------------------------------------------- WebP

Parts split_webp(std::string_view file) {
  Parts parts{std::string(take(file, 12))};
  while (!file.empty()) {
    std::string part(take(file, 4));
    const std::uint64_t length = little(take(file, 4));
    part += take(file, length);
    if (length % 2 == 1) take(file, 1);
    parts.push_back(part);
  }
  return parts;
}

std::string join_webp(const Parts& parts) {
  std::string chunks;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string type = parts[i].substr(0, 4);
    type.resize(4, ' ');
    const std::string data = parts[i].size() > 4 ? parts[i].substr(4) : std::string();
    chunks += type + to_little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
  }
  std::string file = parts.empty() ? std::string() : parts[0];
  if (file.size() == 12) file.replace(4, 4, to_little(4 + chunks.size(), 4));
  return file + chunks;
}

// --------------------------------------------------------------------------------------------- BMP, PNM

Parts split_bmp(std::string_view file) {
  Parts parts{std::string(take(file, 14))};
  parts.emplace_back(take(file, std::min<std::uint64_t>(little(file.substr(0, 4)), 128)));
  parts.emplace_back(file);
  return parts;
}

constexpr std::size_t kIconLine = 16;  // of the list; bytes 8 to 15 are the length and the place of the image

Parts split_ico(std::string_view file) {
  std::string_view lines = file;
  Parts parts{std::string(take(lines, 6))};
  const std::uint64_t count =
      little(std::string_view(parts[0]).substr(std::min<std::size_t>(4, parts[0].size())));
  for (std::uint64_t i = 0; i < count && lines.size() >= kIconLine; ++i) {
    const std::string_view line = take(lines, kIconLine);
    const std::uint64_t length = little(line.substr(8, 4)), place = little(line.substr(12, 4));
    parts.push_back(std::string(line) +
                    std::string(file.substr(std::min<std::uint64_t>(place, file.size()), length)));
  }
  return parts;
}

std::string join_ico(const Parts& parts) {
  std::string lines, images;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::string_view image = part.substr(std::min(kIconLine, part.size()));
    const std::uint64_t place = 6 + kIconLine * (parts.size() - 1) + images.size();
    lines += std::string(part.substr(0, 8)) + to_little(image.size(), 4) + to_little(place, 4);
    images += image;
  }
  return (parts.empty() ? "" : parts[0].substr(0, 4)) + to_little(parts.size() - 1, 2) + lines + images;
}

Parts split_pnm(std::string_view file) {
  constexpr std::size_t kMaxWords = 32;
  Parts parts;
  while (!file.empty() && parts.size() < 2 * kMaxWords) {
    const bool is_blank = std::string_view(" \t\r\n").find(file.front()) != std::string_view::npos;
    const std::size_t end = is_blank ? file.find_first_not_of(" \t\r\n") : file.find_first_of(" \t\r\n");
    parts.emplace_back(take(file, end));
  }
  if (!file.empty()) parts.emplace_back(file);
  return parts;
}

// --------------------------------------------------------------------------------------------------- GIF

std::size_t color_table_bytes(unsigned char flags) {
  return (flags & 0x80) != 0 ? std::size_t{6} << (flags & 7) : 0;
}

std::string take_sub_blocks(std::string_view& file) {
  std::string blocks;
  while (!file.empty()) {
    const std::size_t length = byte_at(file, 0);
    blocks += take(file, 1 + length);
    if (length == 0) break;
  }
  return blocks;
}

Parts split_gif(std::string_view file) {
  Parts parts{std::string(take(file, 13))};
  parts[0] += take(file, color_table_bytes(byte_at(parts[0], 10)));
  while (!file.empty()) {
    const char kind = file.front();
    std::string part;
    if (kind == '!') {
      part = take(file, 2);
      part += take_sub_blocks(file);
    } else if (kind == ',') {
      part = take(file, 10);
      part += take(file, color_table_bytes(byte_at(part, 9)) + 1);
      part += take_sub_blocks(file);
    } else {
      part = take(file, 1);
    }
    parts.push_back(part);
  }
  return parts;
}

// ----------------------------------------------------------------------------------- boxes, codestreams

// A part of boxes is a letter for the depth, 'A' the outermost, the type and what the box holds before other
// boxes. A segment of a codestream in a box has the letter '0'.
constexpr char kOutermost = 'A';
constexpr char kSegment = '0';

void split_codestream_into(std::string_view code, const std::string& prefix, Parts& parts) {
  while (code.size() >= 2 && byte_at(code, 0) == 0xFF) {
    const unsigned char marker = byte_at(code, 1);
    std::string part(take(code, 2));
    if (marker != 0x4F && marker != 0x93 && marker != 0xD9) {
      const std::uint64_t length = std::max<std::uint64_t>(big(take(code, 2)), 2);
      part += take(code, length - 2);
    }
    if (marker == 0x93) {  // data up to the next tile part or the end
      std::size_t end = 0;
      while (end + 1 < code.size() && !(byte_at(code, end) == 0xFF &&
                                        (byte_at(code, end + 1) == 0x90 || byte_at(code, end + 1) == 0xD9)))
        ++end;
      part += take(code, end + 1 < code.size() ? end : code.size());
    }
    parts.push_back(prefix + part);
  }
  if (!code.empty()) parts.push_back(prefix + std::string(code));
}

/// The codestream of parts that begin with `skip` bytes of prefix.
std::string codestream_of(const Parts& parts, std::size_t skip) {
  std::string code;
  std::size_t tile_part = std::string::npos;  // where the last one starts
  for (const std::string& whole : parts) {
    const std::string part = whole.substr(std::min(skip, whole.size()));
    const unsigned char marker = byte_at(part, 1);
    if (part.size() < 2 || byte_at(part, 0) != 0xFF) {
      code += part;
      continue;
    }
    if (marker == 0x90) tile_part = code.size();
    if (marker == 0x4F || marker == 0x93 || marker == 0xD9) {
      code += part;
    } else {
      const std::string data = part.substr(2, 0xFFFD);
      code += part.substr(0, 2) + to_big(data.size() + 2, 2) + data;
    }
    const bool is_whole = tile_part != std::string::npos && tile_part + 12 <= code.size();
    if (marker == 0x93 && is_whole && code.substr(tile_part + 6, 4) != std::string(4, '\0'))
      code.replace(tile_part + 6, 4, to_big(code.size() - tile_part, 4));
  }
  return code;
}

Parts split_codestream(std::string_view file) {
  Parts parts;
  split_codestream_into(file, "", parts);
  return parts;
}

std::string join_codestream(const Parts& parts) {
  return codestream_of(parts, 0);
}

/// Bytes in front of the boxes that a box of this type holds; npos where it holds none.
std::size_t bytes_before_boxes(std::string_view type) {
  for (const std::string_view plain :
       {"jp2h", "iprp", "ipco", "dinf", "moov", "trak", "mdia", "minf", "stbl", "res "})
    if (type == plain) return 0;
  if (type == "meta" || type == "iref") return 4;
  if (type == "iinf") return 6;
  return std::string_view::npos;
}

void split_boxes_into(std::string_view boxes, char depth, Parts& parts) {
  constexpr char kDeepest = 'H';
  while (boxes.size() >= 8) {
    std::uint64_t length = big(take(boxes, 4));
    const std::string type(take(boxes, 4));
    if (length == 1) length = big(take(boxes, 8)) - 8;
    std::string_view data = take(boxes, length < 8 ? boxes.size() : length - 8);
    const std::size_t before = depth < kDeepest ? bytes_before_boxes(type) : std::string_view::npos;
    if (before != std::string_view::npos) {
      parts.push_back(depth + type + std::string(take(data, before)));
      split_boxes_into(data, static_cast<char>(depth + 1), parts);
    } else if (type == "jp2c") {
      parts.push_back(depth + type);
      split_codestream_into(data, std::string(1, kSegment), parts);
    } else {
      parts.push_back(depth + type + std::string(data));
    }
  }
}

Parts split_boxes(std::string_view file) {
  Parts parts;
  split_boxes_into(file, kOutermost, parts);
  return parts;
}

std::string join_boxes(const Parts& parts) {
  std::string file;
  for (std::size_t i = 0; i < parts.size();) {
    const std::string& head = parts[i];
    const char depth = head.empty() ? kOutermost : head[0];
    std::size_t end = i + 1;
    while (end < parts.size() && !parts[end].empty() && (parts[end][0] > depth || parts[end][0] == kSegment))
      ++end;
    const Parts inner(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      parts.begin() + static_cast<std::ptrdiff_t>(end));
    std::string type = head.size() > 1 ? head.substr(1, 4) : std::string();
    type.resize(4, ' ');
    std::string data = head.size() > 5 ? head.substr(5) : std::string();
    const bool is_code = !inner.empty() && !inner[0].empty() && inner[0][0] == kSegment;
    data += is_code ? codestream_of(inner, 1) : join_boxes(inner);
    file += to_big(data.size() + 8, 4) + type + data;
    i = end;
  }
  return file;
}

// --------------------------------------------------------------------------------------------------- tar

constexpr std::size_t kTarBlock = 512;

Parts split_tar(std::string_view file) {
  Parts parts;
  while (!file.empty()) parts.emplace_back(take(file, kTarBlock));
  return parts;
}

std::string join_tar(const Parts& parts) {
  std::string file;
  for (std::string block : parts) {
    if (block.size() >= kTarBlock && block.substr(257, 5) == "ustar") {
      block.replace(148, 8, 8, ' ');
      unsigned sum = 0;
      for (const char byte : block.substr(0, kTarBlock)) sum += static_cast<unsigned char>(byte);
      for (int digit = 0; digit < 6; ++digit, sum /= 8)
        block[static_cast<std::size_t>(148 + 5 - digit)] = static_cast<char>('0' + sum % 8);
      block[154] = '\0';
    }
    file += block;
  }
  return file;
}

// ------------------------------------------------------------------------------- protocol buffers, lines

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const unsigned char byte = byte_at(take(rest, 1), 0);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

std::string to_varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

constexpr unsigned kMessageField = 2;  // wire type of fields with a length

Parts split_message(std::string_view file) {
  Parts parts;
  while (!file.empty()) {
    const std::string_view start = file;
    const std::uint64_t tag = take_varint(file);
    switch (tag & 7) {
      case 0: take_varint(file); break;
      case 1: take(file, 8); break;
      case kMessageField: {
        const std::string prefix = to_varint(tag);
        parts.push_back(prefix + std::string(take(file, take_varint(file))));
        continue;
      }
      case 5: take(file, 4); break;
      default: file = {};
    }
    parts.emplace_back(start.substr(0, start.size() - file.size()));
  }
  return parts;
}

std::string join_message(const Parts& parts) {
  std::string file;
  for (const std::string& part : parts) {
    std::string_view data = part;
    const std::uint64_t tag = take_varint(data);
    if (part.empty() || (tag & 7) != kMessageField) {
      file += part;
    } else {
      file += to_varint(tag) + to_varint(data.size());
      file += data;
    }
  }
  return file;
}

Parts split_lines(std::string_view file) {
  Parts parts;
  while (!file.empty()) parts.emplace_back(take(file, std::min(file.find('\n'), file.size() - 1) + 1));
  return parts;
}

// ------------------------------------------------------------------------------------------------- models

Parts split_model(std::string_view file) {
  Parts parts;
  parts.emplace_back(take(file, std::min(file.find('\n'), file.size() - 1) + 1));
  const std::uint64_t header = little(take(file, 8));
  parts.emplace_back(take(file, header));
  parts.emplace_back(file);
  return parts;
}

/// Of fewer or more parts than three, the second is the header.
std::string join_model(const Parts& parts) {
  std::string file;
  for (std::size_t i = 0; i < parts.size(); ++i)
    file += (i == 1 ? to_little(parts[i].size(), 8) : std::string()) + parts[i];
  return file;
}

}  // namespace

const Structure kJpegStructure{split_jpeg, join_jpeg};
const Structure kPngStructure{split_png, join_png};
const Structure kTiffStructure{split_tiff, join_tiff};
const Structure kWebpStructure{split_webp, join_webp};
const Structure kBmpStructure{split_bmp, concatenated};
const Structure kIcoStructure{split_ico, join_ico};
const Structure kPnmStructure{split_pnm, concatenated};
const Structure kGifStructure{split_gif, concatenated};
const Structure kBoxStructure{split_boxes, join_boxes};
const Structure kCodestreamStructure{split_codestream, join_codestream};
const Structure kTarStructure{split_tar, join_tar};
const Structure kMessageStructure{split_message, join_message};
const Structure kModelStructure{split_model, join_model};
const Structure kLineStructure{split_lines, concatenated};

}  // namespace vit::fuzz
