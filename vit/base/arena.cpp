#include "vit/base/arena.h"

namespace vit {

void Arena::reserve(std::size_t bytes) {
  used_ = 0;
  if (bytes <= capacity_bytes()) return;
  block_ = Tensor<std::byte>();  // free first: the peak is one block, not two
  block_ = Tensor<std::byte>(Shape{bytes});
}

std::byte* Arena::take_bytes(std::size_t bytes) {
  VIT_CHECK(bytes <= capacity_bytes() - used_, "Arena", "out of reserved memory: ", used_, " of ",
            capacity_bytes(), " bytes used, ", bytes, " more asked for");
  std::byte* const begin = block_.data() + used_;
  used_ += bytes;
  return begin;
}

}  // namespace vit
