#include "vit/position/identify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/rope_measure.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr std::size_t kMaxFrames = 64;
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
      for (std::size_t edge = 7; c.is_reference_native && edge <= 64; ++edge)
        out.push_back({&c, c.channels, {edge, edge}});
    }
    return out;
  }();
  return kList;
}

/// The first token from `start` on that has a factor other than 1.
std::size_t first_rotated(const RopeReading& reading, std::size_t start) {
  for (std::size_t token = start; token < reading.num_tokens; ++token) {
    for (std::size_t head = 0; head < reading.num_heads; ++head) {
      for (std::size_t column = 0; column < reading.num_columns; ++column) {
        const std::complex<double> factor = reading.at(head, token, column);
        const auto [of_cos, of_sin] = reading.allowed(head, token, column, 0.0);
        if (std::abs(factor.real() - 1.0) > of_cos || std::abs(factor.imag()) > of_sin) return token;
      }
    }
  }
  return reading.num_tokens;
}

/// Grids of so many patches, square ones first.
std::vector<GridSize> grids_of(std::size_t patches) {
  std::vector<GridSize> out;
  for (std::size_t rows = 1; rows * rows <= patches; ++rows) {
    if (patches % rows != 0) continue;
    out.push_back({rows, patches / rows});
    if (rows * rows != patches) out.push_back({patches / rows, rows});
  }
  std::ranges::stable_sort(out, {}, [](GridSize grid) {
    return std::abs(std::log(static_cast<double>(grid.rows) / static_cast<double>(grid.columns)));
  });
  return out;
}

void add_placements(std::vector<Placement>& out, std::size_t prefix, std::size_t patches, bool has_time,
                    const IdentifyOptions& options) {
  if (patches == 0) return;
  if (options.grid) {
    const std::size_t in_grid = options.grid->rows * options.grid->columns;
    if (patches % in_grid == 0 && (has_time || patches == in_grid))
      out.push_back({*options.grid, patches / in_grid, prefix});
    return;
  }
  for (std::size_t frames = 1; frames <= (has_time ? std::min(kMaxFrames, patches) : 1); ++frames) {
    if (patches % frames != 0) continue;
    for (const GridSize grid : grids_of(patches / frames)) out.push_back({grid, frames, prefix});
  }
}

/// Where the patches may be: after the given prefix, or after leading tokens that are not rotated. The first
/// patch is not rotated either where coordinates count from 0, so it may be one of them.
std::vector<Placement> placements_of(const RopeReading& reading, const IdentifyOptions& options) {
  std::vector<Placement> out;
  const std::size_t unrotated = first_rotated(reading, 0);
  if (unrotated == reading.num_tokens) return out;
  std::vector<std::size_t> prefixes{0};
  if (unrotated > 0) {
    prefixes = {unrotated - 1, unrotated};
  } else {  // or the first one is a class token that is rotated by angles of its own
    const std::size_t second = first_rotated(reading, 1);
    if (second > 1) prefixes.push_back(second - 1);
    prefixes.push_back(second);
  }
  if (options.num_prefix) prefixes = {*options.num_prefix};
  for (const std::size_t prefix : prefixes) {
    if (prefix < reading.num_tokens)
      add_placements(out, prefix, reading.num_tokens - prefix, reading.partition == Partition::none, options);
  }
  return out;
}

