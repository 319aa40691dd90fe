#include "vit/weights/family.h"

#include <algorithm>
#include <charconv>

#include "vit/base/error.h"

namespace vit {

const TensorEntry* SourceFiles::find(const std::string& name) const { return tensors.find(prefix + name); }

bool SourceFiles::find_prefix(std::string_view anchor, std::span<const std::string_view> allowed) {
  for (const std::string_view candidate : allowed) {
    if (tensors.find(std::string(candidate) + std::string(anchor)) != nullptr) {
      prefix = candidate;
      return true;
    }
  }
  return false;
}

std::size_t SourceFiles::count_blocks(const std::string& stem) const {
  std::vector<bool> seen;
  const std::string start = prefix + stem;
  for (const TensorEntry& entry : tensors.entries()) {
    if (!entry.name.starts_with(start)) continue;
    std::size_t index = 0;
    const char* const begin = entry.name.data() + start.size();
    const char* const end = entry.name.data() + entry.name.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error != std::errc() || stop == end || *stop != '.' || index >= 4096) continue;
    if (index >= seen.size()) seen.resize(index + 1, false);
    seen[index] = true;
  }
  return static_cast<std::size_t>(std::find(seen.begin(), seen.end(), false) - seen.begin());
}

std::span<const Family* const> families() {
  static constexpr const Family* kAll[] = {&kTimmFamily, &kHfVitFamily};
  return kAll;
}

std::optional<BlockTensor> split_block(const std::string& canonical) {
  constexpr std::string_view kStem = "blocks.";
  if (!canonical.starts_with(kStem)) return std::nullopt;
  const std::size_t dot = canonical.find('.', kStem.size());
  BlockTensor out{0, canonical.substr(dot + 1)};
  std::from_chars(canonical.data() + kStem.size(), canonical.data() + dot, out.block);
  return out;
}

std::string torch_ending(const std::string& name) {
  if (name.ends_with(".gamma")) return name.substr(0, name.size() - 5) + "weight";
  if (name.ends_with(".beta")) return name.substr(0, name.size() - 4) + "bias";
  return name;
}

std::vector<std::size_t> sizes_of(const Shape& shape) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

Piece renamed_piece(const std::string& canonical, const Shape& shape, const std::map<std::string, std::string>& stems,
                    const std::string& front) {
  const std::string name = torch_ending(canonical);
  if (const auto whole = stems.find(name); whole != stems.end()) {
    return {.source = front + whole->second, .shape = sizes_of(shape)};
  }
  const std::size_t dot = name.rfind('.');
  const auto stem = dot == std::string::npos ? stems.end() : stems.find(name.substr(0, dot));
  VIT_CHECK(stem != stems.end(), "renamed_piece", "this layout has no name for the tensor ", canonical);
  return {.source = front + stem->second + name.substr(dot), .shape = sizes_of(shape)};
}

}  // namespace vit
