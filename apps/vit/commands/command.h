// The commands of the program, each described as data.
#pragma once

#include <vector>

#include "apps/vit/ground/command_line.h"

namespace vit::app {

Command classify_command();
Command evaluate_command();
Command embed_command();
Command preprocess_command();
Command depth_command();
Command segment_command();
Command detect_command();
Command pose_command();
Command info_command();
Command bench_command();
Command tokenize_command();
Command show_command();
Command fit_command();
Command index_command();
Command search_command();
Command duplicates_command();
Command serve_command();
Command anomaly_command();

/// All of them, in the order of --help.
std::vector<Command> all_commands();

}  // namespace vit::app
