// The records of a zip archive that stores without compression, as PyTorch writes it. What a record means is
// for pickle.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "vit/io/source_file.h"

namespace vit::internal {

/// The bytes of a record, where they lie in the file.
struct ZipRecord {
  StoredBytes bytes;
  bool compressed = false;  // whoever needs the record must refuse it
};

/// Record name -> record.
using ZipRecords = std::map<std::string, ZipRecord, std::less<>>;

/// Whether the file begins as a zip archive does.
bool looks_like_zip(const SourceFile& file);

/// Reads the central directory, zip64 included, and checks it against the local headers. Throws Error
/// (format) if a record lies outside the file, overlaps another, disagrees with its local header, or has the
/// name of another, and Error (unsupported) if one is encrypted. Checksums are not compared: PyTorch can be
/// told to leave them out.
ZipRecords open_zip(const SourceFile& file, const Where& where);

}  // namespace vit::internal
