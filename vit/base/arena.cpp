#include "vit/base/arena.h"

namespace vit::internal {

void Arena::reserve(std::size_t bytes) {
  if (bytes <= capacity_bytes()) return;
  block_ = Tensor<std::byte>();  // free first: the peak is one block, not two
  block_ = Tensor<std::byte>(Shape{bytes});
}

std::byte* Arena::Taker::take_bytes(std::size_t bytes) {
  std::byte* const begin = block_ == nullptr ? nullptr : block_ + used_;
  used_ = checked_add(used_, checked_add(bytes, 63, "Arena") / 64 * 64, "Arena");
  return begin;
}

}  // namespace vit::internal
