#include "apps/vit/common/sha256.h"

#include <openssl/evp.h>

#include "vit/base/check.h"

namespace vit::app {

std::string sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  VIT_CHECK(::EVP_Digest(bytes.data(), bytes.size(), digest, &length, ::EVP_sha256(), nullptr) == 1, "sha256",
            "OpenSSL cannot compute it");
  std::string out;
  for (const unsigned char byte : std::span(digest, length)) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace vit::app
