#include "vit/weights/families/head_layout.h"

#include <charconv>

namespace vit::internal {
namespace {

/// What {} and * of a pattern match in a name.
struct Filling {
  std::optional<int> number{};
  std::string_view rest{};
};

std::optional<Filling> match_pattern(std::string_view pattern, std::string_view name) {
  Filling out;
  if (const std::size_t hole = pattern.find("{}"); hole != std::string_view::npos) {
    if (!name.starts_with(pattern.substr(0, hole))) return std::nullopt;
    int number = 0;
    const auto [end, error] = std::from_chars(name.data() + hole, name.data() + name.size(), number);
    if (error != std::errc()) return std::nullopt;
    out.number = number;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    pattern.remove_prefix(hole + 2);
  }
  if (!pattern.ends_with('*')) return name == pattern ? std::optional(out) : std::nullopt;
  pattern.remove_suffix(1);
  if (!name.starts_with(pattern)) return std::nullopt;
  out.rest = name.substr(pattern.size());
  return out;
}

std::string filled(const HeadRow& row, const Filling& filling) {
  std::string out(row.source);
  if (const std::size_t hole = out.find("{}"); hole != std::string::npos && filling.number)
    out.replace(hole, 2, std::to_string(row.step * *filling.number + row.first));
  if (out.ends_with('*')) out.replace(out.size() - 1, 1, filling.rest);
  return out;
}

}  // namespace

std::optional<HeadSource> find_source(std::span<const HeadTable> tables, const std::string& name) {
  std::optional<HeadSource> found;
  for (const HeadTable& table : tables) {
    if (!name.starts_with(table.branch)) continue;
    for (const HeadRow& row : table.rows) {
      const auto filling = match_pattern(row.name, std::string_view(name).substr(table.branch.size()));
      if (filling) found = HeadSource{table.source + filled(row, *filling), row.place, row.from};
    }
  }
  return found;
}

}  // namespace vit::internal
