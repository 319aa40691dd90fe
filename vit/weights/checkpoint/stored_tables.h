// Rotary tables that a file stores and no model reads: cosines, sines and frequencies among the ignored
// tensors. They show a configuration that loads and computes other positions.
#pragma once

#include <string>
#include <vector>

#include "vit/config.h"
#include "vit/config/load_report.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// The start of the notes of a load report that these sentences become.
inline constexpr const char* kContradiction = "the file contradicts the configuration: ";

/// One sentence for each table or list of frequencies of the trained grid that contradicts the configuration.
/// Pairs of tensors that are ignored, with "cos" and "sin" in their names, are tables, lists with "freq" or
/// "period" frequencies. A layout file whose reason to ignore one starts with "not used" leaves it out.
std::vector<std::string> contradicting_rope_tables(const TensorFile& tensors, const ModelConfig& config,
                                                   const LoadReport& report);

}  // namespace vit::internal
