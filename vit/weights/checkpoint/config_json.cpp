#include "vit/weights/checkpoint/config_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "vit/base/check.h"
#include "vit/config/fields.h"
#include "vit/position/rope.h"

namespace vit::internal {
namespace {

using nlohmann::ordered_json;

/// Writes fields as members of an object.
struct Writer {
  ordered_json& out;

  template <typename Field>
  void operator()(const char* name, const Field& field, Shown shown = Shown::always) const {
    if (shown == Shown::unless_default && is_default(field)) return;
    out[name] = value_of(field);
  }

  template <typename Field>
  static bool is_default(const Field& field) {
    if constexpr (requires { field == Field{}; }) return field == Field{};
    return false;
  }
  template <typename Field>
  static ordered_json value_of(const Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      return std::string(enum_name(field));
    } else {
      return field;
    }
  }
  /// The smallest decimal of a float32, so that 1e-6 does not print as 9.999999974752427e-07.
  static ordered_json value_of(float field) { return std::stod(text(field)); }
  static ordered_json value_of(const GridSize& field) {
    ordered_json out;
    visit_grid(field, Writer{out});
    return out;
  }
  static ordered_json value_of(const PositionConfig& field) {
    ordered_json out;
    visit_position(field, Writer{out});
    return out;
  }
  static ordered_json value_of(const std::optional<RopeScaling>& field) {
    return field ? ordered_json(position::to_string(*field)) : ordered_json(nullptr);
  }
  static ordered_json value_of(const MergerConfig& field) {
    ordered_json out;
    visit_merger(field, Writer{out});
    return out;
  }
  static ordered_json value_of(const AttentionPoolConfig& field) {
    ordered_json out;
    visit_attention_pool(field, Writer{out});
    return out;
  }
};

/// Invalid UTF-8 in names is replaced.
std::string one_line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string config_json(const ModelConfig& config) {
  ordered_json out;
  visit_model(config, Writer{out});
  return one_line(out);
}

std::string config_json(const PreprocessConfig& config) {
  ordered_json out;
  out["source"] = config.source;
  visit_preprocess(config, Writer{out});
  return one_line(out);
}

}  // namespace vit::internal
