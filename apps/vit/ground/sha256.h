// SHA-256 and HMAC-SHA256 by OpenSSL.
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
/// HMAC-SHA256 of all bytes of a file, 64 lower-case hexadecimal digits. Throws Error as SourceFile::read
/// does.
std::string hmac_sha256(std::span<const std::byte> key, const internal::SourceFile& file);

}  // namespace vit::app
