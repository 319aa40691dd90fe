// The records of an uncompressed zip archive, as written by PyTorch. The records are interpreted
// in pickle.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "vit/io/source_file.h"

namespace vit::internal {

/// The position of a record's bytes in the file.
struct ZipRecord {
  StoredBytes bytes;
  bool compressed = false;  // users of the record must refuse it
};

/// Record name -> record.
using ZipRecords = std::map<std::string, ZipRecord, std::less<>>;

/// Whether the file starts like a zip archive.
bool looks_like_zip(const SourceFile& file);

/// Reads the central directory, zip64 included, and checks it against the local headers. Throws Error
/// (format) if a record lies outside the file, overlaps another, disagrees with its local header, or has the
/// name of another, and Error (unsupported) if one is encrypted. Checksums are not compared: PyTorch can
/// omit them.
ZipRecords open_zip(const SourceFile& file, const Where& where);

}  // namespace vit::internal
