// A short identifier of the weights of a model, independent of the location of its files: a file for one
// model (a classifier, an index) stores it to recognize the model.
#pragma once

#include <string>
#include <string_view>

#include "vit/config/load_report.h"
#include "vit/io/tensor_file.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// 16 hexadecimal digits: FNV-1a, 64 bits, over the heads and pooling of `config` and, in the order of their
/// names, over the names, types and shapes of the tensors that `report` lists as used, with 64 of the numbers
/// of each, evenly spaced; a given RoPE scaling rule is included too. Other fields of
/// ModelConfig are excluded: files outlive releases that add some.
std::string fingerprint(const ModelConfig& config, const LoadReport& report, const TensorFile& tensors);
/// The same of a text tower, without heads and pooling.
std::string fingerprint(const LoadReport& report, const TensorFile& tensors);
/// The fingerprint of a model with random weights.
std::string fingerprint_of_random(std::string_view architecture, const ModelConfig& config, unsigned seed);

}  // namespace vit::internal
