// An interpreter of the pickle language that builds plain data and calls nothing: a class or function is a
// name, and what would be made with it an object without behavior.
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

struct RunOptions {
  bool keeps_lists = false;  // the items of lists are wanted
};
/// The same for a pickle that begins at `at` and is followed by something else; moves `at` to its end.
Program run_part(std::span<const std::byte> bytes, std::size_t& at, std::string_view name,
                 RunOptions options = {});
/// Throws Error for more bytes than run() takes, before they are read.
void check_size(std::size_t num_bytes, std::string_view name);

constexpr std::size_t kMaxPickleBytes = 64u << 20;

}  // namespace vit::internal::pickle
