// The SHA-256 of bytes, by OpenSSL.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vit::app {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace vit::app
