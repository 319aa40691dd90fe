#include "vit/position/conventions.h"

#include <numbers>
#include <utility>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/position/convention_tables.h"

namespace vit::position {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

/// The list while it is made. A reference to an entry is valid until the next one.
class ConventionList {
 public:
  RopeConvention& add(const char* name, std::vector<std::string> families) {
    RopeConvention& c = entries_.emplace_back();
    c.name = name;
    c.families = std::move(families);
    return c;
  }
  RopeConvention& add_scaled(const char* name, std::vector<std::string> families, std::size_t edge) {
    RopeConvention& c = add(name, std::move(families));
    c.coordinates = PatchCoordinates::scaled_to_reference;
    c.reference = {edge, edge};
    return c;
  }
  RopeConvention& add_rows_first(const char* name, std::vector<std::string> families, PairLayout channels) {
    RopeConvention& c = add(name, std::move(families));
    c.order = AxisOrder::y_then_x;
    c.channels = channels;
    return c;
  }
  std::vector<RopeConvention> take() { return std::move(entries_); }

 private:
  std::vector<RopeConvention> entries_;
};

void add_towers(ConventionList& list) {
  using enum PairLayout;
  list.add_rows_first("qwen2-vl",
                      {"Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "Qwen3.5", "GLM-4V", "GLM-OCR", "GLM-5.3",
                       "PaddleOCR-VL", "VideoLLaMA 3", "DeepSeek ViT", "ERNIE-4.5-VL", "EXAONE-4.5"},
                      halves);
  list.add_rows_first("mlcd", {"MLCD", "RICE"}, halves).class_angles = true;
  // Mistral's own code has a table per pair, transformers' one per channel: the former comes first.
  list.add_rows_first("mistral", {"Pixtral, Mistral 3 in Mistral's own layout"}, neighbors).axis_frequencies =
      AxisFrequencies::alternating;
  list.add_rows_first("pixtral", {"Pixtral", "Mistral 3"}, halves).axis_frequencies =
      AxisFrequencies::alternating;
  list.add("moonvit", {"MoonViT", "Kimi-VL", "Kimi K2.5"}).channels = alternating;
  list.add_rows_first("croco", {"CroCo v2", "DUSt3R", "MASt3R"}, halves_by_axis).theta = 100.0;
  RopeConvention& gemma = list.add("gemma4", {"Gemma 4"});
  gemma.channels = halves_by_axis;
  gemma.theta = 100.0;
}

void add_volumes(ConventionList& list) {
  const auto add = [&](const char* name, const char* family, PairLayout channels) -> RopeConvention& {
    RopeConvention& c = list.add_rows_first(name, {family}, channels);
    c.kind = ConventionKind::volume;
    return c;
  };
  add("vjepa2", "V-JEPA 2", PairLayout::neighbors).angles = RopeAngles::per_channel;
  RopeConvention& rotating = add("vjepa2.1", "V-JEPA 2.1", PairLayout::neighbors);
  rotating.coordinates = PatchCoordinates::corners;
  rotating.reference = {16, 16};
  rotating.is_reference_native = true;
  add("minimax-m3", "MiniMax-M3", PairLayout::halves);
  add("timm-mrope", "timm's RotaryEmbeddingMRope", PairLayout::halves).kind = ConventionKind::volume_in_turn;
}

void add_directions(ConventionList& list) {
  RopeConvention& spiral = list.add(
      "spiral", {"Spiral RoPE (by the abstract of the paper, and the README and frequencies of its code)"});
  spiral.kind = ConventionKind::spiral;
  spiral.num_directions = 4;
  for (const bool nd : {false, true}) {
    RopeConvention& c = nd ? list.add("golden-gate-nd", {"golden gate RoPE in vit-pytorch's ViTND"})
                           : list.add("golden-gate", {"golden gate RoPE"});
    c.kind = nd ? ConventionKind::golden_gate_nd : ConventionKind::golden_gate;
    c.coordinates = nd ? PatchCoordinates::index : PatchCoordinates::linspace;
    c.keeps_aspect = !nd;
    c.channels = PairLayout::halves;
    c.rule = FrequencyRule::geometric;
    c.lowest = nd ? 1.0 : 0.2;
    c.highest = nd ? 10000.0 : 20.0;
  }
  RopeConvention& string = list.add("string", {"STRING", "Cayley-STRING"});
  string.kind = ConventionKind::mixed;
  string.basis_block = std::size_t{1} << 20;  // all channels
  RopeConvention& comrope = list.add("comrope", {"ComRoPE", "ComRoPE-LD", "ComRoPE-AP"});
  comrope.kind = ConventionKind::mixed;
  comrope.coordinates = PatchCoordinates::fraction;
  comrope.basis_block = 4;
}

std::vector<RopeConvention> make_conventions() {
  ConventionList list;
  list.add("rope-vit", {"rope-vit axial"}).theta = 100.0;
  list.add("sam2", {"SAM 2", "Perception Encoder without a class token"});
  list.add("perception-encoder", {"Perception Encoder"}).offset = 1.0;
  list.add("llama4", {"Llama 4"}).offset = 1.0;
  add_towers(list);
  RopeConvention& dinov3 = list.add_rows_first("dinov3", {"DINOv3", "Sapiens2"}, PairLayout::halves);
  dinov3.coordinates = PatchCoordinates::centered;
  dinov3.theta = 100.0;
  dinov3.factor = kTwoPi;
  list.add_scaled("eva02", {"EVA-02", "timm SBB"}, 16).order = AxisOrder::y_then_x;
  list.add_scaled("sam3", {"SAM 3"}, 24);
  list.add("sam3-windows", {"SAM 3 in blocks with windows"}).window = 24;
  RopeConvention& in_timm = list.add_scaled("perception-encoder-timm", {"Perception Encoder in timm"}, 24);
  in_timm.offset = 1.0;
  in_timm.is_reference_native = true;
  RopeConvention& bands = list.add_rows_first("rvt", {"RvT"}, PairLayout::neighbors);
  bands.coordinates = PatchCoordinates::linspace;
  bands.rule = FrequencyRule::pixel;
  bands.max_frequency = 10.0;
  add_volumes(list);
  list.add("rope-vit-mixed", {"rope-vit mixed"}).kind = ConventionKind::mixed;
  add_directions(list);
  list.add("rope-1d", {"one-dimensional, complex form"}).kind = ConventionKind::line;
  RopeConvention& half_split = list.add("rope-1d-exp-pi", {"one-dimensional, half-split"});
  half_split.kind = ConventionKind::line;
  half_split.channels = PairLayout::halves;
  half_split.rule = FrequencyRule::exp_pi;
  return list.take();
}

/// A name in lower case without what people write in different ways.
std::string simplified(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, name.find('('))) {
    if (internal::is_alphanumeric(c) || c == '.') out += internal::lower_ascii(c);
  }
  return out;
}

