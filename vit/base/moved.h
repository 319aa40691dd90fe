// Objects that were moved from: what they are asked to do is an Error, not a crash.
#pragma once

#include "vit/base/check.h"

namespace vit::internal {

/// What `parts` points to. Throws Error for an object that was moved from.
template <typename Pointer>
auto& parts_of(const Pointer& parts, const Where& where) {
  VIT_CHECK(parts != nullptr, where, "this object was moved from");
  return *parts;
}

}  // namespace vit::internal
