// vit info --expect on models of five designs, each with every mistake that no tensor shows, and with pairs
// of them: the corrected layout is one that agrees.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "vit/base/check.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope.h"

namespace vit::test {
namespace {

using namespace internal;

enum class QkvStorage { separate, joint, by_head };

/// What a training script may have chosen, none of which changes the shape of a tensor.
struct Design {
  std::string pairing = "neighbors", axis_order = "x_then_y", coordinates = "index";
  double theta = 100.0, offset = 0.0, scale = 1.0;
  std::size_t reference = 0;  // of scaled coordinates
  std::string activation = "gelu", pooling = "class_token";
  std::array<int, 3> qkv{0, 1, 2};  // which third of the file is q, k and v
  QkvStorage storage = QkvStorage::joint;
  bool is_gate_first = true;       // in the file
  bool is_register_first = false;  // which of two tokens is the class token
  bool is_gate_separate = false;
  double norm_eps = 1e-6;
};

constexpr std::size_t kWidth = 32, kHeads = 2, kHidden = 40, kBlocks = 2, kPatch = 4;

std::string qkv_source(const Design& d) {
  constexpr const char* kNames[] = {"wq", "wk", "wv"};
  if (d.storage == QkvStorage::by_head) return R"({"source": "b.{block}.qkv.*", "head_rows": true})";
  std::string out;
  for (const int third : d.qkv) {
    out += out.empty() ? "[" : ", ";
    out += d.storage == QkvStorage::separate
               ? text("\"b.{block}.", kNames[third], ".*\"")
               : text(R"({"source": "b.{block}.qkv.*", "rows": [)", third, ", 3]}");
  }
  return out + "]";
}

std::string mlp_source(const Design& d, bool is_first) {
  if (d.is_gate_separate) return is_first ? R"("b.{block}.one.*")" : R"("b.{block}.two.*")";
  return text(R"({"source": "b.{block}.up.*", "rows": [)", is_first ? 0 : 1, ", 2]}");
}

std::string layout_of(const Design& d) {
  std::string rope = text(R"("rope": "axial", "pairing": ")", d.pairing, R"(", "axis_order": ")",
                          d.axis_order, R"(", "coordinates": ")", d.coordinates, R"(", "theta": )", d.theta);
  if (d.offset != 0.0) rope += text(R"(, "coordinate_offset": )", d.offset);
  if (d.scale != 1.0) rope += text(R"(, "angle_scale": )", d.scale);
  if (d.reference != 0)
    rope += text(R"(, "reference_grid": {"rows": )", d.reference, R"(, "columns": )", d.reference, "}");
  return text(
      R"({"config": {"image_height": 20, "image_width": 12, "num_heads": )", kHeads, R"(, "norm_eps": )",
      d.norm_eps, R"(, "activation": ")", d.activation, R"(", "pooling": ")", d.pooling,
      R"(", "position": {)", rope, R"(}}, "tensors": {"patch": "stem.*", "class_token": ")",
      d.is_register_first ? "token.two" : "token.one", R"(", "register_tokens": ")",
      d.is_register_first ? "token.one" : "token.two",
      R"(", "norm1": "b.{block}.n1.*", "norm2": "b.{block}.n2.*", "proj": "b.{block}.out.*", "qkv": )",
      qkv_source(d), R"(, "gate": )", mlp_source(d, d.is_gate_first), R"(, "fc1": )",
      mlp_source(d, !d.is_gate_first), R"(, "fc2": "b.{block}.down.*", "norm": "n.*", "head": "head.*"}})");
}

