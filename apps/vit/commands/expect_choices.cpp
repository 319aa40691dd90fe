// The choices of a layout file that its tensors do not determine.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/expect.h"

namespace vit::app {
namespace {

/// The member of nested objects, null if one is absent.
JsonValue value_at(const JsonValue& layout, std::initializer_list<const char*> keys) {
  JsonValue value = layout;
  for (const char* const key : keys) {
    if (!value.is_object() || !value.contains(key)) return nullptr;
    JsonValue inner = std::as_const(value)[key];
    value = std::move(inner);
  }
  return value;
}

class Changes {
 public:
  explicit Changes(const JsonValue& layout) : layout_(layout) {}

  /// The other words and numbers of a value of `config`.
  void config(const char* name, const std::vector<JsonValue>& values) {
    const JsonValue own = value_at(layout_, {"config", name});
    for (const JsonValue& value : values) {
      if (value == own) continue;
      add(name, value, [name, value](JsonValue& layout) { layout["config"][name] = value; });
    }
  }
  void position(const char* name, const std::vector<JsonValue>& values) {
    const JsonValue own = value_at(layout_, {"config", "position", name});
    for (const JsonValue& value : values) {
      if (value == own || (own.is_number() && value.is_number() && own.get<double>() == value.get<double>()))
        continue;
      add(name, value, [name, value](JsonValue& layout) { layout["config"]["position"][name] = value; });
    }
  }
  void add(std::string choice, JsonValue value, std::function<void(JsonValue&)> apply) {
    list_.push_back({std::move(choice), std::move(value), std::move(apply)});
  }
  std::vector<LayoutChange> take() { return std::move(list_); }
  const JsonValue& layout() const { return layout_; }

