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

constexpr std::string_view kPortable = ":portable";

/// The table with the arithmetics that have the same bits on every machine, under a name of its own.
const KernelTable& portable_variant(const KernelTable& table) {
  if (std::string_view(table.name).ends_with(kPortable)) return table;  // the default of this process
  VIT_CHECK(table.portable_int8 != nullptr, "find_kernels", "the kernels '", table.name,
            "' do not fuse multiplications with additions: they have no portable bits");
  struct Variants {
    std::vector<std::string> names;
    std::vector<KernelTable> tables;
  };
  static const Variants all = [] {
    Variants out;
    for (const KernelTable* one : available_kernels()) {
      out.names.push_back(std::string(one->name) + std::string(kPortable));
      out.tables.push_back(*one);
      out.tables.back().bfloat16 = one->portable_bfloat16;
      out.tables.back().int8 = one->portable_int8;
    }
    for (std::size_t i = 0; i < out.names.size(); ++i) out.tables[i].name = out.names[i].c_str();
    return out;
  }();
  const std::string name = std::string(table.name) + std::string(kPortable);
  return all.tables[static_cast<std::size_t>(std::ranges::find(all.names, name) - all.names.begin())];
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

namespace {

const KernelTable& fastest_kernels() {
  return *available_kernels().front();
}

/// `unnamed` gives the table of the name "".
const KernelTable& table_named(std::string_view name, const KernelTable& (*unnamed)()) {
  if (name.empty()) return unnamed();
  if (name.ends_with(kPortable))
    return portable_variant(table_named(name.substr(0, name.size() - kPortable.size()), unnamed));
  for (const KernelTable* table : available_kernels()) {
    if (table->name == name) return *table;
  }
  const auto& compiled = compiled_targets();
  const bool known = std::any_of(compiled.begin(), compiled.end(),
                                 [&](const CompiledTarget& target) { return target.table.name == name; });
  fail("find_kernels", known ? "this machine does not support the kernels '" : "no kernels named '", name,
       "'; available: ", names_of(available_kernels()));
}

}  // namespace

const KernelTable& find_kernels(std::string_view name) {
  return table_named(name, default_kernels);
}

const KernelTable& default_kernels() {
  static const KernelTable& chosen = []() -> const KernelTable& {
    const char* const name = std::getenv("VIT_KERNELS");
    return table_named(name == nullptr ? "" : name, fastest_kernels);
  }();
  return chosen;
}

bool keeps_bits(const KernelTable& table, Precision precision) {
  if (!table.is_portable || precision == Precision::float32) return table.is_portable;
  const Arithmetic& own = arithmetic_of(table, precision);
  const Arithmetic* const portable =
      precision == Precision::int8 ? table.portable_int8 : table.portable_bfloat16;
  return portable != nullptr && own.linear == portable->linear && own.fine == portable->fine &&
         own.attention.attend == portable->attention.attend;
}

}  // namespace vit::internal::kernels
