#include "vit/position/rope_evidence.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kEvidence{"identify_rope", ErrorKind::format};
constexpr std::size_t kMaxNumbers = std::size_t{1} << 26;

/// Half a unit in the last place of 1, and half the smallest distance of two numbers.
struct Rounding {
  double relative = 0.0, absolute = 0.0;
};

Rounding rounding_of(Dtype precision) {
  switch (precision) {
    case Dtype::bf16: return {0x1p-8, 0x1p-130};
    case Dtype::f16: return {0x1p-11, 0x1p-25};
    case Dtype::f32: return {0x1p-24, 0x1p-140};
    default: return {0x1p-53, 0.0};
  }
}

Dtype coarser(Dtype a, Dtype b) {
  return rounding_of(a).relative > rounding_of(b).relative ? a : b;
}

void check_finite(std::span<const double> values, const char* what) {
  VIT_CHECK(values.size() <= kMaxNumbers, kEvidence, values.size(), " numbers in ", what, ", at most ",
            kMaxNumbers, " are read");
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  VIT_CHECK(bad == values.end(), kEvidence, what, "[", bad - values.begin(), "] is ", *bad,
            ", expected a finite number; damaged file?");
}

/// (heads or batch, T, columns) of a table of rank 2 to 4.
struct TableShape {
  std::size_t copies = 1, tokens = 0, columns = 0;
};

TableShape table_shape(const Shape& shape, const char* what) {
  VIT_CHECK(shape.rank() >= 2 && shape.rank() <= 4 && shape.num_elements() > 0, kEvidence, what,
            " has shape ", shape.to_string(),
            ", expected (T, d / 2), (T, d), or these with heads or a batch in front");
  TableShape out{.tokens = shape[shape.rank() - 2], .columns = shape.last()};
  for (std::size_t i = 0; i + 2 < shape.rank(); ++i) out.copies *= shape[i];
  // (T, 1, columns) and (1, T, 1, columns): heads broadcast after the tokens
  if (out.tokens == 1 && shape.rank() >= 3) std::swap(out.tokens, out.copies);
  return out;
}

/// A reading whose heads all have the factors of the first has one head.
void join_heads(RopeReading& reading) {
  const std::size_t size = reading.num_tokens * reading.num_columns;
  for (std::size_t head = 1; head < reading.num_heads; ++head) {
    for (std::size_t i = 0; i < size; ++i)
      if (reading.factors[head * size + i] != reading.factors[i]) return;
  }
  reading.num_heads = 1;
  reading.factors.resize(size);
  if (!reading.gains.empty()) reading.gains.resize(size);
}

/// Orders in which channels of a head may be pairs, and how many of the channels from the first on are:
/// halves of time, row and column leave those that three axes do not share.
struct PairedChannels {
  PairLayout order = PairLayout::neighbors;
  std::size_t count = 0;
};

std::vector<PairedChannels> paired_channels(std::size_t head_dim) {
  std::vector<PairedChannels> out;
  if (head_dim % 2 != 0) return out;
  out.push_back({PairLayout::neighbors, head_dim});
  out.push_back({PairLayout::halves, head_dim});
  if (head_dim % 4 == 0) out.push_back({PairLayout::halves_by_axis, head_dim});
  if (head_dim > 6 && head_dim % 6 != 0) out.push_back({PairLayout::halves, head_dim / 6 * 6});
  return out;
}

/// The columns of one channel of each pair, if both channels of all pairs have the same factors and the other
/// channels none.
std::optional<RopeReading> joined_pairs(const RopeReading& channels, PairedChannels paired) {
  const PairLayout order = paired.order;
  const std::vector<ChannelPair> pairs = channel_pairs(order, paired.count);
  RopeReading out = channels;
  out.partition = partition_of(order);
  out.num_columns = pairs.size();
  out.factors.clear();
  out.gains.clear();
  for (std::size_t row = 0; row < channels.num_heads * channels.num_tokens; ++row) {
    const std::complex<double>* const from = channels.factors.data() + row * channels.num_columns;
    for (const ChannelPair& pair : pairs) {
      if (from[pair.p] != from[pair.q]) return std::nullopt;
      out.factors.push_back(from[pair.p]);
      if (!channels.gains.empty()) out.gains.push_back(channels.gains[row * channels.num_columns + pair.p]);
    }
    for (std::size_t rest = paired.count; rest < channels.num_columns; ++rest)
      if (from[rest] != 1.0) return std::nullopt;
  }
  return out;
}

