// Results on standard output: written completely, or an Error.
#pragma once

#include <string_view>

namespace vit::app {

/// Writes results and flushes them to the operating system. Throws Error if they cannot be written.
void print_result(std::string_view text);

/// Makes sure that no file opened later gets the number of a standard stream that the caller has closed, and
/// with it the output. Writing to such a stream still fails.
void occupy_standard_streams();

}  // namespace vit::app
