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
#include "vit/io/json.h"
#include "vit/position/rope_file.h"
#include "vit/position/rope_json.h"

namespace vit::app {
using namespace internal;
using namespace position;
namespace {

TensorFile open_tables(const std::filesystem::path& path) {
  const std::filesystem::path extension = path.extension();
  if (extension != ".npz" && extension != ".npy" && extension != ".safetensors")
    fail_usage("identify: expected a .npz, .npy or .safetensors file, found '", printable(path.string()),
               "'");
  return open_rope_file(path);
}

JsonValue parsed(const std::string& json) {
  return JsonValue::from(parse_json(json, "identify"));
}

std::string value_text(const JsonValue& value) {
  if (value.is_null()) return "does not follow from this file";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Choices of a published convention as those of a file, for comparison.
JsonValue published_json(const RopeConvention& convention) {
  return parsed(
      choices_json(convention, {.coordinates = true,
                                .order = convention.kind == ConventionKind::axial || has_time(convention),
                                .pairing = true,
                                .frequencies = true,
                                .theta = true}));
}

std::string as_text(const RopeIdentity& found, const RopeConvention* against) {
  const JsonValue json = parsed(to_json(found, against));
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
                      found.num_frames > 1 ? text(", ", found.num_frames, " frames") : "",
                      found.merge > 1 ? text(", in blocks of ", found.merge, " x ", found.merge) : ""));
    line("not rotated", text(found.num_prefix, " tokens before the patches",
                             found.num_suffix > 0 ? text(", ", found.num_suffix, " after them") : ""));
  }
  if (found.choices) {
    const JsonValue choices = parsed(choices_json(*found.choices, found.known));
    for (const auto& [name, value] : choices.items())
      if (name != "reference" || !value.is_null()) line(name, value_text(value));
  }
  if (found.error) line("error", text(*found.error, found.choices ? "" : " from the nearest one"));
  if (found.convention == nullptr && found.nearest != nullptr) line("nearest", found.nearest->name);
  const RopeConvention* const other = against != nullptr ? against : found.nearest;
  if (other != nullptr && found.choices) {
    const JsonValue& differs = json["differs"];
    out += differs.size() == 0 ? "does not differ from " + other->name + "\n"
                               : "differs from " + other->name + " in\n";
    const JsonValue there = published_json(*other);
    for (const JsonValue& each : differs) {
      const auto name = each.get<std::string>();
      if (there.contains(name)) line(name, value_text(json[name]) + ", there " + value_text(there[name]));
    }
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
  print_result(options.format == PrintFormat::json ? to_json(found, against) + "\n"
                                                   : as_text(found, against));
  return found.convention != nullptr ? 0 : 1;
}

}  // namespace vit::app
