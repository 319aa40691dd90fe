#include "vit/weights/checkpoint/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "vit/config.h"
#include "vit/position/rope.h"

namespace vit::internal {
using position::to_string;
namespace {

constexpr std::size_t kSamples = 64;
constexpr std::size_t kReadAtOnce =
    1 << 16;  // bytes of a tensor that is read once; a page costs what a number does

/// Fowler, Noll, Vo: FNV-1a of 64 bits.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3u;
  }
  void add(std::string_view name) {
    add(std::as_bytes(std::span(name)));
    add(name.size());
  }
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      const std::byte byte{static_cast<unsigned char>(number >> shift)};
      add(std::span(&byte, 1));
    }
  }
  std::string digits() const {
    char out[17];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value_));
    return out;
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

void add_config(Hash& hash, const ModelConfig& config) {
  hash.add(config.attention.num_heads);
  hash.add(static_cast<std::uint64_t>(config.head.pooling));
  if (config.position.rope_scaling) hash.add(std::string_view(to_string(*config.position.rope_scaling)));
}

/// Bytes from the start of the tensor to its element `index`, counted in row-major order.
std::size_t offset_of(const TensorEntry& entry, std::size_t index) {
  const std::size_t size = dtype_bytes(entry.dtype);
  if (entry.strides.empty()) return index * size;
  std::size_t offset = 0;
  for (std::size_t i = entry.shape.size(); i-- > 0; index /= entry.shape[i])
    offset += index % entry.shape[i] * entry.strides[i];
  return offset * size;
}

void add_tensor(Hash& hash, const TensorEntry& entry) {
  hash.add(entry.name);
  hash.add(entry.dtype_name);
  for (const std::size_t dim : entry.shape) hash.add(dim);
  const std::size_t count = entry.num_elements();
  const std::size_t samples = std::min(count, kSamples);
  const std::vector<std::byte> whole =
      entry.bytes.size() <= kReadAtOnce ? entry.bytes.copy() : std::vector<std::byte>();
  const StoredBytes numbers = whole.empty() ? entry.bytes : StoredBytes(whole);
  std::array<std::byte, sizeof(double)> bytes;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t index = samples == 1 ? 0 : i * (count - 1) / (samples - 1);
    const auto element = std::span(bytes).first(dtype_bytes(entry.dtype));
    numbers.read(offset_of(entry, index), element);
    hash.add(element);
  }
  for (const auto& update : entry.updates) {
    add_tensor(hash, update->a);
    add_tensor(hash, update->b);
    hash.add(std::bit_cast<std::uint64_t>(update->scale));
  }
}

void add_used(Hash& hash, const LoadReport& report, const TensorFile& tensors) {
  std::vector<std::string_view> names;
  for (const TensorUse& use : report.tensors) {
    if (use.ignored_because.empty()) names.push_back(use.name);
  }
  std::ranges::sort(names);
  for (const std::string_view name : names) add_tensor(hash, tensors.at(name));
}

}  // namespace

std::string fingerprint(const ModelConfig& config, const LoadReport& report, const TensorFile& tensors) {
  Hash hash;
  add_config(hash, config);
  add_used(hash, report, tensors);
  return hash.digits();
}

std::string fingerprint(const LoadReport& report, const TensorFile& tensors) {
  Hash hash;
  add_used(hash, report, tensors);
  return hash.digits();
}

std::string fingerprint_of_random(std::string_view architecture, const ModelConfig& config, unsigned seed) {
  Hash hash;
  hash.add("nearly normal");  // how the numbers are generated
  hash.add(architecture);
  hash.add(seed);
  add_config(hash, config);
  return hash.digits();
}

}  // namespace vit::internal
