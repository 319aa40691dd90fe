// SHA-256 (FIPS 180-4), to compare bytes with fixtures that store digests only.
#pragma once

#include <cstddef>
#include <string>

namespace vit::test {

/// Digest of `size` bytes as 64 lower-case hexadecimal digits.
std::string sha256(const void* data, std::size_t size);

}  // namespace vit::test
