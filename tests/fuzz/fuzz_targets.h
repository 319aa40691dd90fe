// The readers of untrusted bytes, each as a function of bytes. A target may throw vit::Error and nothing
// else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/structures.h"

namespace vit::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
  std::vector<std::string> (*seeds)();  // small valid inputs; none where this build does without the reader
  Structure structure{};                // of inputs, where mutations of bytes rarely pass the first checks
};

/// Whether an Error's message fits one line of a log, whatever bytes it quotes.
bool is_fit_for_a_line(std::string_view message);

/// All targets; a new one adds its file, its line in fuzz_targets.cpp and its name in tests.cmake.
std::span<const Target> targets();

}  // namespace vit::fuzz
