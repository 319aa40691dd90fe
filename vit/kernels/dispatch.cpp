// Chooses a kernel table by name or by machine.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "vit/base/check.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

std::string names_of(const std::vector<const KernelTable*>& tables) {
  std::string names;
  for (const KernelTable* table : tables) names += (names.empty() ? "" : ", ") + std::string(table->name);
  return names;
}

}  // namespace

const std::vector<const KernelTable*>& available_kernels() {
  static const std::vector<const KernelTable*> tables = [] {
    std::vector<const KernelTable*> found;
    for (const CompiledTarget& target : compiled_targets()) {
      if (target.supported) found.push_back(&target.table);
    }
    found.push_back(&reference_kernels());
    return found;
  }();
  return tables;
}

const KernelTable& find_kernels(std::string_view name) {
  for (const KernelTable* table : available_kernels()) {
    if (table->name == name) return *table;
  }
  const auto& compiled = compiled_targets();
  const bool known = std::any_of(compiled.begin(), compiled.end(),
                                 [&](const CompiledTarget& target) { return target.table.name == name; });
  fail("find_kernels", known ? "this machine does not support the kernels '" : "no kernels named '", name,
       "'; available: ", names_of(available_kernels()));
}

const KernelTable& default_kernels() {
  static const KernelTable& chosen = []() -> const KernelTable& {
    const char* const name = std::getenv("VIT_KERNELS");
    if (name != nullptr && *name != '\0') return find_kernels(name);
    return *available_kernels().front();
  }();
  return chosen;
}

}  // namespace vit::internal::kernels
