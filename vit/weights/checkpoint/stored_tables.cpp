#include "vit/weights/checkpoint/loading_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/position/identify.h"
#include "vit/position/rope_measure.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr std::size_t kMaxTableNumbers = std::size_t{1} << 22;
constexpr double kSlack = 2.0;  // of what rounding explains: libraries compute tables in their own order

/// The rotation of a configuration as a convention; nothing if its angles are learned or stored, or windows
/// have coordinates of their own.
std::optional<RopeConvention> convention_of(const PositionConfig& position) {
  if (position.rope != RopeKind::axial || position.frequencies == AxisFrequencies::stored ||
      position.per_window)
    return std::nullopt;
  RopeConvention out;
  switch (position.coordinates) {
    case CoordinateRule::index: break;
    case CoordinateRule::scaled_to_reference: out.coordinates = PatchCoordinates::scaled_to_reference; break;
    case CoordinateRule::corners: out.coordinates = PatchCoordinates::corners; break;
    case CoordinateRule::centered: out.coordinates = PatchCoordinates::centered; break;
  }
  out.offset = position.coordinate_offset;
  out.reference = position.reference_grid;
  out.order = position.axis_order;
  out.channels = position.pairing == RopePairing::halves ? PairLayout::halves : PairLayout::neighbors;
  out.theta = position.theta;
  out.factor = position.angle_scale;
  out.axis_frequencies = position.frequencies;
  out.class_angles = position.class_angles;
  return out;
}

bool is_read_here(const TensorUse& use) {
  return !use.ignored_because.empty() && !use.ignored_because.starts_with("outside of") &&
         !use.ignored_because.starts_with("not used");
}

std::optional<RopeNumbers> numbers_of(const TensorEntry& entry) {
  const std::size_t rank = entry.shape.size();
  if (!is_floating(entry.dtype) || rank < 1 || rank > 4 || entry.num_elements() == 0 ||
      entry.num_elements() > kMaxTableNumbers)
    return std::nullopt;
  RopeNumbers out{.values = Tensor<double>(Shape(std::span<const std::size_t>(entry.shape)))};
  convert(entry, out.values.flat());
  out.precision = precision_of(out.values.flat());
  return out;
}

/// The choices in which a table differs, in words.
std::string differences(std::span<const RopeReading> readings, const Placement& placement,
                        const RopeConvention& expected) {
  const RopeIdentity found =
      identify_rope(readings, {}, {.grid = placement.grid, .num_prefix = placement.num_prefix});
  if (!found.choices) return "";
  std::string out;
  for (const std::string& name : differing_choices(*found.choices, found.known, expected))
    if (name != "frequencies") out += (out.empty() ? " in " : ", ") + name;
  out += "; the table has " + formula(*found.choices) + ", " + std::string(order_of(*found.choices));
  if (found.known.pairing) out += ", " + std::string(to_string(found.choices->channels));
  return out;
}

/// Whether a table of the trained grid differs from the configuration, and in what; nothing if it agrees, or
/// is of another grid or head.
std::optional<std::string> contradiction(const RopeNumbers& cos, const RopeNumbers& sin,
                                         const ModelConfig& config, const RopeConvention& expected) {
  std::vector<RopeReading> readings;
  try {
    readings = read_factors(cos, sin);
  } catch (const Error&) {  // no table of factors, whatever its name
    return std::nullopt;
  }
  std::erase_if(readings, [&](const RopeReading& reading) {
    return reading.head_dim != config.head_width() || reading.partition == Partition::none;
  });
  if (readings.empty()) return std::nullopt;
  const GridSize grid = config.native_grid();
  const std::size_t tokens = readings.front().num_tokens;
  for (const std::size_t prefix : {std::size_t{0}, config.num_prefix_tokens()}) {
    const Placement placement{.grid = grid, .num_prefix = prefix};
    if (placement.num_tokens() != tokens) continue;
    const bool agrees = std::ranges::any_of(readings, [&](const RopeReading& reading) {
      return (reading.partition == Partition::unknown ||
              reading.partition == partition_of(expected.channels)) &&
             compare(reading, placement, expected, false, kSlack).agrees;
    });
    if (agrees) return std::nullopt;
    return differences(readings, placement, expected);
  }
  return std::nullopt;
}

/// Whether a list has the frequencies of an axis, or of both one after the other, or their periods; with the
/// factor or without. True for a list of another length.
bool are_expected_frequencies(std::span<const double> list, const ModelConfig& config,
                              const RopeConvention& expected) {
  const std::size_t count = num_axial_frequencies(config.head_width());
  if (list.size() != count && list.size() != 2 * count) return true;
  const RopeFrequencies steps = RopeFrequencies::from_theta(count, expected.theta);
  for (const bool is_period : {false, true}) {
    for (const double factor : {1.0, expected.factor}) {
      bool agrees = true;
      for (std::size_t i = 0; agrees && i < list.size(); ++i) {
        const double wanted = steps[i % count] * factor, found = is_period ? 1.0 / list[i] : list[i];
        agrees = std::abs(found - wanted) <= 0.01 * std::abs(wanted);  // bfloat16 and more
      }
      if (agrees) return true;
    }
  }
  return false;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

std::vector<std::string> contradicting_rope_tables(const TensorFile& tensors, const ModelConfig& config,
                                                   const LoadReport& report) {
  std::vector<std::string> out;
  const std::optional<RopeConvention> expected = convention_of(config.position);
  if (!expected || config.head_width() % 4 != 0) return out;
  const char* const kAdvice =
      "; correct the configuration, or say in the layout file that the tensor is \"not used\"";
  for (const TensorUse& use : report.tensors) {
    if (!is_read_here(use)) continue;
    const TensorEntry* const entry = tensors.find(use.name);
    if (entry == nullptr) continue;
    if (const std::size_t at = use.name.rfind("cos"); at != use.name.npos) {
      std::string other = use.name;
      other.replace(at, 3, "sin");
      const TensorEntry* const sines = tensors.find(other);
      if (sines == nullptr || sines->shape != entry->shape || entry->shape.size() < 2) continue;
      const std::optional<RopeNumbers> cos = numbers_of(*entry), sin = numbers_of(*sines);
      if (!cos || !sin) continue;
      if (const auto found = contradiction(*cos, *sin, config, *expected))
        out.push_back(
            text(in_quotes(use.name), " and ", in_quotes(other),
                 " of the file are rotary factors of this grid, and differ from those of the configuration",
                 *found, kAdvice));
      continue;
    }
    const bool is_list = entry->shape.size() == 1 && expected->axis_frequencies == AxisFrequencies::shared &&
                         (contains(use.name, "freq") || contains(use.name, "period"));
    if (!is_list) continue;
    const std::optional<RopeNumbers> list = numbers_of(*entry);
    if (list && !are_expected_frequencies(list->values.flat(), config, *expected))
      out.push_back(text(in_quotes(use.name), " of the file has other frequencies than theta ",
                         expected->theta, " of the configuration", kAdvice));
  }
  return out;
}

}  // namespace vit::internal
