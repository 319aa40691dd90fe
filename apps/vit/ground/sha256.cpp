#include "apps/vit/ground/sha256.h"

// The functions of the one algorithm: those of OpenSSL's providers (EVP_...) allocate when they are first
// used, and OpenSSL 3.0 crashes if there is no memory then.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {
namespace {

void check(int result) {
  VIT_CHECK(result == 1, "sha256", "OpenSSL cannot compute it");
}

std::string digits_of(std::span<const unsigned char> digest) {
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

template <typename Take>
void read_blocks(const internal::SourceFile& file, const Take& take) {
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::size_t begin = 0; begin < file.size(); begin += block.size()) {
    const auto part = std::span(block).first(std::min(block.size(), file.size() - begin));
    file.read(begin, part);
    take(part);
  }
}

class Digest {
 public:
  Digest() { check(::SHA256_Init(&context_)); }
  void add(std::span<const std::byte> bytes) {
    check(::SHA256_Update(&context_, bytes.data(), bytes.size()));
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> end() {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
    check(::SHA256_Final(digest.data(), &context_));
    return digest;
  }

 private:
  ::SHA256_CTX context_;
};

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digits_of(digest.end());
}

std::string sha256(const internal::SourceFile& file) {
  Digest digest;
  read_blocks(file, [&](std::span<const std::byte> block) { digest.add(block); });
  return digits_of(digest.end());
}

// RFC 2104: H(key ^ outer, H(key ^ inner, bytes)), with keys longer than a block replaced by their digest.
std::string hmac_sha256(std::span<const std::byte> key, const internal::SourceFile& file) {
  std::array<std::byte, SHA256_CBLOCK> inner{};
  if (key.size() > inner.size()) {
    Digest digest;
    digest.add(key);
    const auto digested = digest.end();
    std::ranges::copy(std::as_bytes(std::span(digested)), inner.begin());
  } else {
    std::ranges::copy(key, inner.begin());
  }
  std::array<std::byte, SHA256_CBLOCK> outer = inner;
  for (std::byte& byte : inner) byte ^= std::byte{0x36};
  for (std::byte& byte : outer) byte ^= std::byte{0x5c};
  Digest digest;
  digest.add(inner);
  read_blocks(file, [&](std::span<const std::byte> block) { digest.add(block); });
  const auto digested = digest.end();
  Digest whole;
  whole.add(outer);
  whole.add(std::as_bytes(std::span(digested)));
  return digits_of(whole.end());
}

}  // namespace vit::app
