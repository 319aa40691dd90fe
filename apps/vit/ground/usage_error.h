// Wrong usage of the program: exit code 2 instead of 1.
#pragma once

#include <stdexcept>
#include <string>

#include "vit/base/check.h"

namespace vit::app {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws UsageError(text(parts...)).
template <typename... Parts>
[[noreturn]] void fail_usage(const Parts&... parts) {
  throw UsageError(text(parts...));
}

}  // namespace vit::app
