// A short name for the weights of a model, the same wherever its files lie: what a file made for one model
// (a classifier, an index) keeps to recognize it.
#pragma once

#include <string>
#include <string_view>

#include "vit/config.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// 16 hexadecimal digits: FNV-1a, 64 bits, over the heads and pooling of `config` and, in the order of their
/// names, over the names, types and shapes of the tensors that `report` lists as used, with 64 of the numbers
/// of each, evenly spaced; a rule of rope scaling that was asked for counts too. Further fields of
/// ModelConfig stay out: files outlive releases that add some.
std::string fingerprint(const ModelConfig& config, const LoadReport& report, const TensorFile& tensors);
/// That of a model of random weights.
std::string fingerprint_of_random(std::string_view architecture, const ModelConfig& config, unsigned seed);

}  // namespace vit::internal
