// The readers of untrusted bytes, each as a function of bytes. A target may throw vit::Error and nothing
// else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
  std::vector<std::string> (*seeds)();  // small valid inputs
};

/// All targets; a new one adds its file, its line in fuzz_targets.cpp and its name in tests.cmake.
std::span<const Target> targets();

}  // namespace vit::fuzz
