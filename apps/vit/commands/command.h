// The commands of the program; each adds itself to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace vit::app {

/// A command and what it does once the command line has been read. Returns the exit code; throws UsageError
/// (2) or Error (1).
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command add_classify(CLI::App& program);
Command add_evaluate(CLI::App& program);
Command add_embed(CLI::App& program);
Command add_preprocess(CLI::App& program);
Command add_info(CLI::App& program);
Command add_bench(CLI::App& program);

}  // namespace vit::app
