// The program `vit`: parses the command line, runs one command, and reports errors as a line on stderr and an
// exit code.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/all_commands.h"
#include "apps/vit/ground/flag_names.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/version.h"

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
    "vit COMMAND --help describes a command.\n"
    "Exit code: 0 success, 1 something failed, 2 wrong usage, 130 interrupted (143 by SIGTERM, 129 by "
    "SIGHUP).";

/// Prints one line about wrong usage of a command, or of the program if it is null.
int report_usage(const Command* command, const std::string& message) {
  const std::string help = command == nullptr ? "vit" : "vit " + command->name;
  print_failure("", message + " (see " + help + " --help)");
  return kWrongUsage;
}

/// Runs `work`; exceptions become one line on stderr and an exit code.
int run_reporting(const Command* command, const std::function<int()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    return report_usage(command, error.what());
  } catch (const Error& error) {
    if (is_about_override(error)) return report_usage(command, with_flag_names(std::string(error.message())));
    print_failure("", with_flag_names(std::string(error.message())));
  } catch (const std::bad_alloc&) {
    print_failure("", "out of memory; try a smaller --batch or --size");
  } catch (const std::exception& error) {
    print_failure("", error.what());
  }
  return kFailed;
}

/// `vit help` and `vit help COMMAND`, as of other programs with commands, are --help.
std::vector<std::string> with_help_option(std::vector<std::string> arguments,
                                          std::span<const Command> commands) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  // an unknown command is reported as one
  if (arguments.empty() || std::ranges::find(commands, arguments.front(), &Command::name) != commands.end())
    arguments.emplace_back("--help");
  return arguments;
}

int run(const std::vector<std::string>& given) {
  const std::vector<Command> commands = all_commands();
  const std::vector<std::string> arguments = with_help_option(given, commands);
  const ParsedArguments parsed =
      parse_arguments({.summary = "vit: Vision Transformers with 2D rotary position embeddings on CPUs",
                       .version = std::string("vit ") + version(),
                       .footer = kExamples},
                      commands, arguments);
  if (!parsed.defect.empty()) return report_usage(parsed.command, parsed.defect);
  if (!parsed.printed.empty()) {
    return run_reporting(nullptr, [&] {
      print_result(parsed.printed);
      return 0;
    });
  }
  if (parsed.command == nullptr) return report_usage(nullptr, "a command is required");
  catch_interrupts();
  return run_reporting(parsed.command, parsed.command->run);
}

/// For when there is not even memory for the command line or the text of an error.
int report_exhausted() noexcept {
  constexpr std::string_view kLine = "vit: out of memory; try a smaller --batch or --size\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  return kFailed;
}

}  // namespace
}  // namespace vit::app

int main(int argc, char** argv) {
  try {
    vit::app::occupy_standard_streams();
    return vit::app::run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    return vit::app::report_exhausted();
  }
}
