#include "vit/position/identify.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/rope_measure.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 20;

/// A published convention in one of the layouts in which its channels occur.
struct Published {
  const RopeConvention* convention = nullptr;
  PairLayout channels = PairLayout::neighbors;
  GridSize reference{};

  RopeConvention choices() const {
    RopeConvention c = *convention;
    c.channels = channels;
    c.reference = reference;
    return c;
  }
};

/// Conventions as stored, those whose channels are permuted while loading in that order too, and those that
/// are scaled to the native grid of a model with those of images of up to 64 patches a side.
const std::vector<Published>& published() {
  static const std::vector<Published> kList = [] {
    std::vector<Published> out;
    for (const RopeConvention& c : rope_conventions()) {
      out.push_back({&c, c.channels, c.reference});
      if (c.channels == PairLayout::alternating) out.push_back({&c, PairLayout::neighbors, c.reference});
      if (c.channels == PairLayout::halves_by_axis) out.push_back({&c, PairLayout::halves, c.reference});
      if (c.coordinates == PatchCoordinates::corners) {  // patches of 14
        out.push_back({&c, c.channels, {18, 18}});
        continue;
      }
      for (std::size_t edge = 7; c.is_reference_native && edge <= 64; ++edge)
        out.push_back({&c, c.channels, {edge, edge}});
    }
    return out;
  }();
  return kList;
}

bool may_follow(const RopeReading& reading, const Published& published) {
  const RopeConvention& c = *published.convention;
  if (c.kind == ConventionKind::mixed || !head_sizes(c).contain(reading.head_dim)) return false;
  if (c.angles == RopeAngles::per_channel || reading.partition == Partition::none)
    return c.angles == RopeAngles::per_channel && reading.partition == Partition::none;
  if (reading.num_columns != channel_pairs(c, reading.head_dim).size()) return false;
  return reading.partition == Partition::unknown || reading.partition == partition_of(published.channels);
}

/// Whether a convention has coordinates of such a grid.
bool may_lie_on(const RopeConvention& c, const Placement& placement) {
  if (placement.num_frames > 1 && !has_time(c)) return false;
  if (c.kind == ConventionKind::line && placement.grid.rows > 1) return false;
  const bool has_ends =
      c.coordinates == PatchCoordinates::corners || c.coordinates == PatchCoordinates::linspace;
  return !has_ends || std::min(placement.grid.rows, placement.grid.columns) > 1;
}

/// One agreement of a reading with a convention.
struct Match {
  const RopeReading* reading = nullptr;
  Placement placement{};
  Published published{};
  double error = 0.0;
};

/// All conventions that agree in the first placement where one does. `nearest` is that with the smallest
/// error if none does.
std::vector<Match> published_matches(std::span<const RopeReading> readings, const IdentifyOptions& options,
                                     Match& nearest) {
  nearest.error = std::numeric_limits<double>::infinity();
  std::vector<Match> out;
  for (const RopeReading& reading : readings) {
    std::vector<Published> possible;
    std::ranges::copy_if(published(), std::back_inserter(possible),
                         [&](const Published& each) { return may_follow(reading, each); });
    for (const Placement& placement : placements_of(reading, options)) {
      for (const Published& each : possible) {
        if (!may_lie_on(*each.convention, placement)) continue;
        Comparison found = compare(reading, placement, each.choices(), true);
        if (found.agrees) found = compare(reading, placement, each.choices(), false);
        const Match match{&reading, placement, each, found.error};
        if (found.agrees) out.push_back(match);
        if (found.error < nearest.error) nearest = match;
      }
      if (!out.empty()) return out;
    }
  }
  return out;
}

/// Vectors (B, T, H, d) or (B, H, T, d), whichever of T and H is larger being T.
struct VectorRows {
  const RotatedVectors& vectors;
  std::size_t images = 0, tokens = 0, heads = 0, head_dim = 0;
  bool tokens_first = true;

  explicit VectorRows(const RotatedVectors& rotated) : vectors(rotated) {
    const Shape& shape = rotated.before->values.shape();
    images = shape[0];
    tokens = std::max(shape[1], shape[2]);
    heads = std::min(shape[1], shape[2]);
    head_dim = shape.last();
    tokens_first = shape[1] >= shape[2];
  }
  std::size_t at(std::size_t image, std::size_t token, std::size_t head) const {
    const std::size_t row = tokens_first ? token * heads + head : head * tokens + token;
    return (image * tokens * heads + row) * head_dim;
  }
};

