#include "apps/vit/outputs/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { ::EVP_MD_CTX_free(context); }
};

void check(int result) {
  VIT_CHECK(result == 1, "sha256", "OpenSSL cannot compute it");
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
    std::string out;
    for (const unsigned char byte : std::span(digest, length)) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
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
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::size_t begin = 0; begin < file.size(); begin += block.size()) {
    const auto part = std::span(block).first(std::min(block.size(), file.size() - begin));
    file.read(begin, part);
    digest.add(part);
  }
  return digest.digits();
}

}  // namespace vit::app
