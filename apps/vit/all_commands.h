// The commands of the program: those of the core, and of the rings around it.
#pragma once

#include <vector>

#include "apps/vit/ground/command_line.h"

namespace vit::app {

/// All of them, in the order of --help.
std::vector<Command> all_commands();

}  // namespace vit::app
