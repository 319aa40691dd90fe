// The former names of what files.h and errors.h hold now.
#pragma once

#include <string>

#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace vit::test {

inline std::string read_file(const std::filesystem::path& path) {
  return read_text(path);
}

/// The message of the Error that `function` throws; "no Error" if it throws none.
template <typename Error, typename Function>
std::string error_text(Function&& function) {
  const auto error = error_of(std::forward<Function>(function));
  return error ? error->what() : "no Error";
}

}  // namespace vit::test
