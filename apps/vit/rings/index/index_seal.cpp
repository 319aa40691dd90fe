#include "apps/vit/rings/index/index_folder.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

#include "apps/vit/ground/sha256.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyBytes = 32;

/// By the XDG base directory specification, which ignores relative paths; "" if there is none.
fs::path state_folder() {
  for (const auto& [variable, below] : {std::pair("XDG_STATE_HOME", "vit"), {"HOME", ".local/state/vit"}}) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && fs::path(value).is_absolute()) return fs::path(value) / below;
  }
  return {};
}

/// The key from a file that only this user can read; empty if there is none.
std::vector<std::byte> read_key(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return {};
  std::vector<std::byte> key(kKeyBytes);
  struct stat status;
  const bool is_private = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                          status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
                          status.st_size == static_cast<off_t>(kKeyBytes);
  if (!is_private || ::read(file, key.data(), kKeyBytes) != static_cast<ssize_t>(kKeyBytes)) key.clear();
  ::close(file);
  return key;
}

/// Creates a key unless another process is faster: the file gets its name when it is complete.
void make_key(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::vector<unsigned char> key(kKeyBytes);
  if (error || ::RAND_bytes(key.data(), static_cast<int>(kKeyBytes)) != 1) return;
  const std::string temporary = path.string() + "." + std::to_string(::getpid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  const bool is_whole = ::write(file, key.data(), kKeyBytes) == static_cast<ssize_t>(kKeyBytes);
  ::close(file);
  const bool is_named = is_whole && ::link(temporary.c_str(), path.c_str()) == 0;
  static_cast<void>(is_named);  // if not, the key of another process is used
  ::unlink(temporary.c_str());
}

}  // namespace

IndexSeal IndexSeal::of_user() {
  IndexSeal seal;
  const fs::path folder = state_folder();
  if (folder.empty()) return seal;
  const fs::path path = folder / "index.key";
  seal.key_ = read_key(path);
  if (!seal.key_.empty()) return seal;
  make_key(path);
  seal.key_ = read_key(path);
  return seal;
}

std::string IndexSeal::digest(const internal::SourceFile& file) const {
  return key_.empty() ? "" : hmac_sha256(key_, file);
}

bool IndexSeal::is_own(const internal::SourceFile& file, std::string_view digest) const {
  const std::string own = this->digest(file);
  return !own.empty() && own.size() == digest.size() &&
         ::CRYPTO_memcmp(own.data(), digest.data(), own.size()) == 0;
}

}  // namespace vit::app
