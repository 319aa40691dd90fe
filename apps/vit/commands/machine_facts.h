// Properties of this program and of the machine: version, processor, kernels, and the contract of
// reproducible results.
#pragma once

#include <string>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/options/options.h"

namespace vit::app {

/// In the order in which they are printed. Measuring the floating-point peak takes about 0.1 s.
JsonValue machine_json(const CommonOptions& options, bool measure_peak);
std::string machine_text(const JsonValue& machine);

/// The list of kernels, machine_json()["kernels"].
std::string kernels_text(const JsonValue& kernels);

/// The contract of the chosen kernels and precision, of machine_json(); `title` is a column of its own.
std::string bits_text(const JsonValue& machine, const std::string& title);

}  // namespace vit::app