/// A table of factors, read as channels where these form pairs, and as pairs.
std::vector<RopeReading> readings_of(RopeReading columns) {
  join_heads(columns);
  std::vector<RopeReading> out;
  const std::size_t count = columns.num_columns;
  columns.head_dim = count;
  for (const PairedChannels& paired : paired_channels(count)) {
    if (std::optional<RopeReading> pairs = joined_pairs(columns, paired)) out.push_back(*std::move(pairs));
  }
  if (out.empty()) {
    out.push_back(columns);
    out.back().head_dim = 2 * count;
    if (count >= 6 && count % 2 == 0) {
      out.push_back(std::move(columns));
      out.back().head_dim = count;
      out.back().partition = Partition::none;
    }
  }
  return out;
}

}  // namespace

Dtype precision_of(std::span<const double> values) {
  bool bf16 = true, f16 = true, f32 = true, plain = true;
  for (const double value : values) {
    const auto single = static_cast<float>(value);
    if (static_cast<double>(single) != value) f32 = bf16 = f16 = false;
    if (bf16 && bf16_to_float(float_to_bf16(single)) != single) bf16 = false;
    if (f16 && f16_to_float(float_to_f16(single)) != single) f16 = false;
    plain = plain && (value == 0.0 || std::abs(value) == 1.0);
  }
  if (plain || !f32) return Dtype::f64;
  return bf16 ? Dtype::bf16 : f16 ? Dtype::f16 : Dtype::f32;
}

Partition partition_of(PairLayout channels) {
  switch (channels) {
    case PairLayout::neighbors:
    case PairLayout::alternating: return Partition::adjacent;
    case PairLayout::halves: return Partition::half;
    case PairLayout::halves_by_axis: return Partition::quarter;
  }
  fail(kEvidence, "unknown order of channels ", static_cast<int>(channels));
}

std::array<double, 2> RopeReading::allowed(std::size_t head, std::size_t token, std::size_t column,
                                           double angle) const {
  const auto [relative, absolute] = rounding_of(precision);
  // Libraries compute angles in float32, in three products or so, whatever they round to afterwards.
  const double arithmetic = (precision == Dtype::f64 ? 0x1p-44 : 0x1p-22) * (0.25 + std::abs(angle));
  if (!gains.empty()) {
    const double gain = gains[(head * num_tokens + token) * num_columns + column];
    return {4.0 * relative * gain + arithmetic, 4.0 * relative * gain + arithmetic};
  }
  const double of_cos = 1.01 * relative * std::abs(std::cos(angle)) + absolute + arithmetic;
  const double of_sin = 1.01 * relative * std::abs(std::sin(angle)) + absolute + arithmetic;
  return {of_cos, of_sin};
}

std::vector<RopeReading> read_factors(const RopeNumbers& cos, const RopeNumbers& sin) {
  VIT_CHECK(cos.values.shape() == sin.values.shape(), kEvidence, "cos has shape ",
            cos.values.shape().to_string(), ", sin ", sin.values.shape().to_string());
  const TableShape shape = table_shape(cos.values.shape(), "cos");
  check_finite(cos.values.flat(), "cos");
  check_finite(sin.values.flat(), "sin");
  RopeReading table{.num_heads = shape.copies,
                    .num_tokens = shape.tokens,
                    .num_columns = shape.columns,
                    .factors = {},
                    .precision = coarser(cos.precision, sin.precision)};
  const double slack = 4.0 * rounding_of(table.precision).relative + 0x1p-20;
  table.factors.reserve(cos.values.num_elements());
  for (std::size_t i = 0; i < cos.values.num_elements(); ++i) {
    const std::complex<double> factor(cos.values.data()[i], sin.values.data()[i]);
    VIT_CHECK(std::abs(std::norm(factor) - 1.0) <= slack, kEvidence.with(ErrorKind::mismatch), "cos[", i,
              "] = ", factor.real(), " and sin[", i, "] = ", factor.imag(),
              " belong to no angle: their squares do not sum to 1");
    table.factors.push_back(factor);
  }
  return readings_of(std::move(table));
}

std::vector<RopeReading> read_angles(const RopeNumbers& angles) {
  const TableShape shape = table_shape(angles.values.shape(), "angles");
  check_finite(angles.values.flat(), "angles");
  RopeReading table{.num_heads = shape.copies,
                    .num_tokens = shape.tokens,
                    .num_columns = shape.columns,
                    .factors = {},
                    .precision = angles.precision};
  for (const double angle : angles.values.flat()) {
    table.factors.push_back(std::polar(1.0, angle));
    table.gains.push_back(static_cast<float>(0.2525 * std::abs(angle)));  // allowed() takes four times this
  }
  return readings_of(std::move(table));
}

