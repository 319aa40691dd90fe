#include "apps/vit/ground/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { ::EVP_MD_CTX_free(context); }
  void operator()(EVP_PKEY* key) const noexcept { ::EVP_PKEY_free(key); }
};

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
  Digest() : context_(::EVP_MD_CTX_new()) {
    check(context_ == nullptr ? 0 : ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr));
  }
  void add(std::span<const std::byte> bytes) {
    check(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  std::string digits() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    check(::EVP_DigestFinal_ex(context_.get(), digest, &length));
    return digits_of(std::span(digest, length));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.digits();
}

std::string sha256(const internal::SourceFile& file) {
  Digest digest;
  read_blocks(file, [&](std::span<const std::byte> block) { digest.add(block); });
  return digest.digits();
}

std::string hmac_sha256(std::span<const std::byte> key, const internal::SourceFile& file) {
  const std::unique_ptr<EVP_PKEY, FreeContext> secret(::EVP_PKEY_new_raw_private_key(
      EVP_PKEY_HMAC, nullptr, reinterpret_cast<const unsigned char*>(key.data()), key.size()));
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(::EVP_MD_CTX_new());
  check(secret == nullptr || context == nullptr
            ? 0
            : ::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, secret.get()));
  read_blocks(file, [&](std::span<const std::byte> block) {
    check(::EVP_DigestSignUpdate(context.get(), block.data(), block.size()));
  });
  unsigned char digest[EVP_MAX_MD_SIZE];
  std::size_t length = sizeof digest;
  check(::EVP_DigestSignFinal(context.get(), digest, &length));
  return digits_of(std::span(digest, length));
}

}  // namespace vit::app
