// What files of a format are made of, for mutations that keep the rest of a file as its readers want it:
// lengths, counts and checksums are put right after every change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// A format that is cut into parts, which can be changed, removed, repeated and moved one by one.
struct Structure {
  /// The parts of a file in their order; what is not understood becomes one part. Never throws but for
  /// memory.
  std::vector<std::string> (*split)(std::string_view file) = nullptr;
  /// The file that these parts make.
  std::string (*join)(const std::vector<std::string>& parts) = nullptr;

  explicit operator bool() const { return split != nullptr; }
};

/// Segments, and the coded data after each start of a scan.
extern const Structure kJpegStructure;
/// Chunks; the compressed pixels as one part that is not compressed.
extern const Structure kPngStructure;
/// Header, what is no directory, and the entries of the first directory.
extern const Structure kTiffStructure;
/// Chunks.
extern const Structure kWebpStructure;
/// Headers, and the rest.
extern const Structure kBmpStructure;
/// Header, and the lines of the list, each followed by its image.
extern const Structure kIcoStructure;
/// Words of the header, and the rest.
extern const Structure kPnmStructure;
/// Header and color table, extensions, images.
extern const Structure kGifStructure;
/// Boxes, with those inside of others; segments of a codestream. For JPEG 2000, AVIF and HEIF.
extern const Structure kBoxStructure;
/// Segments of a JPEG 2000 codestream, and the data of its tiles.
extern const Structure kCodestreamStructure;
/// Blocks of 512 bytes.
extern const Structure kTarStructure;
/// Fields of a protocol buffer message, one level deep.
extern const Structure kMessageStructure;
/// A configuration of one line, and the header and the data of a safetensors file.
extern const Structure kModelStructure;
/// Lines.
extern const Structure kLineStructure;

}  // namespace vit::fuzz
