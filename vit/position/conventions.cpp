#include "vit/position/conventions.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "vit/base/check.h"

namespace vit::position {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

std::vector<RopeConvention> make_conventions() {
  using enum AxisOrder;
  using enum PairLayout;
  constexpr CoordinateRule kScaled = CoordinateRule::scaled_to_reference;
  std::vector<RopeConvention> list(18);
  std::size_t at = 0;
  const auto next = [&](const char* name, std::vector<std::string> families) -> RopeConvention& {
    list[at].name = name;
    list[at].families = std::move(families);
    return list[at++];
  };
  next("rope-vit", {"rope-vit axial"}).theta = 100.0;
  next("sam2", {"SAM 2", "Perception Encoder without a class token"});
  next("perception-encoder", {"Perception Encoder", "Llama 4"}).offset = 1.0;
  {
    RopeConvention& c =
        next("qwen2-vl", {"Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "Qwen3.5", "GLM-4V", "GLM-OCR", "GLM-5.3",
                          "PaddleOCR-VL", "VideoLLaMA 3", "DeepSeek ViT", "ERNIE-4.5-VL", "EXAONE-4.5"});
    c.order = y_then_x;
    c.channels = halves;
    RopeConvention& learned = next("mlcd", {"MLCD", "RICE"});
    learned.order = y_then_x;
    learned.channels = halves;
    learned.class_angles = true;
  }
  // Mistral's own code has a table per pair, transformers' one per channel: the former comes first.
  for (const bool own : {true, false}) {
    RopeConvention& c = own ? next("mistral", {"Pixtral, Mistral 3 in Mistral's own layout"})
                            : next("pixtral", {"Pixtral", "Mistral 3"});
    c.order = y_then_x;
    c.channels = own ? neighbors : halves;
    c.axis_frequencies = AxisFrequencies::alternating;
  }
  next("moonvit", {"MoonViT", "Kimi-VL"}).channels = alternating;
  for (const bool gemma : {false, true}) {
    RopeConvention& c = gemma ? next("gemma4", {"Gemma 4"}) : next("croco", {"CroCo v2", "DUSt3R", "MASt3R"});
    c.order = gemma ? x_then_y : y_then_x;
    c.channels = halves_by_axis;
    c.theta = 100.0;
  }
  {
    RopeConvention& c = next("dinov3", {"DINOv3", "Sapiens2"});
    c.coordinates = CoordinateRule::centered;
    c.order = y_then_x;
    c.channels = halves;
    c.theta = 100.0;
    c.factor = kTwoPi;
  }
  {
    RopeConvention& c = next("eva02", {"EVA-02", "timm SBB"});
    c.coordinates = kScaled;
    c.reference = {16, 16};
    c.order = y_then_x;
    RopeConvention& sam3 = next("sam3", {"SAM 3"});
    sam3.coordinates = kScaled;
    sam3.reference = {24, 24};
    next("sam3-windows", {"SAM 3 in blocks with windows"}).window = 24;
    RopeConvention& pe = next("perception-encoder-timm", {"Perception Encoder in timm"});
    pe.coordinates = kScaled;
    pe.offset = 1.0;
    pe.reference = {24, 24};
    pe.is_reference_native = true;
  }
  {
    RopeConvention& c = next("vjepa2", {"V-JEPA 2"});
    c.kind = RopeKind::volume;
    c.order = y_then_x;
    next("rope-vit-mixed", {"rope-vit mixed"}).kind = RopeKind::mixed;
  }
  list.resize(at);
  return list;
}

/// A name in lower case without what people write in different ways.
std::string simplified(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, name.find('('))) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.') out += c;
  }
  return out;
}

RopeFrequencies axis_frequencies(const RopeConvention& c, std::size_t count) {
  switch (c.rule) {
    case FrequencyRule::theta: return RopeFrequencies::from_theta(count, c.theta).scaled(c.factor);
    case FrequencyRule::periods: return RopeFrequencies::from_period_range(count, c.periods).scaled(c.factor);
    case FrequencyRule::pixel: return RopeFrequencies::pixel_bands(count, c.max_frequency).scaled(c.factor);
  }
  fail("rope_convention", "unknown rule of frequencies ", static_cast<int>(c.rule));
}