/// Whether the vectors of one token are rotated by an angle per channel, within the rounding of `reading`.
bool is_rotated(const VectorRows& rows, std::size_t token, const double* angles, const RopeReading& reading,
                double& error) {
  for (std::size_t i = 0; i < rows.images * rows.heads; ++i) {
    const std::size_t at = rows.at(i / rows.heads, token, i % rows.heads);
    const double* const q = rows.vectors.before->values.data() + at;
    const double* const rotated = rows.vectors.after->values.data() + at;
    for (std::size_t c = 0; c < rows.head_dim; ++c) {
      const double angle = angles == nullptr ? 0.0 : angles[c], sign = c % 2 == 0 ? -1.0 : 1.0;
      const double expected = q[c] * std::cos(angle) + sign * q[c ^ 1] * std::sin(angle);
      const double length = std::hypot(q[c], q[c ^ 1]), difference = std::abs(rotated[c] - expected);
      if (difference > length * reading.allowed(0, 0, 0, angle)[0]) return false;
      if (length > 0.0) error = std::max(error, difference / length);
    }
  }
  return true;
}

/// Agreement of vectors with a convention that is no rotation, so has no factors that could be measured.
std::optional<Match> match_vectors(const RotatedVectors& vectors, const IdentifyOptions& options) {
  if (vectors.before == nullptr || vectors.before->values.shape().last() < 6 ||
      vectors.before->values.shape().last() % 2 != 0)
    return std::nullopt;
  const RopeConvention* const volume = find_rope_convention("vjepa2");
  const VectorRows rows(vectors);
  const RopeReading rounding{
      .factors = {1.0}, .precision = vectors.after->precision, .gains = std::vector<float>(1, 1.0f)};
  std::vector<Placement> placements;
  const std::vector<std::size_t> prefixes =
      options.num_prefix ? std::vector{*options.num_prefix} : std::vector<std::size_t>{0, 1, 2, 3, 4, 5};
  for (const std::size_t prefix : prefixes)
    if (prefix < rows.tokens)
      std::ranges::copy(placements_after(prefix, rows.tokens - prefix, true, options),
                        std::back_inserter(placements));
  for (const Placement& placement : placements) {
    const GridSize grid = placement.grid;
    const FrequencyVectors frequencies = frequency_vectors(*volume, rows.head_dim);
    Match match{nullptr, placement, {volume, volume->channels, {}}, 0.0};
    std::vector<double> angles(rows.head_dim);
    bool agrees = true;
    for (std::size_t token = rows.tokens; agrees && token-- > 0;) {  // the last ones have the largest angles
      const bool is_prefix = token < placement.num_prefix;
      const std::size_t patch = is_prefix ? 0 : token - placement.num_prefix;
      const auto x = static_cast<double>(patch % grid.columns);
      const auto y = static_cast<double>(patch / grid.columns % grid.rows);
      const auto t = static_cast<double>(patch / grid.columns / grid.rows);
      for (std::size_t c = 0; c < rows.head_dim; ++c) {
        const FrequencyVector& w = frequencies.of(0, 0)[c];
        angles[c] = x * w.x + y * w.y + t * w.t;
      }
      agrees = is_rotated(rows, token, is_prefix ? nullptr : angles.data(), rounding, match.error);
    }
    if (agrees) return match;
  }
  return std::nullopt;
}

/// The identity of matches, of which all agree with all factors.
RopeIdentity identity_of(std::span<const Match> matches) {
  const Match& first = matches.front();
  const RopeConvention& c = *first.published.convention;
  RopeIdentity out{.choices = first.published.choices(),
                   .grid = first.placement.grid,
                   .num_frames = first.placement.num_frames,
                   .num_prefix = first.placement.num_prefix,
                   .num_suffix = first.placement.num_suffix,
                   .merge = first.placement.merge,
                   .error = first.error,
                   .nearest = &c};
  const bool pairing = first.reading == nullptr || first.reading->partition != Partition::unknown;
  out.known = {.coordinates = true,
               .order = c.kind == ConventionKind::axial || has_time(c) || c.kind == ConventionKind::line,
               .pairing = pairing,
               .frequencies = true,
               .theta = true};
  for (const Match& match : matches) {
    const RopeConvention* const convention = match.published.convention;
    if (std::ranges::find(out.agreeing, convention) == out.agreeing.end()) out.agreeing.push_back(convention);
  }
  choose_convention(out, nullptr);
  return out;
}

/// The convention whose choices are those measured.
const RopeConvention* named(const RopeConvention& choices, const KnownChoices& known) {
  if (!known.coordinates || !known.frequencies || (choices.kind != ConventionKind::mixed && !known.theta))
    return nullptr;
  for (const RopeConvention& convention : rope_conventions())
    if (differing_choices(choices, known, convention).empty()) return &convention;
  return nullptr;
}