/// Random tensors under the names of the layouts.
class Checkpoint {
 public:
  /// The tables of a convention are stored, too, if it is not null.
  explicit Checkpoint(const Design& design, const position::RopeConvention* stored = nullptr) {
    const std::size_t c = kWidth;
    if (stored != nullptr) add_tables(*stored);
    add("stem.weight", {c, 3, kPatch, kPatch}, 0.2);
    add("stem.bias", {c}, 0.5);
    add("token.one", {1, c}, 1.0);
    add("token.two", {1, c}, 1.0);
    for (std::size_t i = 0; i < kBlocks; ++i) {
      const std::string b = text("b.", i, ".");
      for (const char* const norm : {"n1", "n2"}) add_norm(b + norm);
      if (design.storage == QkvStorage::separate) {
        for (const char* const part : {"wq", "wk", "wv"}) add_linear(b + part, c, c, 0.35);
      } else {
        add_linear(b + "qkv", 3 * c, c, 0.35);
      }
      add_linear(b + "out", c, c, 0.3);
      if (design.is_gate_separate) {
        for (const char* const part : {"one", "two"}) add_linear(b + part, kHidden, c, 0.3);
      } else {
        add_linear(b + "up", 2 * kHidden, c, 0.3);
      }
      add_linear(b + "down", c, kHidden, 0.3);
    }
    add_norm("n");
    add_linear("head", 7, design.pooling == "cls+mean" ? 2 * c : c, 0.3);
  }

  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> tensors;
    for (const Entry& entry : entries_) {
      tensors.push_back({.name = entry.name,
                         .dtype = Dtype::f32,
                         .shape = entry.shape,
                         .bytes = std::as_bytes(std::span(entry.values))});
    }
    write_safetensors(path, tensors);
  }

 private:
  struct Entry {
    std::string name;
    std::vector<std::size_t> shape;
    std::vector<float> values;
  };

  void add(const std::string& name, std::vector<std::size_t> shape, double spread, float center = 0.0f) {
    std::size_t count = 1;
    for (const std::size_t size : shape) count *= size;
    std::vector<float> values(count);
    for (float& value : values) value = center + static_cast<float>(spread) * random_.normal();
    entries_.push_back({name, std::move(shape), std::move(values)});
  }
  void add_linear(const std::string& name, std::size_t rows, std::size_t columns, double spread) {
    add(name + ".weight", {rows, columns}, spread);
    add(name + ".bias", {rows}, 0.2);
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {kWidth}, 0.2, 1.0f);
    add(name + ".bias", {kWidth}, 0.2);
  }

  void add_tables(const position::RopeConvention& convention) {
    const std::size_t d = kWidth / kHeads;
    const Tensor<double> angles =
        rope_angles(coordinates(convention, {5, 3}), frequency_vectors(convention, d));
    std::vector<float> cos, sin;
    for (std::size_t row = 0; row < 15; ++row) {
      for (std::size_t i = 0; i < d; ++i) {  // as transformers: both halves of the channels
        const double angle = angles.data()[row * d / 2 + i % (d / 2)];
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    entries_.push_back({"rope.cos", {15, d}, cos});
    entries_.push_back({"rope.sin", {15, d}, sin});
    std::vector<float> frequencies;
    for (std::size_t k = 0; k < d / 4; ++k)
      frequencies.push_back(static_cast<float>(
          std::pow(convention.theta, -4.0 * static_cast<double>(k) / static_cast<double>(d))));
    entries_.push_back({"rope.inv_freq", {d / 4}, frequencies});
  }

  Rng random_{77};
  std::vector<Entry> entries_;
};

/// A design, its checkpoint, and what its own script gave.
class DesignedModel {
 public:
  explicit DesignedModel(const Design& design) {
    Checkpoint(design).write(folder_ / "model.safetensors");
    Rng random(78);
    write_npy(folder_ / "pixels.npy", random.tensor<float>(Shape{2, 3, 20, 12}));
    write_text(folder_ / "layout.json", layout_of(design));
    const RunResult run =
        run_vit({"embed", folder_ / "pixels.npy", "--model", folder_ / "model.safetensors", "--layout",
                 folder_ / "layout.json", "--features", "logits", "--output", folder_ / "logits.npy"});
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  }

  RunResult expect(const std::string& layout, const std::vector<std::string>& more = {}) const {
    write_text(folder_ / "layout.json", layout);
    std::vector<std::string> arguments{"info",
                                       "--model",
                                       folder_ / "model.safetensors",
                                       "--layout",
                                       folder_ / "layout.json",
                                       "--expect",
                                       folder_ / "pixels.npy",
                                       folder_ / "logits.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  }
  /// Whether a wrong layout is noticed, and the corrected one agrees.
  void check_correction(const Design& wrong) const {
    const RunResult result = expect(layout_of(wrong), {"--json"});
    CHECK_MESSAGE(result.exit_code == 1, result.out << result.err);
    const Json found = parse_json(result.out, "stdout");
    CHECK(found.at("error").as_double() > 1e-3);
    REQUIRE_MESSAGE(found.at("corrected").as_bool(), result.out);
    CHECK(found.at("try")[0].at("error").as_double() < 1e-4);
    const std::size_t start = result.out.find("\"layout\":") + 9;
    const std::size_t end = result.out.rfind(",\"corrected\"");
    CHECK(expect(result.out.substr(start, end - start)).exit_code == 0);
  }

 private:
  TestFolder folder_;
};

std::vector<std::pair<std::string, Design>> designs() {
  std::vector<std::pair<std::string, Design>> out(5);
  out[0] = {"rope-vit's rotation, separate q, k and v", {.storage = QkvStorage::separate}};
  out[1] = {"DINOv3's rotation",
            {.pairing = "halves",
             .axis_order = "y_then_x",
             .coordinates = "centered",
             .scale = 6.283185307179586,
             .activation = "silu",
             .pooling = "cls+mean",
             .is_gate_first = false,
             .norm_eps = 1e-5}};
  out[2] = {"EVA-02's rotation, separate gate",
            {.axis_order = "y_then_x",
             .coordinates = "scaled_to_reference",
             .theta = 10000.0,
             .reference = 16,
             .activation = "silu",
             .storage = QkvStorage::separate,
             .is_gate_separate = true}};
  out[3] = {"Qwen's rotation, q last",
            {.pairing = "halves",
             .axis_order = "y_then_x",
             .theta = 10000.0,
             .activation = "quick_gelu",
             .pooling = "cls+mean",
             .qkv = {2, 0, 1},
             .is_register_first = true}};
  out[4] = {"Perception Encoder's rotation, q, k and v by head",
            {.theta = 10000.0, .offset = 1.0, .activation = "gelu_tanh", .storage = QkvStorage::by_head}};
  return out;
}

struct Mistake {
  const char* name;
  std::function<void(Design&)> make;
};

std::string other(const std::string& value, const char* one, const char* two) {
  return value == one ? two : one;
}

/// Eleven mistakes; those of the order of q, k and v are one for files that have them by head.
std::vector<Mistake> mistakes_of(const Design& design) {
  std::vector<Mistake> out{
      {"pairing", [](Design& d) { d.pairing = other(d.pairing, "halves", "neighbors"); }},
      {"order of axes", [](Design& d) { d.axis_order = other(d.axis_order, "x_then_y", "y_then_x"); }},
      {"coordinates",
       [](Design& d) {
         d.coordinates = other(d.coordinates, "index", "centered");
         d.reference = 0;
       }},
      {"theta", [](Design& d) { d.theta = d.theta == 100.0 ? 10000.0 : 100.0; }},
      {"offset", [](Design& d) { d.offset = d.offset == 0.0 ? 1.0 : 0.0; }},
      {"gate", [](Design& d) { d.is_gate_first = !d.is_gate_first; }},
      {"activation", [](Design& d) { d.activation = other(d.activation, "relu", "quick_gelu"); }},
      {"pooling", [](Design& d) { d.pooling = d.pooling == "class_token" ? "patch_mean" : d.pooling; }},
      {"registers", [](Design& d) { d.is_register_first = !d.is_register_first; }}};
  if (design.storage == QkvStorage::by_head) {
    out.push_back({"not by head", [](Design& d) { d.storage = QkvStorage::joint; }});
  } else {
    out.push_back({"q and k", [](Design& d) { std::swap(d.qkv[0], d.qkv[1]); }});
    out.push_back({"k and v", [](Design& d) { std::swap(d.qkv[1], d.qkv[2]); }});
  }
  return out;
}

}  // namespace

TEST_CASE("expect: eleven mistakes in five designs are found and corrected") {
  std::size_t num_checked = 0;
  for (const auto& each : designs()) {
    const std::string& name = each.first;  // clang 14 captures no names of a structured binding
    const Design& design = each.second;
    const DesignedModel model(design);
    CHECK(model.expect(layout_of(design)).exit_code == 0);
    for (const Mistake& mistake : mistakes_of(design)) {
      Design wrong = design;
      mistake.make(wrong);
      if (layout_of(wrong) == layout_of(design)) continue;  // concatenated features have another head
      CAPTURE(std::string(mistake.name));
      INFO(name);
      model.check_correction(wrong);
      num_checked += 1;
    }
  }
  CHECK(num_checked >= 52);
}

TEST_CASE("expect: two mistakes at once are found in pairs") {
  for (const auto& each : designs()) {
    const std::string& name = each.first;  // clang 14 captures no names of a structured binding
    const Design& design = each.second;
    INFO(name);
    const DesignedModel model(design);
    const std::vector<Mistake> mistakes = mistakes_of(design);
    for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{0, 6}, {3, 9}, {1, 5}}) {
      Design wrong = design;
      mistakes[first].make(wrong);
      mistakes[second].make(wrong);
      model.check_correction(wrong);
    }
  }
}

