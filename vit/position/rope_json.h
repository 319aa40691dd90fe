// Conventions and what was identified as JSON, for `vit rope` and the C interface.
#pragma once

#include <string>

#include "vit/position/identify.h"

namespace vit::internal {

/// {"name", "families", "coordinates", "offset", "order", "pairing", "frequencies", "formula"}.
std::string to_json(const position::RopeConvention& convention);

/// {"coordinates", "offset", "order", "pairing", "frequencies", "reference"}; what is not known is null.
std::string choices_json(const position::RopeConvention& choices, const KnownChoices& known);

/// {"convention", "families", the choices, "prefix", "grid", "error", "nearest", "differs", "notes"}, with
/// "suffix" and "frames" if there are some. "differs" compares with `against`; if that is null and no name
/// was found, with the nearest convention.
std::string to_json(const RopeIdentity& identity, const position::RopeConvention* against);

}  // namespace vit::internal
