// The commands of the core, each described as data. Those of the rings: apps/vit/rings/rings.h.
#pragma once

#include <memory>
#include <vector>

#include "apps/vit/commands/measure.h"
#include "apps/vit/ground/command_line.h"

namespace vit::app {

Command classify_command();
/// With what it can measure besides accuracy, in the order of their options.
Command evaluate_command(std::vector<std::shared_ptr<Measure>> measures);
Command embed_command();
Command preprocess_command();
Command info_command();
Command bench_command();
Command tokenize_command();
Command rope_command();

/// --scale-consistency of evaluate, which needs no labels.
std::shared_ptr<Measure> scale_measure();

}  // namespace vit::app
