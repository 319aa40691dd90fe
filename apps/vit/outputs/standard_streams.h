// Results on standard output: written whole, or an Error at once.
#pragma once

#include <string_view>

namespace vit::app {

/// Writes results and hands them to the operating system. Throws Error if they cannot be written.
void print_result(std::string_view text);

/// Makes sure that no file opened later gets the number of a standard stream that the caller has closed, and
/// with it what is printed. Writing to such a stream goes on failing.
void occupy_standard_streams();

}  // namespace vit::app
