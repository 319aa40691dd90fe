// What the names of classes and functions in a pickle stand for. Few mean something to a reader of tensors;
// those that run programs show that the file is no checkpoint but an attack.
#pragma once

#include <string_view>

#include "vit/io/pickle_program.h"

namespace vit::internal::pickle {

/// The meaning of a name; Global::other for one that has none here.
struct Known {
  Global global = Global::other;
  const StorageType* storage_type = nullptr;  // Global::storage_type and dtype
};
Known find_known(std::string_view module, std::string_view name);

/// Whether a pickle that names this is refused, though nothing would be called: the system, interpreters,
/// other pickles, the network, foreign code; or no name that Python has.
bool is_refused(std::string_view module, std::string_view name);

}  // namespace vit::internal::pickle
