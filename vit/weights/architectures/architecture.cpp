// The table of published architectures, which make_table.py writes, and the search in it.
#include "vit/weights/architectures/architecture.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/edit_distance.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/architectures/pixel_statistics.h"

namespace vit::internal {
namespace {

/// A name that timm has given up, and the name with tag of a row that it stands for.
struct FormerName {
  std::string_view name, current;
};

#include "vit/weights/architectures/open_clip_table.inc"
#include "vit/weights/architectures/table.inc"

/// The row of that name in a sorted table, or null.
template <class Row>
constexpr const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found = std::ranges::lower_bound(rows, name, {}, &Row::name);
  return found != rows.end() && found->name == name ? &*found : nullptr;
}

template <class Row>
constexpr bool is_sorted_and_unique(std::span<const Row> rows) {
  return std::ranges::adjacent_find(rows, std::ranges::greater_equal{}, &Row::name) == rows.end();
}

constexpr std::span<const Architecture> kRows(kArchitectures), kTaggedRows(kTagged);
constexpr std::span<const FormerName> kFormer(kFormerNames), kOthers(kNeighborNames);
constexpr std::span<const Architecture> kNeighborRows(kNeighbors);

static_assert(is_sorted_and_unique(kRows) && is_sorted_and_unique(kTaggedRows) &&
              is_sorted_and_unique(kFormer) && is_sorted_and_unique(kNeighborRows) &&
              is_sorted_and_unique(kOthers));
static_assert(std::ranges::all_of(kOthers, [](const FormerName& other) {
  return find_row(kRows, other.current) != nullptr && find_row(kRows, other.name) == nullptr;
}));
static_assert(std::ranges::all_of(kFormer, [](const FormerName& former) {
  return find_row(kTaggedRows, former.current) != nullptr && find_row(kRows, former.name) == nullptr;
}));
static_assert(std::ranges::all_of(kRows, [](const Architecture& row) {
  return row.timm_name.empty() ? row.library == "timm" : find_row(kRows, row.timm_name) != nullptr;
}));

/// A name that differs in every third letter is another name.
constexpr bool is_near(std::size_t distance, std::size_t length) {
  return 3 * distance <= length;
}

}  // namespace

std::span<const Architecture> architectures() {
  return kRows;
}

const Architecture* find_known_architecture(std::string_view name) {
  if (const FormerName* const other = find_row(kOthers, name)) return find_row(kRows, other->current);
  if (const Architecture* const row = find_row(kNeighborRows, name)) return row;
  const std::string_view tagged = name.substr(name.rfind('/') + 1);  // npos + 1 = 0
  const std::string_view plain = tagged.substr(0, tagged.find('.'));
  if (const FormerName* const former = find_row(kFormer, plain))
    return find_row(kTaggedRows, former->current);
  if (const Architecture* const row = find_row(kTaggedRows, tagged)) return row;
  return find_row(kRows, plain);
}

const Architecture& find_architecture(std::string_view name) {
  if (const Architecture* const known = find_known_architecture(name)) return *known;
  constexpr Where kWhere{"find_architecture", ErrorKind::argument};
  fail(kWhere, "unknown architecture ", in_quotes(name),
       near_architectures(name.substr(0, name.find('.')), 5));
}

std::string near_architectures(std::string_view name, std::size_t count) {
  const std::vector<std::string> near = nearest_architectures(name, count);
  return near.empty() ? "" : "; the nearest known names are " + listed(near, count);
}

const Architecture* find_published(std::string_view library, std::string_view timm_name) {
  const auto found = std::ranges::find_if(kRows, [&](const Architecture& row) {
    return row.library == library && row.timm_name == timm_name && !timm_name.empty();
  });
  return found != kRows.end() ? &*found : nullptr;
}

std::vector<std::string> nearest_architectures(std::string_view name, std::size_t count) {
  const std::string_view bounded = name.substr(0, 100);
  struct Candidate {
    bool differs;  // unless it goes on where `name` ends
    std::size_t distance;
    std::string_view name;
    auto operator<=>(const Candidate&) const = default;
  };
  std::vector<Candidate> ranked;
  const auto add = [&](std::string_view known) {
    const bool goes_on = !bounded.empty() && known.starts_with(bounded);
    const std::size_t distance = edit_distance(bounded, known);
    if (goes_on || is_near(distance, bounded.size())) ranked.push_back({!goes_on, distance, known});
  };
  for (const Architecture& row : kRows) add(row.name);
  for (const Architecture& row : kNeighborRows) add(row.name);
  for (const FormerName& other : kOthers) add(other.name);
  std::ranges::sort(ranked);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) names.emplace_back(ranked[i].name);
  return names;
}

}  // namespace vit::internal
