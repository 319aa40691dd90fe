#include "vit/position/rope_json.h"

#include <array>
#include <vector>

#include "vit/io/json_writer.h"

namespace vit::internal {
using namespace position;

namespace {

/// The member, or null if its value is not known.
template <typename T>
void write_known(JsonWriter& out, const char* name, bool is_known, const T& value) {
  out.key(name);
  if (is_known) {
    out.value(value);
  } else {
    out.value(nullptr);
  }
}

void write_grid(JsonWriter& out, const char* name, bool is_known, GridSize grid) {
  out.key(name);
  if (!is_known) {
    out.value(nullptr);
    return;
  }
  out.array(std::array{grid.rows, grid.columns});
}

void write_frequencies(JsonWriter& out, const RopeConvention& c, const KnownChoices& known) {
  out.key("frequencies");
  if (!known.frequencies) {
    out.value(nullptr);
    return;
  }
  const bool is_learned = c.kind == ConventionKind::mixed;
  out.begin_object().member("rule", rule_of(c));
  write_known(out, "theta", !is_learned && c.rule == FrequencyRule::theta && known.theta, c.theta);
  write_known(out, "factor", !is_learned, c.factor);
  if (c.axis_frequencies == AxisFrequencies::alternating) out.member("axes", "alternating");
  if (c.rule == FrequencyRule::pixel) out.member("max_frequency", c.max_frequency);
  if (c.rule == FrequencyRule::geometric) out.member("lowest", c.lowest).member("highest", c.highest);
  out.end_object();
}

void write_choices(JsonWriter& out, const RopeConvention& c, const KnownChoices& known) {
  write_known(out, "coordinates", known.coordinates, to_string(c.coordinates));
  write_known(out, "offset", known.coordinates, c.offset);
  write_known(out, "order", known.order, order_of(c));
  write_known(out, "pairing", known.pairing,
              pairing_of(c.channels) == RopePairing::halves ? "halves" : "neighbors");
  write_frequencies(out, c, known);
  const bool has_reference =
      c.coordinates == PatchCoordinates::scaled_to_reference || c.coordinates == PatchCoordinates::corners;
  write_grid(out, "reference", known.coordinates && has_reference, c.reference);
}

}  // namespace

std::string to_json(const RopeConvention& c) {
  std::string text;
  JsonWriter out(text, JsonLayout::compact);
  out.begin_object().member("name", c.name).array("families", c.families);
  out.member("coordinates", c.window != 0 ? "index in windows" : to_string(c.coordinates));
  out.member("offset", c.offset).member("order", order_of(c)).member("pairing", to_string(c.channels));
  out.member("frequencies", rule_of(c)).member("formula", formula(c)).end_object();
  return text;
}

std::string choices_json(const RopeConvention& choices, const KnownChoices& known) {
  std::string text;
  JsonWriter out(text, JsonLayout::compact);
  out.begin_object();
  write_choices(out, choices, known);
  out.end_object();
  return text;
}

std::string to_json(const RopeIdentity& found, const RopeConvention* against) {
  const RopeConvention* const other = against != nullptr ? against : found.nearest;
  std::vector<std::string> differs;
  if (found.choices && other != nullptr) differs = differing_choices(*found.choices, found.known, *other);
  if (against == nullptr && found.convention != nullptr) differs.clear();
  std::string text;
  JsonWriter out(text, JsonLayout::compact);
  out.begin_object();
  write_known(out, "convention", found.convention != nullptr,
              found.convention != nullptr ? found.convention->name : std::string());
  out.array("families", families_of(found));
  write_choices(out, found.choices.value_or(RopeConvention{}), found.choices ? found.known : KnownChoices{});
  write_known(out, "prefix", found.grid.has_value(), found.num_prefix);
  if (found.num_suffix > 0) out.member("suffix", found.num_suffix);
  write_grid(out, "grid", found.grid.has_value(), found.grid.value_or(GridSize{}));
  if (found.num_frames > 1) out.member("frames", found.num_frames);
  if (found.merge > 1) out.member("merge", found.merge);
  out.member("error", found.error);
  write_known(out, "nearest", found.nearest != nullptr,
              found.nearest != nullptr ? found.nearest->name : std::string());
  out.array("differs", differs).array("notes", found.notes).end_object();
  return text;
}

}  // namespace vit::internal
