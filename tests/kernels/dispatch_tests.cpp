#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/kernels/cpu_info.h"
#include "vit/kernels/targets.h"
#include "vit/session.h"

namespace vit::internal::kernels {

TEST_CASE("dispatch: tables are found by name, unknown names are errors that list them") {
  CHECK(std::string(available_kernels().back()->name) == "reference");
  for (const KernelTable* table : available_kernels()) CHECK(&find_kernels(table->name) == table);
  CHECK_ERROR(ErrorKind::argument, ("abacus", "reference"), find_kernels("abacus"));
}

namespace {

/// Tokens of a golden model; "" = without naming kernels.
std::vector<float> tokens_with(const std::string& kernels) {
  const auto model = Model::load(test::data_path("golden/models/rope-axial"), {.kernels = kernels});
  Session session(model, {.threads = 1});
  Outputs outputs;
  session.forward(test::Rng(3).tensor({1, 3, 24, 24}), {Output::tokens}, outputs);
  const std::span<const float> tokens = outputs[Output::tokens].flat();
  return {tokens.begin(), tokens.end()};
}

}  // namespace

// By bits: tables differ in the order of their sums, so that equal ones come from the same table.
TEST_CASE("dispatch: a model computes with the kernels of VIT_KERNELS, without it with the best") {
  const char* const forced = std::getenv("VIT_KERNELS");
  const std::string expected = forced != nullptr ? forced : available_kernels().front()->name;
  const std::string other = expected == "reference" ? available_kernels().front()->name : "reference";
  const std::vector<float> found = tokens_with("");
  CHECK(found == tokens_with(expected));
  if (other != expected) CHECK(found != tokens_with(other));
}

#if defined(__x86_64__)
TEST_CASE("dispatch: instruction sets are those that the compiler's run-time support finds") {
  __builtin_cpu_init();
  const std::vector<std::string> names = cpu_instruction_sets();
  const auto agrees = [&](const char* name, int expected) {
    CAPTURE(name);
    CHECK((std::ranges::count(names, name) != 0) == (expected != 0));
  };
  agrees("sse4.2", __builtin_cpu_supports("sse4.2"));
  agrees("avx", __builtin_cpu_supports("avx"));
  agrees("avx2", __builtin_cpu_supports("avx2"));
  agrees("fma", __builtin_cpu_supports("fma"));
  agrees("avx512f", __builtin_cpu_supports("avx512f"));
  agrees("avx512vl", __builtin_cpu_supports("avx512vl"));
  agrees("avx512dq", __builtin_cpu_supports("avx512dq"));
  agrees("avx512bw", __builtin_cpu_supports("avx512bw"));
  agrees("avx512vnni", __builtin_cpu_supports("avx512vnni"));
  agrees("avx512bf16", __builtin_cpu_supports("avx512bf16"));
}
#endif

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

// The tiles of AMX run where they are emulated, too.
TEST_CASE("kernels: every arithmetic measures a peak of attention, that of float32 is the processor's") {
  for (const CompiledTarget& target : compiled_targets()) {
    if (!target.supported) continue;
    const KernelTable& table = target.table;
    for (const Arithmetic* arithmetic : {table.float32, table.bfloat16, table.int8}) {
      CAPTURE(table.name);
      float sink = 0.0f;
      const double operations = arithmetic->attention.multiply_adds(12, &sink);
      CHECK(operations > 0.0);
      CHECK(arithmetic->attention.multiply_adds(36, &sink) == 3 * operations);
    }
    float sink = 0.0f;
    CHECK(table.float32->attention.multiply_adds(12, &sink) == 2 * target.multiply_adds(12, &sink));
  }
  CHECK(measure_attention_peak_gflops(1, *reference_kernels().int8) > 0.0);
}

}  // namespace vit::internal::kernels
