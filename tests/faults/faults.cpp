#include "tests/faults/faults.h"

#include <doctest/doctest.h>

namespace vit::test {

RunResult run_with_fault(const std::string& fault, const std::vector<std::string>& arguments,
                         RunOptions options) {
  options.environment["LD_PRELOAD"] = VIT_TEST_FAULTS;
  options.environment["VIT_FAULT"] = fault;
  return run_vit(arguments, options);
}

std::size_t count_calls(const std::string& kind, const std::vector<std::string>& arguments,
                        const RunOptions& options) {
  const TestFolder folder;
  RunOptions counted = options;
  counted.environment["VIT_FAULT_COUNT"] = folder / "count";
  REQUIRE(run_with_fault(kind + ":0", arguments, counted).exit_code == 0);
  return std::stoul(read_text(folder / "count"));
}

}  // namespace vit::test
