#include "vit/weights/checkpoint/config_json.h"

#include <array>
#include <type_traits>

#include "vit/base/check.h"
#include "vit/config/fields.h"
#include "vit/io/json_writer.h"
#include "vit/position/rope.h"

namespace vit::internal {
namespace {

/// Writes fields as members of an object.
struct Writer {
  JsonWriter& out;

  template <typename Field>
  void operator()(const char* name, const Field& field, Shown shown = Shown::always) const {
    if (shown == Shown::unless_default && is_default(field)) return;
    out.key(name);
    write(field);
  }

  void norm(const char* name, const char* kind_name, const std::optional<NormKind>& kind) const {
    (*this)(name, kind.has_value(), Shown::unless_default);
    (*this)(kind_name, kind.value_or(NormKind::rms), Shown::unless_default);
  }

  template <typename Enum>
  void flag(const char* name, Enum choice, Enum value, Shown shown = Shown::unless_default) const {
    (*this)(name, choice == value, shown);
  }

  template <typename Field>
  static bool is_default(const Field& field) {
    if constexpr (requires { field == Field{}; }) return field == Field{};
    return false;
  }
  template <typename Field>
  void write(const Field& field) const {
    if constexpr (std::is_enum_v<Field>) {
      out.value(enum_name(field));
    } else if constexpr (requires { out.value(field); }) {
      out.value(field);
    } else {
      out.begin_array();
      for (const auto& element : field) write(element);
      out.end_array();
    }
  }
  void write(const GridSize& field) const {
    object([&] { visit_grid(field, *this); });
  }
  void write(const PositionConfig& field) const {
    object([&] { visit_position(field, *this); });
  }
  void write(const std::optional<RopeScaling>& field) const {
    if (field) {
      out.value(position::to_string(*field));
    } else {
      out.value(nullptr);
    }
  }
  void write(const std::optional<RelativeConfig>& field) const {
    object([&] { visit_relative(*field, *this); });
  }
  void write(const MergerFields& field) const {
    object([&] { visit_merger(field, *this); });
  }
  void write(const std::optional<AttentionPoolConfig>& field) const {
    const AttentionPoolConfig pool = field.value_or(AttentionPoolConfig{});
    object([&] { visit_attention_pool(pool, *this); });
  }

 private:
  template <typename Members>
  void object(const Members& members) const {
    out.begin_object();
    members();
    out.end_object();
  }
};

}  // namespace

std::string config_json(const ModelConfig& config) {
  std::string out;
  JsonWriter json(out, JsonLayout::compact);
  json.begin_object();
  visit_model(config, Writer{json});
  json.end_object();
  return out;
}

std::string config_json(const PreprocessConfig& config) {
  std::string out;
  JsonWriter json(out, JsonLayout::compact);
  json.begin_object().member("source", config.source);
  visit_preprocess(config, Writer{json});
  json.end_object();
  return out;
}

}  // namespace vit::internal
