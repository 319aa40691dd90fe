// vit rope identify: which convention the factors of a file follow, as JSON or in words.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "apps/vit/commands/rope.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/io/npz.h"
#include "vit/io/safetensors.h"
#include "vit/position/rope_file.h"

namespace vit::app {
using namespace internal;
using namespace position;
namespace {

TensorFile open_tables(const std::filesystem::path& path) {
  if (path.extension() == ".npz") return open_npz(path);
  if (path.extension() == ".safetensors") return open_safetensors(path);
  fail_usage("identify: expected a .npz or .safetensors file, found '", printable(path.string()), "'");
}

std::string_view order_of(const RopeConvention& c) {
  return c.kind == RopeKind::volume ? "tyx" : to_string(c.order);
}

/// The value, or null if it is not known.
template <typename T>
JsonValue known_or_null(bool is_known, const T& value) {
  return is_known ? JsonValue(value) : JsonValue(nullptr);
}

JsonValue grid_json(GridSize grid) {
  return JsonValue::array({grid.rows, grid.columns});
}

JsonValue frequencies_json(const RopeConvention& c, const KnownChoices& known) {
  if (!known.frequencies) return nullptr;
  JsonValue out = JsonValue::object();
  out["rule"] = c.kind == RopeKind::mixed ? "learned" : to_string(c.rule);
  const bool is_theta = c.kind != RopeKind::mixed && c.rule == FrequencyRule::theta;
  out["theta"] = known_or_null(is_theta && known.theta, c.theta);
  out["factor"] = known_or_null(c.kind != RopeKind::mixed, c.factor);
  if (c.axis_frequencies == AxisFrequencies::alternating) out["axes"] = "alternating";
  if (c.rule == FrequencyRule::pixel) out["max_frequency"] = c.max_frequency;
  return out;
}

JsonValue choices_json(const RopeIdentity& found) {
  const RopeConvention none;
  const RopeConvention& c = found.choices ? *found.choices : none;
  const KnownChoices known = found.choices ? found.known : KnownChoices{};
  const bool scaled = known.coordinates && c.coordinates == CoordinateRule::scaled_to_reference;
  return {{"coordinates", known_or_null(known.coordinates, to_string(c.coordinates))},
          {"offset", known_or_null(known.coordinates, c.offset)},
          {"order", known_or_null(known.order, order_of(c))},
          {"pairing", known_or_null(known.pairing,
                                    pairing_of(c.channels) == RopePairing::halves ? "halves" : "neighbors")},
          {"frequencies", frequencies_json(c, known)},
          {"reference", scaled ? grid_json(c.reference) : JsonValue(nullptr)}};
}

JsonValue as_json(const RopeIdentity& found, const std::vector<std::string>& differs) {
  JsonValue out = JsonValue::object();
  out["convention"] = found.convention != nullptr ? JsonValue(found.convention->name) : JsonValue(nullptr);
  out["families"] = families_of(found);
  out.update(choices_json(found));
  out["prefix"] = known_or_null(found.grid.has_value(), found.num_prefix);
  out["grid"] = found.grid ? grid_json(*found.grid) : JsonValue(nullptr);
  if (found.num_frames > 1) out["frames"] = found.num_frames;
  out["error"] = known_or_null(found.error.has_value(), found.error.value_or(0.0));
  out["nearest"] = nullptr;
  if (found.nearest != nullptr) out["nearest"] = found.nearest->name;
  out["differs"] = differs;
  out["notes"] = found.notes;
  return out;
}

std::string value_text(const JsonValue& value) {
  if (value.is_null()) return "does not follow from this file";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Choices of a published convention as those of a file, for comparison.
JsonValue published_json(const RopeConvention& convention) {
  return choices_json(
      {.choices = convention,
       .known = {.coordinates = true, .order = true, .pairing = true, .frequencies = true, .theta = true}});
}

std::string as_text(const RopeIdentity& found, const std::vector<std::string>& differs,
                    const RopeConvention* against) {
  std::string out;
  if (found.convention != nullptr) {
    out += found.convention->name + ": ";
    const std::vector<std::string> families = families_of(found);
    for (std::size_t i = 0; i < families.size(); ++i) out += (i == 0 ? "" : ", ") + families[i];
  } else {
    out += "none of the published conventions";
  }
  out += "\n";
  const auto line = [&](std::string name, const std::string& value) {
    name.resize(14, ' ');
    out += "  " + name + value + "\n";
  };
  if (found.grid) {
    line("grid", text(found.grid->rows, " x ", found.grid->columns,
                      found.num_frames > 1 ? text(", ", found.num_frames, " frames") : ""));
    line("not rotated", text(found.num_prefix, " tokens before the patches"));
  }
  if (found.choices) {
    const JsonValue choices = choices_json(found);
    for (const auto& [name, value] : choices.items())
      if (name != "reference" || !value.is_null()) line(name, value_text(value));
  }
  if (found.error) line("error", text(*found.error, found.choices ? "" : " from the nearest one"));
  if (found.convention == nullptr && found.nearest != nullptr) line("nearest", found.nearest->name);
  if (against != nullptr && found.choices) {
    out += differs.empty() ? "does not differ from " + against->name + "\n"
                           : "differs from " + against->name + " in\n";
    const JsonValue other = published_json(*against), own = choices_json(found);
    for (const std::string& name : differs)
      if (own.contains(name)) line(name, value_text(own[name]) + ", there " + value_text(other[name]));
  }
  for (const std::string& note : found.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace

int identify_rope_tables(const RopeOptions& options) {
  const RopeConvention* against = nullptr;
  if (!options.against.empty()) against = &known_convention("--against", options.against);
  const TensorFile file = open_tables(options.words[1]);
  const RopeIdentity found =
      identify_rope_file(file, {.grid = options.grid, .num_prefix = options.num_prefix});
  const RopeConvention* const other = against != nullptr ? against : found.nearest;
  std::vector<std::string> differs;
  if (found.choices && other != nullptr) differs = differing_choices(*found.choices, found.known, *other);
  if (against == nullptr && found.convention != nullptr) differs.clear();
  print_result(options.format == PrintFormat::json ? as_json(found, differs).dump() + "\n"
                                                   : as_text(found, differs, other));
  return found.convention != nullptr ? 0 : 1;
}

}  // namespace vit::app
