#include "vit/weights/families/family.h"

#include <algorithm>
#include <charconv>

#include "vit/base/error.h"

namespace vit::internal {

const TensorEntry* SourceFiles::find(const std::string& name) const {
  return tensors.find(prefix + name);
}

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
  static constexpr const Family* kAll[] = {&kHfVitFamily,      &kHfDinov2Family, &kHfDinov3Family,
                                           &kHfClipFamily,     &kOpenClipFamily, &kMetaDinov3Family,
                                           &kMetaDinov2Family, &kBaaiFamily,     &kNaverFamily,
                                           &kOpenAiFamily,     &kTimmFamily};
  return kAll;
}

bool any_block_has(const SourceFiles& files, const std::string& rest) {
  const std::string ending = "." + rest;
  return std::ranges::any_of(files.tensors.entries(), [&](const TensorEntry& entry) {
    if (!entry.name.starts_with(files.prefix) || !entry.name.ends_with(ending)) return false;
    const std::string_view stem =
        std::string_view(entry.name).substr(0, entry.name.size() - ending.size());  // up to the block's index
    return !stem.empty() && stem.back() >= '0' && stem.back() <= '9';
  });
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

Piece renamed_piece(const std::string& canonical, const Shape& shape,
                    const std::map<std::string, std::string>& stems, const std::string& front) {
  const std::string name = torch_ending(canonical);
  if (const auto whole = stems.find(name); whole != stems.end()) {
    return {.source = front + whole->second, .shape = sizes_of(shape)};
  }
  const std::size_t dot = name.rfind('.');
  const auto stem = dot == std::string::npos ? stems.end() : stems.find(name.substr(0, dot));
  VIT_CHECK(stem != stems.end(), "renamed_piece", "this layout has no name for the tensor ", canonical);
  return {.source = front + stem->second + name.substr(dot), .shape = sizes_of(shape)};
}

std::vector<Piece> joined_qkv(const std::array<std::string, 3>& stems, const std::string& ending,
                              std::size_t width, JoinedBias biases) {
  const bool weight = ending == ".weight";
  const std::array<bool, 3> present = {biases.q_bias, biases.k_bias, biases.v_bias};
  std::vector<Piece> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!weight && !present[i]) {
      parts.push_back({.zeros = width});
    } else {
      parts.push_back(
          {.source = stems[i] + ending, .shape = weight ? std::vector{width, width} : std::vector{width}});
    }
  }
  return parts;
}

Piece half_of_rows(const std::string& stem, const std::string& canonical, const Shape& shape) {
  std::vector<std::size_t> whole = sizes_of(shape);
  const std::size_t hidden = whole[0];
  whole[0] = 2 * hidden;
  return {.source = stem + canonical.substr(canonical.rfind('.')),
          .shape = std::move(whole),
          .first_row = canonical.starts_with("gate.") ? 0 : hidden,
          .num_rows = hidden};
}

Piece pool_rows(const std::string& front, const std::string& canonical, std::size_t width) {
  const bool weight = canonical.ends_with(".weight");
  const bool query = canonical.starts_with("pool.q.");
  return {.source = front + (weight ? "weight" : "bias"),
          .shape = weight ? std::vector{3 * width, width} : std::vector{3 * width},
          .first_row = query ? 0 : width,
          .num_rows = query ? width : 2 * width};
}

std::string text_tower_reason(const std::string& name) {
  for (const std::string_view front : {"text.", "text_model.", "transformer.resblocks.", "token_embedding.",
                                       "ln_final.", "text_projection.", "text_decoder."}) {
    if (name.starts_with(front)) return "text tower";
  }
  if (name == "positional_embedding" || name == "text_projection") return "text tower";
  if (name == "logit_scale" || name == "logit_bias") return "compares images with texts";
  return "";
}

}  // namespace vit::internal
