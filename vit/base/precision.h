// The arithmetic of a model's blocks. What each precision does to weights and activations is kernels/.
#pragma once

#include "vit/base/error.h"

namespace vit {

/// What the products of the blocks are computed in.
enum class Precision {
  float32,
  bfloat16,  // weights rounded to bfloat16 while loading, and where the machine multiplies pairs, activations
  int8,      // weights quantized to 8 bits for each output while loading, activations for each row
};

/// "float32", "bfloat16", "int8".
constexpr const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::float32: return "float32";
    case Precision::bfloat16: return "bfloat16";
    case Precision::int8: return "int8";
  }
  return "";
}

}  // namespace vit