TEST_CASE("expect: tables that a file stores are compared with the configuration unasked") {
  const TestFolder folder;
  Design design;
  design.pairing = "halves";
  design.axis_order = "y_then_x";
  design.theta = 10000.0;
  Checkpoint(design, position::find_rope_convention("qwen2-vl")).write(folder / "model.safetensors");
  Rng random(79);
  write_npy(folder / "pixels.npy", random.tensor<float>(Shape{1, 3, 20, 12}));
  const auto embed = [&](const Design& given, const std::string& reason) {
    std::string layout = layout_of(given);
    layout.insert(1, text(R"("ignore": {"rope.*": ")", reason, R"("}, )"));
    write_text(folder / "layout.json", layout);
    const RunResult run =
        run_vit({"embed", folder / "pixels.npy", "--model", folder / "model.safetensors", "--layout",
                 folder / "layout.json", "--features", "logits", "--output", folder / "logits.npy"});
    CHECK_MESSAGE(run.exit_code == 0, run.err);
    return run.err;
  };
  CHECK(embed(design, "computed").find("contradicts") == std::string::npos);
  Design wrong = design;
  wrong.axis_order = "x_then_y";
  CHECK(contains(embed(wrong, "computed"), "in order; the table has"));
  wrong = design;
  wrong.pairing = "neighbors";
  CHECK(contains(embed(wrong, "computed"), "in pairing; the table has"));
  wrong = design;
  wrong.theta = 100.0;
  const std::string said = embed(wrong, "computed");
  CHECK(contains(said, R"("rope.cos" and "rope.sin" of the file)"));
  CHECK(contains(said, R"("rope.inv_freq" of the file has other frequencies than theta 100)"));
  CHECK(std::ranges::count(said, '\n') == 2);
  CHECK(embed(wrong, "not used: of an older run").find("contradicts") == std::string::npos);
  const RunResult info = run_vit(
      {"info", "--model", folder / "model.safetensors", "--layout", folder / "layout.json", "--json"});
  CHECK(info.exit_code == 0);
}

TEST_CASE("expect: --set is refused next to a layout file, whose choices would be hidden by it") {
  const DesignedModel model{Design{}};
  const RunResult result = model.expect(layout_of({}), {"--set", "position.theta=10000"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "--set"));
  CHECK(result.num_errors() == 1);
}

}  // namespace vit::test