bool may_follow(const RopeReading& reading, const Published& published) {
  const RopeConvention& c = *published.convention;
  if (c.kind == RopeKind::volume) return reading.partition == Partition::none && reading.head_dim / 3 / 2 > 0;
  if (c.kind == RopeKind::mixed || reading.partition == Partition::none || reading.head_dim % 4 != 0)
    return false;
  return reading.partition == Partition::unknown || reading.partition == partition_of(published.channels);
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
    for (const Placement& placement : placements_of(reading, options)) {
      for (const Published& each : published()) {
        if (!may_follow(reading, each)) continue;
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
    if (prefix < rows.tokens) add_placements(placements, prefix, rows.tokens - prefix, true, options);
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

bool same_frequencies(const RopeConvention& a, const RopeConvention& b) {
  return a.kind == b.kind && a.rule == b.rule && a.theta == b.theta && a.factor == b.factor &&
         a.axis_frequencies == b.axis_frequencies;
}

/// The identity of matches, of which all agree with all factors.
RopeIdentity identity_of(std::span<const Match> matches) {
  const Match& first = matches.front();
  const RopeConvention& c = *first.published.convention;
  RopeIdentity out{.choices = first.published.choices(),
                   .grid = first.placement.grid,
                   .num_frames = first.placement.num_frames,
                   .num_prefix = first.placement.num_prefix,
                   .error = first.error,
                   .nearest = &c};
  const bool pairing = first.reading == nullptr || first.reading->partition != Partition::unknown;
  out.known = {.coordinates = true, .order = true, .pairing = pairing, .frequencies = true, .theta = true};
  for (const Match& match : matches) {
    const RopeConvention* const convention = match.published.convention;
    if (std::ranges::find(out.agreeing, convention) == out.agreeing.end()) out.agreeing.push_back(convention);
  }
  choose_convention(out, nullptr);
  return out;
}

/// The convention whose choices are those measured.
const RopeConvention* named(const RopeConvention& choices, const KnownChoices& known) {
  if (!known.coordinates || !known.frequencies || (choices.kind == RopeKind::axial && !known.theta))
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

/// What can be measured where no published convention agrees.
std::optional<RopeIdentity> measure(std::span<const RopeReading> readings, const IdentifyOptions& options) {
  for (const bool mixed : {false, true}) {
    for (const RopeReading& reading : readings) {
      for (const Placement& placement : placements_of(reading, options)) {
        if (placement.num_frames != 1 || placement.num_tokens() != reading.num_tokens) continue;
        const auto found = mixed ? measure_mixed(reading, placement) : measure_axial(reading, placement);
        if (!found) continue;
        RopeIdentity out{.choices = found->choices,
                         .grid = placement.grid,
                         .num_prefix = placement.num_prefix,
                         .error = found->error};
        const bool is_half_alternating = reading.partition != Partition::unknown &&
                                         reading.partition != Partition::adjacent && !found->has_axis_blocks;
        out.choices->channels = channels_of(reading.partition, found->has_axis_blocks);
        out.known = {.coordinates = found->are_coordinates_known,
                     .order = !mixed,
                     .pairing = reading.partition != Partition::unknown,
                     .frequencies = true,
                     .theta = found->is_theta_known};
        if (is_half_alternating) out.notes.push_back("the axes of consecutive pairs alternate");
        out.convention =
            is_half_alternating || (mixed && !found->is_learned) ? nullptr : named(*out.choices, out.known);
        if (out.convention != nullptr && !mixed && !compare(reading, placement, *out.choices, false).agrees)
          out.convention = nullptr;
        if (out.convention != nullptr) out.agreeing = {out.convention};
        return out;
      }
    }
  }
  return std::nullopt;
}

const RopeConvention* nearest_of(const RopeConvention& choices, const KnownChoices& known) {
  const RopeConvention* best = nullptr;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const RopeConvention& convention : rope_conventions()) {
    const std::size_t count = differing_choices(choices, known, convention).size();
    if (count >= fewest) continue;
    fewest = count;
    best = &convention;
  }
  return best;
}

}  // namespace

void choose_convention(RopeIdentity& identity, const RopeConvention* preferred) {
  const std::vector<const RopeConvention*>& list = identity.agreeing;
  identity.convention = nullptr;
  if (list.empty()) return;
  const bool is_one_of_them = std::ranges::find(list, preferred) != list.end();
  if (is_one_of_them || std::ranges::all_of(list, [&](const RopeConvention* each) {
        return same_frequencies(*each, *list.front());
      })) {
    identity.convention = is_one_of_them ? preferred : list.front();
    std::string others;
    for (const RopeConvention* const each : list)
      if (each != identity.convention) others += (others.empty() ? "" : ", ") + each->name;
    if (!others.empty()) identity.notes.push_back("nothing given distinguishes it from " + others);
    return;
  }
  identity.known.theta = false;
  std::string names;
  for (const RopeConvention* const each : list) names += (names.empty() ? "" : ", ") + each->name;
  identity.notes.push_back("this grid and head width do not distinguish " + names);
}

std::vector<std::string> families_of(const RopeIdentity& identity) {
  std::vector<std::string> out;
  for (const RopeConvention* const convention : identity.agreeing)
    out.insert(out.end(), convention->families.begin(), convention->families.end());
  return out;
}

std::vector<std::string> differing_choices(const RopeConvention& choices, const KnownChoices& known,
                                           const RopeConvention& other) {
  std::vector<std::string> out;
  const auto differ = [&](const char* name, bool differs) {
    if (differs) out.emplace_back(name);
  };
  if (known.coordinates) {
    const bool scaled = choices.coordinates == CoordinateRule::scaled_to_reference;
    differ("coordinates", choices.coordinates != other.coordinates || choices.window != other.window);
    differ("offset", choices.offset != other.offset);
    differ("reference", scaled && other.coordinates == choices.coordinates && !other.is_reference_native &&
                            choices.reference != other.reference);
  }
  const bool is_axial = choices.kind == RopeKind::axial && other.kind == RopeKind::axial;
  differ("order", known.order && is_axial && choices.order != other.order);
  const bool same_blocks =
      (choices.channels == PairLayout::alternating) == (other.channels == PairLayout::alternating);
  // Channels of halves in halves become halves while loading, alternating ones neighbors.
  const bool pairing = known.pairing && pairing_of(choices.channels) != pairing_of(other.channels);
  const bool by_axis = choices.channels == PairLayout::halves_by_axis &&
                       other.channels != PairLayout::halves_by_axis && known.pairing;
  differ("pairing", pairing || by_axis || (is_axial && !same_blocks));
  if (!known.frequencies) return out;
  const std::size_t before = out.size();
  differ("rule", choices.kind != other.kind || choices.rule != other.rule ||
                     choices.axis_frequencies != other.axis_frequencies);
  differ("theta", is_axial && known.theta && choices.theta != other.theta);
  differ("factor", is_axial && choices.factor != other.factor);
  if (out.size() > before) out.insert(out.begin() + static_cast<std::ptrdiff_t>(before), "frequencies");
  return out;
}

RopeIdentity identify_rope(std::span<const RopeReading> readings, const RotatedVectors& vectors,
                           const IdentifyOptions& options) {
  for (const RopeReading& reading : readings) {
    VIT_CHECK(reading.num_tokens <= kMaxTokens, (Where{"identify_rope", ErrorKind::format}),
              reading.num_tokens, " tokens, at most ", kMaxTokens, " are read");
  }
  Match nearest;
  const std::vector<Match> matches = published_matches(readings, options, nearest);
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