/// Formulas of conventions that are not axial.
std::string formula_of_kind(const RopeConvention& c) {
  const char* const per_axis = "e = 2 floor(floor(d/3)/2) an axis";
  switch (c.kind) {
    case ConventionKind::axial: return "";
    case ConventionKind::mixed:
      if (c.basis_block == 0) return "x w_x + y w_y, learned for each layer, head and pair";
      return text("x w_x + y w_y, learned, after a learned change of basis of q and k",
                  c.coordinates == PatchCoordinates::fraction ? "; x, y = (i + 0.5) / G" : "");
    case ConventionKind::volume:
      if (c.angles == RopeAngles::per_channel)
        return text("(t, y, x) ", c.theta, "^(-2 (i mod e/2)/e) for channel i of ", per_axis);
      return text(c.coordinates == PatchCoordinates::corners ? "t, then y and x as i (G_native - 1)/(G - 1), "
                                                             : "t, then y and x, ",
                  "times ", c.theta, "^(-2k/e) for pair k of ", per_axis);
    case ConventionKind::volume_in_turn: return text("t, y, x in turn, ", c.theta, "^(-2j/d)");
    case ConventionKind::spiral:
      return text("(x cos(k pi/K) + y sin(k pi/K)) ", c.theta, "^(-4m/d), K = ", c.num_directions,
                  " directions; perpendicular ones share frequencies m");
    case ConventionKind::golden_gate:
      return text("w_f (x cos(n g) + y sin(n g)), g = pi (sqrt 5 - 1)/2, n = h d/2 + f, w = ", c.lowest,
                  " to ", c.highest, " geometric; x, y in [-1, 1] times sqrt(W/H), sqrt(H/W)");
    case ConventionKind::golden_gate_nd:
      return text(
          "w_f (u . p), u = erfinv(2 frac(n g^-a) - 1) of unit length, a = 1 for y and 2 for x, g^3 = g + 1, "
          "n = h d/2 + f + 1, w = ",
          c.lowest, " to ", c.highest, " geometric");
    case ConventionKind::line:
      return c.rule == FrequencyRule::exp_pi ? "t exp(-pi 2k/d)" : text("t ", c.theta, "^(-2k/d)");
  }
  return "";
}

}  // namespace