namespace {

/// Vectors (B, T, H, d) in either order of tokens and heads.
struct VectorAxes {
  std::size_t batch = 0, tokens = 0, heads = 0, head_dim = 0;
  std::size_t token_stride = 0, head_stride = 0;

  std::size_t at(std::size_t image, std::size_t token, std::size_t head) const {
    return image * tokens * heads * head_dim + token * token_stride + head * head_stride;
  }
};

/// The factor of one pair from the longest of its vectors among the images of a batch, if all keep their
/// length.
std::optional<std::complex<double>> factor_of(const VectorAxes& axes, std::span<const double> before,
                                              std::span<const double> after, std::size_t token,
                                              std::size_t head, ChannelPair pair, double slack) {
  std::complex<double> best(1.0, 0.0);
  double longest = 0.0;
  for (std::size_t image = 0; image < axes.batch; ++image) {
    const std::size_t at = axes.at(image, token, head);
    const std::complex<double> from(before[at + pair.p], before[at + pair.q]);
    const std::complex<double> to(after[at + pair.p], after[at + pair.q]);
    const double length = std::abs(from);
    if (std::abs(std::abs(to) - length) > slack * length) return std::nullopt;
    if (length <= longest) continue;
    longest = length;
    best = to / from;
  }
  return best / std::abs(best);
}

/// Whether the channels from `first` on are those before the rotation.
bool are_equal_from(std::size_t first, std::size_t head_dim, std::span<const double> before,
                    std::span<const double> after) {
  for (std::size_t i = 0; i < before.size(); ++i)
    if (i % head_dim >= first && before[i] != after[i]) return false;
  return true;
}

std::optional<RopeReading> rotated_by(const VectorAxes& axes, std::span<const double> before,
                                      std::span<const double> after, PairedChannels paired, Dtype precision) {
  const PairLayout order = paired.order;
  if (!are_equal_from(paired.count, axes.head_dim, before, after)) return std::nullopt;
  const double slack = 8.0 * rounding_of(precision).relative + (precision == Dtype::f64 ? 0x1p-44 : 0x1p-21);
  RopeReading out{.partition = partition_of(order),
                  .head_dim = axes.head_dim,
                  .num_heads = axes.heads,
                  .num_tokens = axes.tokens,
                  .num_columns = paired.count / 2,
                  .factors = {},
                  .precision = precision};
  const std::vector<ChannelPair> pairs = channel_pairs(order, paired.count);
  for (std::size_t head = 0; head < axes.heads; ++head) {
    for (std::size_t token = 0; token < axes.tokens; ++token) {
      for (const ChannelPair& pair : pairs) {
        const auto factor = factor_of(axes, before, after, token, head, pair, slack);
        if (!factor) return std::nullopt;
        out.factors.push_back(*factor);
      }
    }
  }
  out.gains.assign(out.factors.size(), 1.0f);
  const std::size_t size = out.num_tokens * out.num_columns;
  for (std::size_t i = size; i < out.factors.size(); ++i)
    if (std::abs(out.factors[i] - out.factors[i % size]) > 2.0 * slack) return out;
  out.num_heads = 1;  // all heads are rotated alike
  out.factors.resize(size);
  out.gains.resize(size);
  return out;
}

}  // namespace

std::vector<RopeReading> read_rotated(const RopeNumbers& before, const RopeNumbers& after) {
  const Shape& shape = before.values.shape();
  VIT_CHECK(shape == after.values.shape() && shape.rank() == 4 && shape.num_elements() > 0, kEvidence,
            "vectors have shapes ", shape.to_string(), " before and ", after.values.shape().to_string(),
            " after the rotation, expected (B, T, H, d) or (B, H, T, d) twice");
  check_finite(before.values.flat(), "vectors before the rotation");
  check_finite(after.values.flat(), "vectors after the rotation");
  const std::size_t d = shape.last();
  std::vector<RopeReading> out;
  for (const bool tokens_first : {shape[1] >= shape[2], shape[1] < shape[2]}) {
    const VectorAxes axes{.batch = shape[0],
                          .tokens = tokens_first ? shape[1] : shape[2],
                          .heads = tokens_first ? shape[2] : shape[1],
                          .head_dim = d,
                          .token_stride = (tokens_first ? shape[2] : 1) * d,
                          .head_stride = (tokens_first ? 1 : shape[2]) * d};
    for (const PairedChannels& paired : paired_channels(d)) {
      auto reading = rotated_by(axes, before.values.flat(), after.values.flat(), paired,
                                coarser(before.precision, after.precision));
      if (reading) out.push_back(*std::move(reading));
    }
  }
  return out;
}

}  // namespace vit::internal
