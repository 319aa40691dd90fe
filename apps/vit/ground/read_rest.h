// Reads the rest of text streams.
#pragma once

#include <filesystem>
#include <istream>
#include <iterator>
#include <string>

#include "vit/base/check.h"

namespace vit::app {

/// The rest of a stream on `path`. Throws Error (io) that names the path if the system fails to read: a
/// folder has no text.
inline std::string read_rest(std::istream& in, const std::filesystem::path& path) {
  try {
    return {std::istreambuf_iterator<char>(in), {}};
  } catch (const std::ios_base::failure& failure) {
    internal::fail({"read", ErrorKind::io}, path.string(), ": cannot be read: ", failure.what());
  }
}

}  // namespace vit::app
