// Whether this user wrote a file that a library reads without validating it: a digest of the
// file with a key that only this user can read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/source_file.h"

namespace vit::app {

class IndexSeal {
 public:
  /// With the key of this user, which is created if there is none: 32 bytes in vit/index.key in
  /// $XDG_STATE_HOME or ~/.local/state, readable only by the user. If the file cannot be created, or others
  /// can read it, there is no key.
  static IndexSeal of_user();

  /// HMAC-SHA256 of the file in hexadecimal digits; "" without a key.
  std::string digest(const internal::SourceFile& file) const;
  /// Whether `digest` is digest() of these bytes with this user's key; false without a key.
  bool is_own(const internal::SourceFile& file, std::string_view digest) const;

 private:
  std::vector<std::byte> key_;
};

}  // namespace vit::app
