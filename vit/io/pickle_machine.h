// An interpreter for the part of the pickle language that tensors in dictionaries need. It builds plain data,
// calls nothing and knows no class: a global outside the short list of pickle_program.h is refused by name.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "vit/io/pickle_program.h"

namespace vit::internal::pickle {

/// Interprets a pickle of protocol 2 to 5. Memory is proportional to its size, time too but for the
/// logarithm that a search costs, nothing recurses, and at most kMaxObjects items are kept. `name` stands for
/// the file in messages. Throws Error naming the global, opcode or shape that does not belong into a
/// checkpoint, with its byte position.
Program run(std::span<const std::byte> bytes, std::string_view name);
/// Throws Error for more bytes than run() takes, before they are read.
void check_size(std::size_t num_bytes, std::string_view name);

constexpr std::size_t kMaxPickleBytes = 64u << 20;

}  // namespace vit::internal::pickle
