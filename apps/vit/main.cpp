// The program `vit`: reads the command line, runs one command, turns errors into one line on stderr and an
// exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/command.h"
#include "apps/vit/common/interrupt.h"
#include "apps/vit/common/options.h"
#include "apps/vit/common/progress.h"
#include "apps/vit/common/standard_streams.h"
#include "apps/vit/common/usage_error.h"
#include "vit/version.h"
#include "vit/weights/timm_args.h"

namespace vit::app {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  vit classify photo.jpg\n"
    "  vit classify --model vit_base/ --top 3 --format json photos/ > labels.jsonl\n"
    "  vit embed photos/ --features pooled,patches --output features.npz\n"
    "  vit info --model vit_base/\n"
    "vit COMMAND --help tells more about a command.\n"
    "Exit code: 0 all done, 1 something failed, 2 wrong usage, 130 interrupted.";

/// One line about what is wrong with the command line.
int report_usage(const std::vector<Command>& commands, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::string help = "vit";
  for (const Command& command : commands) {
    if (command.app->parsed()) help += " " + command.app->get_name();
  }
  print_failure("", message + " (see " + help + " --help)");
  return kWrongUsage;
}

/// The message of `error`, or a better one: a mistyped option is the cause where a required one is missing.
std::string usage_message(const std::vector<Command>& commands, const CLI::ParseError& error) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::RequiredError)) return error.what();
  for (const Command& command : commands) {
    for (const std::string& left : command.app->remaining()) {
      if (left.starts_with("-")) return "The following argument was not expected: " + left;
    }
  }
  return error.what();
}

/// Runs `work`; what it throws becomes one line on stderr and an exit code.
int run_reporting(const std::vector<Command>& commands, const std::function<int()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    return report_usage(commands, error.what());
  } catch (const OverrideError& error) {
    return report_usage(commands, std::string(error.message()));
  } catch (const std::bad_alloc&) {
    print_failure("", "out of memory; try a smaller --batch or --size");
  } catch (const std::exception& error) {
    print_failure("", error.what());
  }
  return kFailed;
}

int run_parsed(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return run_reporting(commands, command.run);
  }
  return report_usage(commands, "a command is required");
}

/// --help and --version.
int print_help(const CLI::App& program, const CLI::ParseError& request) {
  std::ostringstream text;
  program.exit(request, text, text);
  return run_reporting({}, [&] {
    print_result(text.str());
    return 0;
  });
}

int run(int argc, char** argv) {
  CLI::App program("vit: Vision Transformers with 2D rotary position embeddings on CPUs", "vit");
  program.set_version_flag("--version", std::string("vit ") + version());
  program.footer(kExamples);
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(34);
  const std::vector<Command> commands{add_classify(program),   add_evaluate(program), add_embed(program),
                                      add_preprocess(program), add_info(program),     add_bench(program)};
  try {
    std::vector<std::string> arguments = protected_from_cli11({argv + std::min(argc, 1), argv + argc});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    program.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return print_help(program, error);
    return report_usage(commands, usage_message(commands, error));
  }
  catch_interrupts();
  return run_parsed(commands);
}

}  // namespace
}  // namespace vit::app

int main(int argc, char** argv) {
  vit::app::occupy_standard_streams();
  return vit::app::run(argc, argv);
}