 private:
  const JsonValue& layout_;
  std::vector<LayoutChange> list_;
};

void add_rotation(Changes& changes) {
  const JsonValue position = value_at(changes.layout(), {"config", "position"});
  if (!position.is_object() || value_at(position, {"rope"}) == JsonValue("none")) return;
  changes.position("pairing", {"neighbors", "halves"});
  if (value_at(position, {"rope"}) != JsonValue("axial")) return;
  changes.position("axis_order", {"x_then_y", "y_then_x"});
  std::vector<JsonValue> thetas;
  for (const double unit : {10.0, 100.0, 1000.0, 1e4, 1e5, 1e6})
    for (const double digit : {1.0, 2.0, 3.0, 5.0}) thetas.emplace_back(digit * unit);
  changes.position("theta", thetas);
  changes.position("angle_scale", {1.0, 2.0 * std::numbers::pi, std::numbers::pi});
  changes.position("coordinate_offset", {0.0, 1.0, 0.5, -0.5, -1.0});
  changes.position("coordinates", {"index", "centered"});
  const auto add = [&](JsonValue members) {
    changes.add("coordinates", members,
                [members](JsonValue& layout) { layout["config"]["position"].update(members); });
  };
  for (const std::size_t edge : {16u, 14u, 24u, 32u, 7u, 8u, 12u, 18u, 20u, 27u, 28u, 37u, 48u, 64u}) {
    add({{"coordinates", "scaled_to_reference"},
         {"reference_grid", JsonValue({{"rows", edge}, {"columns", edge}})}});
  }
  // one convention: centered coordinates count turns in DINOv3
  add({{"coordinates", "centered"}, {"angle_scale", 2.0 * std::numbers::pi}});
  add({{"coordinates", "index"}, {"angle_scale", 1.0}});
  changes.position("frequencies", {"shared", "alternating"});
}

/// The three sources of q, k and v in the order of a permutation of the file's rows; nothing if they cannot
/// be permuted.
std::optional<JsonValue> permuted(const JsonValue& sources, const std::array<int, 3>& order) {
  if (!sources.is_string() && !sources.is_object()) {
    if (sources.size() != 3) return std::nullopt;
    JsonValue out = JsonValue::array();
    for (const int i : order) out.push_back(sources[static_cast<std::size_t>(i)]);
    return out;
  }
  JsonValue piece = JsonValue::object();
  if (sources.is_string()) {
    piece["source"] = sources;
  } else {
    piece = sources;
  }
  if (piece.contains("rows") || piece.contains("head_rows")) return std::nullopt;
  JsonValue out = JsonValue::array();
  for (const int i : order) {
    piece["rows"] = JsonValue::array({i, 3});
    out.push_back(piece);
  }
  return out;
}

/// One source of which q, k and v were taken as thirds; other sources as they are.
JsonValue joined(const JsonValue& sources) {
  if (sources.is_string() || sources.is_object() || sources.is_null() || sources.size() != 3) return sources;
  JsonValue out = sources[0];
  for (std::size_t i = 0; i < 3; ++i) {
    const JsonValue piece = sources[i];
    if (!piece.is_object() || !piece.contains("rows") ||
        value_at(piece, {"source"}) != value_at(out, {"source"}))
      return sources;
  }
  out.erase("rows");
  return out;
}

constexpr const char* kEndings[] = {"", ".weight", ".bias"};

void add_qkv_orders(Changes& changes) {
  constexpr std::array<std::array<int, 3>, 5> kOrders{
      {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  constexpr const char* kNames[] = {"q", "k", "v"};
  for (const std::array<int, 3>& order : kOrders) {
    std::string shown;
    for (const int i : order) shown += (shown.empty() ? "" : ", ") + std::string(kNames[i]);
    changes.add("qkv", shown, [order](JsonValue& layout) {
      for (const char* const ending : kEndings) {
        const std::string name = std::string("qkv") + ending;
        const JsonValue own = value_at(layout, {"tensors", name.c_str()});
        if (own.is_null()) continue;
        if (const std::optional<JsonValue> other = permuted(own, order)) layout["tensors"][name] = *other;
      }
    });
  }
  for (const bool by_head : {true, false}) {
    changes.add("qkv", by_head ? "by head" : "not by head", [by_head](JsonValue& layout) {
      for (const char* const ending : kEndings) {
        const std::string name = std::string("qkv") + ending;
        JsonValue own = value_at(layout, {"tensors", name.c_str()});
        if (by_head) own = joined(own);
        if (own.is_string()) {
          JsonValue object = JsonValue::object();
          object["source"] = own;
          own = std::move(object);
        }
        if (!own.is_object() || own.contains("rows")) continue;
        own.erase("head_rows");
        if (by_head) own["head_rows"] = true;
        layout["tensors"][name] = own;
      }
    });
  }
}

/// Exchanges the sources of two tensors, with weights and biases.
void add_exchange(Changes& changes, const char* choice, const std::string& first, const std::string& second) {
  const auto exchange = [first, second](JsonValue& layout) {
    for (const char* const ending : kEndings) {
      const std::string one = first + ending, other = second + ending;
      const JsonValue of_one = value_at(layout, {"tensors", one.c_str()});
      const JsonValue of_other = value_at(layout, {"tensors", other.c_str()});
      if (of_one.is_null() || of_other.is_null()) continue;
      layout["tensors"][one] = of_other;
      layout["tensors"][other] = of_one;
    }
  };
  JsonValue changed = changes.layout();
  exchange(changed);
  if (changed != changes.layout()) changes.add(choice, "exchanged with " + second, exchange);
}

}  // namespace

std::vector<LayoutChange> layout_changes(const JsonValue& layout) {
  Changes changes(layout);
  add_rotation(changes);
  changes.config("activation", {"gelu", "gelu_tanh", "quick_gelu", "silu", "relu"});
  changes.config("pooling", {"class_token", "patch_mean", "first_token", "cls+mean", "prefix_mean", "none"});
  add_qkv_orders(changes);
  add_exchange(changes, "gate", "gate", "fc1");
  add_exchange(changes, "registers", "register_tokens", "class_token");
  changes.config("norm_eps", {1e-6, 1e-5, 1e-12, 1e-8});
  changes.config("norm_kind", {"layer", "rms"});
  changes.config("parallel", {true, false});
  return changes.take();
}

}  // namespace vit::app
