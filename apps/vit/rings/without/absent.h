// Commands and options of rings that are not built: they refuse to run, and name the option of CMake that
// adds them.
#pragma once

#include <memory>
#include <string>

#include "apps/vit/rings/rings.h"

namespace vit::app {

/// `requirement` completes "vit NAME is not in this build: ...".
Command absent_command(const std::string& name, const std::string& summary, const std::string& requirement);
/// A measure that `option` of vit evaluate requests.
/// Throws Error (unsupported): `name` is not in this build.
[[noreturn]] void fail_absent(const std::string& name, const std::string& requirement);
std::shared_ptr<Measure> absent_measure(const std::string& option, const std::string& requirement);

}  // namespace vit::app
