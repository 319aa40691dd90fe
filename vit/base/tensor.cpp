#include "vit/base/tensor.h"

#include "vit/base/checked.h"
#include "vit/base/memory.h"

namespace vit {

std::size_t Shape::product_of(std::size_t num_sizes) const {
  std::size_t count = 1;
  for (std::size_t i = 0; i < num_sizes; ++i) count = checked_mul(count, sizes_[i], "Shape");
  return count;
}

std::string Shape::to_string() const {
  std::string out = "(";
  for (std::size_t i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string(sizes_[i]);
  return out + ")";
}

TensorMemory::TensorMemory(const Shape& shape, std::size_t element_bytes)
    : bytes_(checked_mul(shape.num_elements(), element_bytes, "Tensor")) {
  if (bytes_ != 0) data_ = internal::allocate_zeroed(bytes_);
}

void TensorMemory::release() noexcept {
  if (data_ != nullptr) internal::release_zeroed(data_, bytes_);
}

}  // namespace vit