FrequencyVectors axial_vectors(const RopeConvention& c, std::size_t head_dim) {
  const std::size_t count = num_axial_frequencies(head_dim);
  const RopeFrequencies first = axis_frequencies(c, count);
  const bool alternate = c.axis_frequencies == AxisFrequencies::alternating;
  const RopeFrequencies second =
      alternate ? first.scaled(std::pow(c.theta, -2.0 / static_cast<double>(head_dim))) : first;
  const bool x_first = c.order == AxisOrder::x_then_y;
  FrequencyVectors vectors =
      FrequencyVectors::axial(x_first ? first : second, x_first ? second : first, c.order);
  if (c.channels != PairLayout::alternating) return vectors;
  std::vector<FrequencyVector> alternating;
  for (std::size_t k = 0; k < count; ++k) {
    alternating.push_back(vectors.of(0, 0)[k]);
    alternating.push_back(vectors.of(0, 0)[count + k]);
  }
  return FrequencyVectors(std::move(alternating));
}

/// The numbers from which rope-vit trains: lengths 10^(-4k/d) in two perpendicular directions of each head,
/// which are random there and divide the circle by the golden ratio here.
FrequencyVectors mixed_vectors(std::size_t head_dim) {
  constexpr std::size_t kHeads = 2;
  const std::size_t count = num_axial_frequencies(head_dim);
  const RopeFrequencies lengths = RopeFrequencies::from_theta(count, 10.0);
  std::vector<FrequencyVector> vectors;
  for (std::size_t head = 0; head < kHeads; ++head) {
    const double direction = kTwoPi * static_cast<double>(head + 1) / std::numbers::phi;
    for (std::size_t j = 0; j < 2 * count; ++j) {
      const double angle = direction + (j < count ? 0.0 : std::numbers::pi / 2.0);
      const double length = lengths[j % count];
      vectors.push_back({.x = length * std::cos(angle), .y = length * std::sin(angle)});
    }
  }
  return FrequencyVectors(1, kHeads, std::move(vectors));
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
  if (c.kind == RopeKind::mixed) return "x w_x + y w_y, learned for each layer, head and pair";
  if (c.kind == RopeKind::volume)
    return text("(t, y, x) ", c.theta,
                "^(-2 (i mod e/2)/e) for channel i of e = 2 floor(floor(d/3)/2) an axis");
  std::string index = c.offset == 0.0 ? "i" : text("(i + ", c.offset, ")");
  if (c.window != 0) index = text("(i mod ", c.window, ")");
  switch (c.coordinates) {
    case CoordinateRule::index: break;
    case CoordinateRule::scaled_to_reference:
      index += c.is_reference_native ? std::string(" / G * G_native") : text(" / G * ", c.reference.rows);
      break;
    case CoordinateRule::centered: index = text("(2 (i + ", 0.5 + c.offset, ") / G - 1)"); break;
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
  }
  if (c.axis_frequencies == AxisFrequencies::alternating)
    out += text(" for rows, ", c.theta, "^(-(4k + 2)/d) for columns");
  if (c.class_angles) out += "; the class token by learned angles";
  return out;
}

std::string_view to_string(CoordinateRule rule) {
  switch (rule) {
    case CoordinateRule::index: return "index";
    case CoordinateRule::scaled_to_reference: return "scaled";
    case CoordinateRule::centered: return "centered";
  }
  return "";
}

std::string_view to_string(AxisOrder order) {
  return order == AxisOrder::x_then_y ? "xy" : "yx";
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
  }
  return "";
}

RopePairing pairing_of(PairLayout channels) {
  const bool apart = channels == PairLayout::halves || channels == PairLayout::halves_by_axis;
  return apart ? RopePairing::halves : RopePairing::neighbors;
}