std::span<const RopeConvention> rope_conventions() {
  static const std::vector<RopeConvention> kList = make_conventions();
  return kList;
}

const RopeConvention* find_rope_convention(std::string_view name) {
  const std::string wanted = simplified(name);
  if (wanted.empty()) return nullptr;
  for (const RopeConvention& convention : rope_conventions())
    if (simplified(convention.name) == wanted) return &convention;
  for (const RopeConvention& convention : rope_conventions()) {
    for (const std::string& family : convention.families)
      if (simplified(family) == wanted) return &convention;
  }
  return nullptr;
}

std::string formula(const RopeConvention& c) {
  if (c.kind != ConventionKind::axial) return formula_of_kind(c);
  std::string index = c.offset == 0.0 ? "i" : text("(i + ", c.offset, ")");
  if (c.window != 0) index = text("(i mod ", c.window, ")");
  switch (c.coordinates) {
    case PatchCoordinates::index: break;
    case PatchCoordinates::scaled_to_reference:
      index += c.is_reference_native ? std::string(" / G * G_native") : text(" / G * ", c.reference.rows);
      break;
    case PatchCoordinates::centered: index = text("(2 (i + ", 0.5 + c.offset, ") / G - 1)"); break;
    case PatchCoordinates::corners: index = text("i (", c.reference.rows, " - 1)/(G - 1)"); break;
    case PatchCoordinates::linspace: index = "(2 i / (G - 1) - 1)"; break;
    case PatchCoordinates::fraction: index = "((i + 0.5) / G)"; break;
  }
  std::string out = index + " ";
  if (c.factor == kTwoPi) {
    out += "2 pi ";
  } else if (c.factor != 1.0) {
    out += text(c.factor, " ");
  }
  switch (c.rule) {
    case FrequencyRule::theta: out += text(c.theta, "^(-4k/d)"); break;
    case FrequencyRule::periods:
      out += text("/ (", c.periods.shortest, " (", c.periods.longest / c.periods.shortest, ")^(k/(F - 1)))");
      break;
    case FrequencyRule::pixel: out += text("pi linspace(1, ", c.max_frequency / 2.0, ", F)_k"); break;
    case FrequencyRule::exp_pi: out += "exp(-pi k/F)"; break;
    case FrequencyRule::geometric: out += text(c.lowest, " (", c.highest / c.lowest, ")^(k/(F - 1))"); break;
  }
  if (c.axis_frequencies == AxisFrequencies::alternating)
    out += text(" for rows, ", c.theta, "^(-(4k + 2)/d) for columns");
  if (c.class_angles) out += "; the class token by learned angles";
  return out;
}

std::string_view to_string(PatchCoordinates rule) {
  switch (rule) {
    case PatchCoordinates::index: return "index";
    case PatchCoordinates::scaled_to_reference: return "scaled";
    case PatchCoordinates::centered: return "centered";
    case PatchCoordinates::corners: return "corners";
    case PatchCoordinates::linspace: return "linspace";
    case PatchCoordinates::fraction: return "fraction";
  }
  return "";
}

std::string_view to_string(AxisOrder order) {
  return order == AxisOrder::x_then_y ? "xy" : "yx";
}

std::string_view order_of(const RopeConvention& convention) {
  if (has_time(convention)) return "tyx";
  return convention.kind == ConventionKind::line ? "x" : to_string(convention.order);
}

std::string_view to_string(PairLayout channels) {
  switch (channels) {
    case PairLayout::neighbors: return "neighbors";
    case PairLayout::halves: return "halves";
    case PairLayout::alternating: return "alternating";
    case PairLayout::halves_by_axis: return "halves_by_axis";
  }
  return "";
}

std::string_view to_string(FrequencyRule rule) {
  switch (rule) {
    case FrequencyRule::theta: return "theta";
    case FrequencyRule::periods: return "periods";
    case FrequencyRule::pixel: return "pixel";
    case FrequencyRule::exp_pi: return "exp_pi";
    case FrequencyRule::geometric: return "geometric";
  }
  return "";
}

std::string_view rule_of(const RopeConvention& convention) {
  return convention.kind == ConventionKind::mixed ? "learned" : to_string(convention.rule);
}

RopePairing pairing_of(PairLayout channels) {
  const bool apart = channels == PairLayout::halves || channels == PairLayout::halves_by_axis;
  return apart ? RopePairing::halves : RopePairing::neighbors;
}

}  // namespace vit::position
