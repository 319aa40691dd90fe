// Runs of the program in which a call of the system fails; faults.c makes it fail.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace vit::test {

/// A run in which `fault` happens, "rename:2" for example; faults.c lists them.
RunResult run_with_fault(const std::string& fault, const std::vector<std::string>& arguments,
                         RunOptions options = {});

/// How many calls of the kind an undisturbed run makes.
std::size_t count_calls(const std::string& kind, const std::vector<std::string>& arguments,
                        const RunOptions& options = {});

}  // namespace vit::test
