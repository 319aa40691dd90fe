#include "vit/base/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/system.h"
#include "vit/base/tensor.h"

namespace vit {
using namespace internal;

TEST_CASE("base: memory is zeroed, aligned and all there, around the sizes where it comes from elsewhere") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, kMappedBytes, 2 * kMappedBytes,
                                 4 * kMappedBytes, std::size_t{9} << 20}) {
    for (const std::size_t bytes : {size - 1, size, size + 1}) {
      if (bytes == 0) continue;
      auto* const memory = static_cast<unsigned char*>(allocate_zeroed(bytes));
      CAPTURE(bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
      CHECK(std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0; }));
      std::memset(memory, 0xA5, bytes);  // the next block at this place must be zero again
      release_zeroed(memory, bytes);
    }
  }
}

TEST_CASE("base: blocks do not overlap") {
  std::vector<Tensor<float>> tensors;
  for (std::size_t i = 0; i < 24; ++i) {
    tensors.emplace_back(Shape{(i % 5 + 1) * 150'001});
    std::ranges::fill(tensors.back().flat(), static_cast<float>(i));
  }
  for (std::size_t i = 0; i < tensors.size(); i += 3) tensors[i] = Tensor<float>();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto numbers = tensors[i].flat();
    CHECK(std::ranges::all_of(numbers, [&](float number) { return number == static_cast<float>(i); }));
    CHECK(numbers.empty() == (i % 3 == 0));
  }
}

TEST_CASE("base: a size beyond counting is an Error") {
  CHECK_THROWS_AS(Tensor<float>(Shape{std::numeric_limits<std::size_t>::max() / 2}), Error);
}

// The address sanitizer keeps what is freed, and ends the process where there is not enough.
#if !defined(__SANITIZE_ADDRESS__)

TEST_CASE("base: memory that no machine has is std::bad_alloc") {
  CHECK_THROWS_AS(allocate_zeroed(std::size_t{1} << 60), std::bad_alloc);
  CHECK_THROWS_AS(allocate_zeroed(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  CHECK_THROWS_AS(Tensor<float>(Shape{std::size_t{1} << 58}), std::bad_alloc);
}

TEST_CASE("base: a block that the system has promised but does not have is std::bad_alloc") {
  const std::size_t available = internal::system::available_memory();
  if (available > std::size_t{1} << 60) return;  // unknown
  CHECK(available > kMappedBytes);
  // Half as much again: other programs may give some back meanwhile.
  CHECK_THROWS_AS(allocate_zeroed(available + available / 2), std::bad_alloc);
}

namespace {

/// Resident kilobytes of this process; 0 where the system does not say.
std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

}  // namespace

TEST_CASE("base: large blocks take memory where they are touched, and give it back") {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  constexpr std::size_t kHalf = kBytes / 1024 / 2;
  const std::size_t before = resident_kilobytes();
  if (before == 0) return;
  Tensor<std::byte> block(Shape{kBytes});
  CHECK(resident_kilobytes() < before + kHalf);
  std::memset(block.data(), 1, kBytes);
  CHECK(resident_kilobytes() > before + kHalf);
  block = Tensor<std::byte>();
  CHECK(resident_kilobytes() < before + kHalf);
}

TEST_CASE("base: blocks that come and go between small ones that stay leave no holes") {
  constexpr std::size_t kBytes = std::size_t{3} * 224 * 224 * sizeof(float);  // the pixels of an image
  static_assert(kBytes < kMappedBytes);
  std::vector<std::vector<char>> stay;
  const auto run_group = [&] {
    std::vector<Tensor<std::byte>> group;
    for (int image = 0; image < 16; ++image) {
      group.emplace_back(Shape{kBytes});
      stay.emplace_back(48);
    }
  };
  for (int i = 0; i < 5; ++i) run_group();
  const std::size_t before = resident_kilobytes();
  for (int i = 0; i < 50; ++i) run_group();
  CHECK(resident_kilobytes() < before + (std::size_t{16} << 10));
}
#endif

}  // namespace vit