PairLayout channels_of(Partition partition, bool blocks) {
  if (partition == Partition::quarter) return PairLayout::halves_by_axis;
  if (partition == Partition::half) return PairLayout::halves;
  return blocks ? PairLayout::neighbors : PairLayout::alternating;
}

enum class MeasuredForm { axial, line, mixed };

/// The identity of choices that were measured.
RopeIdentity identity_of(const MeasuredChoices& found, MeasuredForm form, const RopeReading& reading,
                         const Placement& placement) {
  RopeIdentity out{.choices = found.choices,
                   .grid = placement.grid,
                   .num_prefix = placement.num_prefix,
                   .num_suffix = placement.num_suffix,
                   .merge = placement.merge,
                   .error = found.error};
  const bool is_axial = form == MeasuredForm::axial, is_mixed = form == MeasuredForm::mixed;
  const bool is_half_alternating = is_axial && reading.partition != Partition::unknown &&
                                   reading.partition != Partition::adjacent && !found.has_axis_blocks;
  out.choices->channels = channels_of(reading.partition, found.has_axis_blocks);
  out.known = {.coordinates = found.are_coordinates_known,
               .order = !is_mixed,
               .pairing = reading.partition != Partition::unknown,
               .frequencies = true,
               .theta = found.is_theta_known};
  if (is_half_alternating) out.notes.push_back("the axes of consecutive pairs alternate");
  if (is_half_alternating || (is_mixed && !found.is_learned)) return out;
  out.convention = named(*out.choices, out.known);
  if (out.convention != nullptr && !is_mixed && !compare(reading, placement, *out.choices, false).agrees)
    out.convention = nullptr;
  if (out.convention != nullptr) out.agreeing = {out.convention};
  return out;
}

/// What can be measured if no published convention agrees.
std::optional<RopeIdentity> measure(std::span<const RopeReading> readings, const IdentifyOptions& options) {
  for (const MeasuredForm form : {MeasuredForm::axial, MeasuredForm::line, MeasuredForm::mixed}) {
    for (const RopeReading& reading : readings) {
      for (const Placement& placement : placements_of(reading, options)) {
        if (placement.num_frames != 1 || placement.num_tokens() != reading.num_tokens) continue;
        const auto found = form == MeasuredForm::axial ? measure_axial(reading, placement)
                           : form == MeasuredForm::line
                               ? measure_line(reading, placement)
                               : measure_mixed(reading, placement, options.has_basis);
        if (found) return identity_of(*found, form, reading, placement);
      }
    }
  }
  return std::nullopt;
}

/// How far two conventions are from each other: another rule is further than another number of the same rule.
std::size_t distance(const std::vector<std::string>& differs) {
  std::size_t sum = 0;
  for (const std::string& name : differs) {
    const bool is_rule = name == "coordinates" || name == "rule" || name == "basis";
    const bool is_order = name == "order" || name == "pairing";
    if (name != "frequencies") sum += is_rule ? 3 : is_order ? 2 : 1;
  }
  return sum;
}

const RopeConvention* nearest_of(const RopeConvention& choices, const KnownChoices& known) {
  const RopeConvention* best = nullptr;
  std::size_t shortest = std::numeric_limits<std::size_t>::max();
  for (const RopeConvention& convention : rope_conventions()) {
    const std::size_t found = distance(differing_choices(choices, known, convention));
    if (found >= shortest) continue;
    shortest = found;
    best = &convention;
  }
  return best;
}

}  // namespace

RopeIdentity identify_rope(std::span<const RopeReading> readings, const RotatedVectors& vectors,
                           const IdentifyOptions& options) {
  for (const RopeReading& reading : readings) {
    VIT_CHECK(reading.num_tokens <= kMaxTokens, (Where{"identify_rope", ErrorKind::format}),
              reading.num_tokens, " tokens, at most ", kMaxTokens, " are read");
  }
  Match nearest;
  const std::vector<Match> matches =
      options.has_basis ? std::vector<Match>{} : published_matches(readings, options, nearest);
  if (!matches.empty()) return identity_of(matches);
  if (const std::optional<Match> match = match_vectors(vectors, options)) return identity_of({&*match, 1});
  if (std::optional<RopeIdentity> measured = measure(readings, options)) {
    measured->nearest =
        measured->convention ? measured->convention : nearest_of(*measured->choices, measured->known);
    return *std::move(measured);
  }
  RopeIdentity out;
  if (nearest.reading != nullptr) {
    const Comparison all = compare(*nearest.reading, nearest.placement, nearest.published.choices(), false);
    out.nearest = nearest.published.convention;
    out.error = all.error;
  }
  out.notes.push_back("the angles of no grid grow evenly along rows and columns");
  return out;
}

}  // namespace vit::internal
