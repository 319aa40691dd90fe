// How long something takes, for tests of what must not take long.
#pragma once

#include <ctime>

namespace vit::test {

/// Seconds of processor time that `function` takes, of all threads; other programs have no say in it.
template <typename Function>
double cpu_seconds(Function&& function) {
  const std::clock_t begin = std::clock();
  function();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace vit::test
