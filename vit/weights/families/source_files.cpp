#include "vit/weights/families/source_files.h"

#include <algorithm>
#include <charconv>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {

const TensorEntry* SourceFiles::find(std::string_view name, Place place) const {
  return tensors.find(std::string(place == Place::tower ? match.prefix : match.outside).append(name));
}

const TensorEntry* SourceFiles::find(const Layout& layout, Part part, std::size_t block) const {
  for (const Source& source : layout.sources(part)) {
    if (source.is_stored()) return find(source.name(block), source.row.place);
  }
  return nullptr;
}

bool SourceFiles::any_block_has(const Layout& layout, Part part) const {
  return std::ranges::any_of(layout.sources(part), [&](const Source& source) {
    if (!source.is_stored()) return false;
    std::string pattern(source.row.source);
    if (pattern.ends_with('*')) pattern.replace(pattern.size() - 1, 1, source.bias ? "bias" : "weight");
    return any_block_has(pattern, source.row.place);
  });
}

bool SourceFiles::any_block_has(std::string_view pattern, Place place) const {
  const std::size_t hole = pattern.find("{}");
  const std::string front =
      (place == Place::tower ? match.prefix : match.outside) + std::string(pattern.substr(0, hole));
  const std::string_view back = pattern.substr(hole + 2);
  return std::ranges::any_of(tensors.entries(), [&](const TensorEntry& entry) {
    if (entry.name.size() <= front.size() + back.size()) return false;
    if (!entry.name.starts_with(front) || !entry.name.ends_with(back)) return false;
    const std::string_view number =
        std::string_view(entry.name).substr(front.size(), entry.name.size() - front.size() - back.size());
    return number.find_first_not_of("0123456789") == std::string_view::npos;
  });
}

std::size_t SourceFiles::count_blocks(std::string_view stem, Place place) const {
  std::vector<bool> seen;
  const std::string start = (place == Place::tower ? match.prefix : match.outside) + std::string(stem);
  for (const TensorEntry& entry : tensors.entries()) {
    if (!entry.name.starts_with(start)) continue;
    std::size_t index = 0;
    const char* const begin = entry.name.data() + start.size();
    const char* const end = entry.name.data() + entry.name.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error != std::errc() || stop == end || (*stop != '.' && *stop != '/') || index >= 4096) continue;
    if (index >= seen.size()) seen.resize(index + 1, false);
    seen[index] = true;
  }
  return static_cast<std::size_t>(std::find(seen.begin(), seen.end(), false) - seen.begin());
}

bool SourceFiles::drops_classifier() const {
  const auto given = options.overrides.find("num_classes");
  return given != options.overrides.end() && given->second == "0";
}

std::string SourceFiles::config_name() const {
  return config ? config->file() : weights_name;
}

void refuse_choice(const Json& value, const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(in_quotes(word));
  fail(Where{"read_config", ErrorKind::unsupported}, value.where(), " is ", in_quotes(value.as_string()),
       ", which is not implemented; ", listed(quoted, quoted.size()), quoted.size() == 1 ? " is" : " are");
}

GridSize read_edges(const Json& value, SizeRange range) {
  if (value.is_number()) return {value.as_size(range), value.as_size(range)};
  value.expect_array(2, "one number or [height, width]");
  return {value[0].as_size(range), value[1].as_size(range)};
}

std::optional<Match> match_anchor(const SourceFiles& files, std::string_view anchor,
                                  std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    const std::string full = files.root + std::string(prefix);
    if (files.has_weights && files.tensors.find(full + std::string(anchor)) == nullptr) continue;
    return Match{.prefix = full, .outside = files.root};
  }
  return std::nullopt;
}

}  // namespace vit::internal
