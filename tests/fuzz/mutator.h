// Reproducible damage to a byte string.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/structures.h"

namespace vit::fuzz {

/// Changes inputs the way damaged and hostile files differ from good ones. The same seed gives the same
/// sequence on every machine.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed) {}

  /// A copy of one of `seeds`, of which there is one at least, with one to eight changes; of its parts in
  /// half the cases if there is a structure.
  std::string next(const std::vector<std::string>& seeds, const Structure& structure) {
    std::string out = seeds[below(seeds.size())];
    if (structure && below(2) == 0) return with_changed_parts(out, structure);
    for (std::size_t changes = 1 + below(8); changes > 0; --changes) change(out, seeds[below(seeds.size())]);
    return out;
  }

 private:
  std::string with_changed_parts(const std::string& file, const Structure& structure) {
    std::vector<std::string> parts = structure.split(file);
    for (std::size_t changes = 1 + below(4); changes > 0 && !parts.empty(); --changes) {
      const auto at = parts.begin() + static_cast<std::ptrdiff_t>(below(parts.size()));
      switch (below(6)) {
        case 0: parts.erase(at); break;
        case 1: parts.insert(at, std::string(parts[below(parts.size())])); break;
        case 2: std::swap(*at, parts[below(parts.size())]); break;
        default: change(*at, parts[below(parts.size())]);
      }
    }
    return structure.join(parts);
  }

  /// splitmix64
  std::uint64_t random() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

  /// Numbers at the edges of their types.
  std::uint64_t edge() {
    constexpr std::uint64_t kEdges[] = {0,
                                        1,
                                        0x7F,
                                        0x80,
                                        0xFF,
                                        0x7FFF,
                                        0xFFFF,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        0xFFFFFFFFFFFFFFFF};
    return kEdges[below(std::size(kEdges))] + below(3) - 1;
  }

  void change(std::string& bytes, const std::string& other) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = 1 + below(16);
    switch (below(bytes.empty() ? 2 : 9)) {
      case 0: bytes.insert(at, 1, static_cast<char>(random())); break;
      case 1: bytes.insert(at, other.substr(below(other.size()), length)); break;
      case 2: bytes[at] = static_cast<char>(random()); break;
      case 3: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 4: bytes[at] = static_cast<char>(bytes[at] + (below(2) == 0 ? 1 : -1)); break;
      case 5: bytes.erase(at, length); break;
      case 6: bytes.resize(at); break;
      case 7: bytes.insert(at, bytes.substr(below(bytes.size()), length)); break;
      case 8: {
        const std::uint64_t value = edge();
        const std::size_t width = std::size_t{1} << below(4);
        for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
          bytes[at + i] = static_cast<char>(value >> (8 * i));
        }
        break;
      }
    }
  }

  std::uint64_t state_;
};

}  // namespace vit::fuzz
