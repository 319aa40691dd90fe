// Names of what was identified, and the choices in which two conventions differ.
#include <algorithm>

#include "vit/position/identify.h"

namespace vit::internal {
using namespace position;

namespace {

bool same_frequencies(const RopeConvention& a, const RopeConvention& b) {
  return a.kind == b.kind && a.rule == b.rule && a.theta == b.theta && a.factor == b.factor &&
         a.axis_frequencies == b.axis_frequencies && a.lowest == b.lowest && a.highest == b.highest;
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
    const bool scaled = choices.coordinates == PatchCoordinates::scaled_to_reference;
    differ("coordinates", choices.coordinates != other.coordinates || choices.window != other.window);
    differ("offset", choices.offset != other.offset);
    differ("reference", scaled && other.coordinates == choices.coordinates && !other.is_reference_native &&
                            choices.reference != other.reference);
  }
  const bool is_axial = choices.kind == ConventionKind::axial && other.kind == ConventionKind::axial;
  const bool is_ladder = choices.kind == other.kind && choices.kind != ConventionKind::mixed;
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
  const bool has_theta = choices.rule == FrequencyRule::theta && other.rule == choices.rule;
  differ("theta", is_ladder && has_theta && known.theta && choices.theta != other.theta);
  differ("factor", is_ladder && choices.factor != other.factor);
  if (out.size() > before) out.insert(out.begin() + static_cast<std::ptrdiff_t>(before), "frequencies");
  differ("basis", (choices.basis_block == 0) != (other.basis_block == 0));
  return out;
}

}  // namespace vit::internal
