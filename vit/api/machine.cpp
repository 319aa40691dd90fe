#include "vit/machine.h"

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/kernels/cpu_info.h"
#include "vit/kernels/kernels.h"

namespace vit {
using namespace internal;
namespace {

KernelInfo info_of(const kernels::KernelTable& table) {
  return {.name = table.name,
          .description = table.description,
          .bfloat16 = table.bfloat16->linear->description,
          .int8 = table.int8->linear->description};
}

}  // namespace

std::vector<KernelInfo> available_kernels() {
  std::vector<KernelInfo> out;
  for (const kernels::KernelTable* table : kernels::available_kernels()) out.push_back(info_of(*table));
  return out;
}

KernelInfo find_kernels(std::string_view name) {
  return info_of(kernels::find_kernels(name));
}

BitsContract bits_contract(Precision precision, std::string_view name) {
  check_choice("bits_contract", "precision", precision, Precision::int8);
  constexpr int kContract = 1;
  const kernels::KernelTable& table = kernels::find_kernels(name);
  if (kernels::keeps_bits(table, precision)) return {.number = kContract, .why_not = ""};
  if (table.is_portable) {
    return {.why_not = text(to_string(precision),
                            " is defined by the products of this processor; that of --bits portable is not")};
  }
  return {.why_not = text("the kernels '", table.name, "' do not fuse multiplications with additions")};
}

std::string cpu_name() {
  return kernels::cpu_name();
}

std::vector<std::string> cpu_instruction_sets() {
  return kernels::cpu_instruction_sets();
}

int num_threads(int threads) {
  return resolve_threads(threads);
}

double measure_peak_gflops(int threads, std::string_view name) {
  return kernels::measure_fma_peak_gflops(
      threads, name.empty() ? *kernels::available_kernels().front() : kernels::find_kernels(name));
}

}  // namespace vit
