// The SHA-256 of bytes, by OpenSSL.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "vit/io/source_file.h"

namespace vit::app {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);
/// Of all bytes of a file. Throws Error as SourceFile::read does.
std::string sha256(const internal::SourceFile& file);

}  // namespace vit::app
