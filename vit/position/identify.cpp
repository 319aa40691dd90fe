#include "vit/position/identify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/rope.h"
#include "vit/position/rope_measure.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr std::size_t kMaxFrames = 64;

/// A published convention in one of the layouts in which its channels occur.
struct Published {
  const RopeConvention* convention = nullptr;
  ChannelOrder channels = ChannelOrder::neighbors;
};

/// Conventions as stored, and those whose channels are permuted while loading in that order too.
std::vector<Published> published() {
  std::vector<Published> out;
  for (const RopeConvention& convention : rope_conventions()) {
    out.push_back({&convention, convention.channels});
    if (convention.channels == ChannelOrder::alternating)
      out.push_back({&convention, ChannelOrder::neighbors});
    if (convention.channels == ChannelOrder::halves_by_axis)
      out.push_back({&convention, ChannelOrder::halves});
  }
  return out;
}

/// Leading tokens whose factors are all 1.
std::size_t leading_unrotated(const RopeReading& reading) {
  for (std::size_t token = 0; token < reading.num_tokens; ++token) {
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
  const std::size_t unrotated = leading_unrotated(reading);
  if (unrotated == reading.num_tokens) return out;
  std::vector<std::size_t> prefixes{unrotated, 1};  // 1: a class token that is rotated by angles of its own
  if (unrotated > 0) prefixes = {unrotated - 1, unrotated};
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

Comparison compare(const RopeReading& reading, const Placement& placement, const Published& published,
                   bool is_sample) {
  RopeConvention c = *published.convention;
  c.channels = published.channels;
  return internal::compare(reading, placement, coordinates(c, placement.grid, placement.num_frames),
                           frequency_vectors(c, reading.head_dim), c.class_angles, is_sample);
}

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
        Comparison found = compare(reading, placement, each, true);
        if (found.agrees) found = compare(reading, placement, each, false);
        const Match match{&reading, placement, each, found.error};
        if (found.agrees) out.push_back(match);
        if (found.error < nearest.error) nearest = match;
      }
      if (!out.empty()) return out;
    }
  }
  return out;
}

/// Agreement of vectors with a convention that is no rotation, so has no factors that could be measured.
std::optional<Match> match_vectors(const RotatedVectors& vectors, const IdentifyOptions& options) {
  if (vectors.before == nullptr) return std::nullopt;
  const Shape& shape = vectors.before->values.shape();
  const RopeConvention* const volume = find_rope_convention("vjepa2");
  if (shape.rank() != 4 || shape.last() < 6 || shape.last() % 2 != 0) return std::nullopt;
  RopeReading tokens{.partition = Partition::none,
                     .head_dim = shape.last(),
                     .num_tokens = std::max(shape[1], shape[2]),
                     .num_columns = shape.last(),
                     .factors = {},
                     .precision = vectors.after->precision};
  std::vector<ChannelPair> pairs;
  for (std::size_t j = 0; j < shape.last() / 2; ++j) pairs.push_back({2 * j, 2 * j + 1});
  const std::size_t heads = std::min(shape[1], shape[2]), d = shape.last();
  const bool tokens_first = shape[1] >= shape[2];
  const auto at = [&](std::size_t image, std::size_t token, std::size_t head) {
    const std::size_t row = tokens_first ? token * heads + head : head * tokens.num_tokens + token;
    return (image * tokens.num_tokens * heads + row) * d;
  };
  std::vector<Placement> placements;
  for (const std::size_t prefix :
       options.num_prefix ? std::vector{*options.num_prefix} : std::vector<std::size_t>{0, 1})
    if (prefix < tokens.num_tokens)
      add_placements(placements, prefix, tokens.num_tokens - prefix, true, options);
  for (const Placement& placement : placements) {
    const Tensor<double> angles = rope_angles(coordinates(*volume, placement.grid, placement.num_frames),
                                              frequency_vectors(*volume, d));
    Match match{nullptr, placement, {volume, volume->channels}, 0.0};
    bool agrees = true;
    for (std::size_t row = 0; agrees && row < shape[0] * tokens.num_tokens * heads; ++row) {
      const std::size_t token = row / heads % tokens.num_tokens;
      const std::size_t from = at(row / heads / tokens.num_tokens, token, row % heads);
      Tensor<double> x(Shape{1, 1, 1, d});
      std::copy_n(vectors.before->values.data() + from, d, x.data());
      if (token >= placement.num_prefix) {
        const TensorView<const double> own(angles.view().row(token - placement.num_prefix), Shape{1, d});
        rotate_pairs(x, own, pairs, RopeAngles::per_channel);
      }
      for (std::size_t c = 0; c < d && agrees; ++c) {
        const double* const q = vectors.before->values.data() + from;
        const double length = std::hypot(q[c], q[c ^ 1]);
        const double difference = std::abs(x.data()[c] - vectors.after->values.data()[from + c]);
        const double angle =
            token < placement.num_prefix ? 0.0 : angles.view().row(token - placement.num_prefix)[c];
        tokens.gains.assign(1, 1.0f);
        agrees = difference <= length * tokens.allowed(0, 0, 0, angle)[0];
        if (length > 0.0) match.error = std::max(match.error, difference / length);
      }
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
  RopeIdentity out{.choices = c,
                   .grid = first.placement.grid,
                   .num_frames = first.placement.num_frames,
                   .num_prefix = first.placement.num_prefix,
                   .error = first.error,
                   .nearest = &c};
  const bool pairing = first.reading == nullptr || first.reading->partition != Partition::unknown;
  out.known = {.coordinates = true, .order = true, .pairing = pairing, .frequencies = true, .theta = true};
  out.choices->channels = first.published.channels;
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

ChannelOrder channels_of(Partition partition, bool blocks) {
  if (partition == Partition::quarter) return ChannelOrder::halves_by_axis;
  if (partition == Partition::half) return ChannelOrder::halves;
  return blocks ? ChannelOrder::neighbors : ChannelOrder::alternating;
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
        out.convention = is_half_alternating ? nullptr : named(*out.choices, out.known);
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
      (choices.channels == ChannelOrder::alternating) == (other.channels == ChannelOrder::alternating);
  // Channels of halves in halves become halves while loading, alternating ones neighbors.
  const bool pairing = known.pairing && pairing_of(choices.channels) != pairing_of(other.channels);
  const bool by_axis = choices.channels == ChannelOrder::halves_by_axis &&
                       other.channels != ChannelOrder::halves_by_axis && known.pairing;
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
    const Comparison all = compare(*nearest.reading, nearest.placement, nearest.published, false);
    out.nearest = nearest.published.convention;
    out.error = all.error;
  }
  out.notes.push_back("the angles of no grid grow evenly along rows and columns");
  return out;
}

}  // namespace vit::internal
