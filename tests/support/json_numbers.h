// Arrays of numbers in JSON, which tests compare as a whole.
#pragma once

#include <vector>

#include "vit/io/json.h"

namespace vit::test {

/// The elements of an array of numbers.
inline std::vector<double> numbers_of(const internal::Json& array) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < array.size(); ++i) numbers.push_back(array[i].as_double());
  return numbers;
}

}  // namespace vit::test
