// Completion of the command line in bash and zsh: scripts generated from the commands as data, so they offer
// exactly what --help lists.
#pragma once

#include <span>
#include <string>

#include "apps/vit/ground/command_line.h"

namespace vit::app {

/// A script for bash 4 or later: share/bash-completion/completions/vit, or to be sourced.
std::string bash_completion(std::span<const Command> commands);

/// A function for zsh, the file _vit in a folder of its fpath.
std::string zsh_completion(std::span<const Command> commands);

}  // namespace vit::app
