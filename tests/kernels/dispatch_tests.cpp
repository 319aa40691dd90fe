#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "vit/base/error.h"
#include "vit/kernels/cpu_info.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {

TEST_CASE("kernels: tables are found by name, unknown names are errors that list them") {
  CHECK(std::string(available_kernels().back()->name) == "reference");
  for (const KernelTable* table : available_kernels()) CHECK(&find_kernels(table->name) == table);
  try {
    find_kernels("abacus");
    FAIL("a table that does not exist was found");
  } catch (const Error& error) {
    CHECK(std::strstr(error.what(), "abacus") != nullptr);
    CHECK(std::strstr(error.what(), "reference") != nullptr);
  }
}

TEST_CASE("kernels: the environment variable names the table in use") {
  const char* const forced = std::getenv("VIT_KERNELS");
  const std::string expected = forced != nullptr ? forced : available_kernels().front()->name;
  CHECK(expected == default_kernels().name);
}

TEST_CASE("kernels: every table measures a peak, and the processor has a name") {
  for (const CompiledTarget& target : compiled_targets()) {
    if (!target.supported) continue;
    float sink = 0.0f;
    CHECK(target.multiply_adds(1000, &sink) > 0.0);
    CHECK(sink > 0.0f);
  }
  CHECK(measure_fma_peak_gflops(1, reference_kernels()) > 0.0);
  CHECK(!cpu_name().empty());
}

}  // namespace vit::internal::kernels