std::vector<ChannelPair> channel_pairs(PairLayout channels, std::size_t head_dim) {
  const std::size_t pairs = 2 * num_axial_frequencies(head_dim), quarter = pairs / 2;
  std::vector<ChannelPair> out(pairs);
  for (std::size_t j = 0; j < pairs; ++j) {
    switch (channels) {
      case PairLayout::neighbors:
      case PairLayout::alternating: out[j] = {2 * j, 2 * j + 1}; break;
      case PairLayout::halves: out[j] = {j, j + pairs}; break;
      case PairLayout::halves_by_axis: {
        const std::size_t start = j < quarter ? 0 : pairs, k = j % quarter;
        out[j] = {start + k, start + k + quarter};
        break;
      }
    }
  }
  return out;
}

GridCoords coordinates(const RopeConvention& convention, GridSize grid, std::size_t num_frames) {
  const CoordinateOptions options{
      .rule = convention.coordinates, .offset = convention.offset, .reference = convention.reference};
  VIT_CHECK(num_frames == 1 || convention.kind == RopeKind::volume, "rope_convention", num_frames,
            " frames for positions of rows and columns");
  if (convention.kind == RopeKind::volume) return clip_coords(num_frames, grid, options);
  return convention.window != 0 ? window_coords(grid, convention.window, options)
                                : grid_coords(grid, options);
}

FrequencyVectors frequency_vectors(const RopeConvention& convention, std::size_t head_dim) {
  switch (convention.kind) {
    case RopeKind::none: break;
    case RopeKind::axial: return axial_vectors(convention, head_dim);
    case RopeKind::mixed: return mixed_vectors(head_dim);
    case RopeKind::volume:
      return FrequencyVectors::volume(
          RopeFrequencies::from_theta(num_volume_frequencies(head_dim), convention.theta)
              .scaled(convention.factor),
          head_dim);
  }
  fail("rope_convention", "no frequencies for kind ", static_cast<int>(convention.kind));
}

RopeAngles angles_per(const RopeConvention& convention) {
  return convention.kind == RopeKind::volume ? RopeAngles::per_channel : RopeAngles::per_pair;
}

void rotate_pairs(TensorView<double> x, TensorView<const double> angles, std::span<const ChannelPair> pairs,
                  RopeAngles per, std::size_t num_prefix) {
  const std::size_t heads = angles.rank() == 3 ? angles.dim(0) : 1;
  const std::size_t patches = angles.rank() < 2 ? 0 : angles.dim(angles.rank() - 2);
  const std::size_t count = per == RopeAngles::per_channel ? 2 * pairs.size() : pairs.size();
  VIT_CHECK(x.rank() == 4 && x.num_columns() >= 2 * pairs.size() && x.dim(1) == num_prefix + patches &&
                angles.num_columns() == count && (heads == 1 || heads == x.dim(2)),
            "rotate_pairs", "vectors ", x.shape().to_string(), " and ", num_prefix,
            " prefix tokens do not fit angles ", angles.shape().to_string());
  for (std::size_t row = 0; row < x.num_rows(); ++row) {
    const std::size_t token = row / x.dim(2) % x.dim(1), head = heads == 1 ? 0 : row % x.dim(2);
    if (token < num_prefix) continue;
    const double* const angle = angles.row(head * patches + token - num_prefix);
    for (std::size_t j = 0; j < pairs.size(); ++j) {
      double& at_p = x.row(row)[pairs[j].p];
      double& at_q = x.row(row)[pairs[j].q];
      const double of_p = per == RopeAngles::per_channel ? angle[pairs[j].p] : angle[j];
      const double of_q = per == RopeAngles::per_channel ? angle[pairs[j].q] : angle[j];
      const double p = at_p, q = at_q;
      at_p = p * std::cos(of_p) - q * std::sin(of_p);
      at_q = q * std::cos(of_q) + p * std::sin(of_q);
    }
  }
}

}  // namespace vit::position
