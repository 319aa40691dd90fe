// The command line as data: what each command takes, where values go, and which command the arguments name.
// What a value of an option means belongs to option_values.h; the parser is used in command_line.cpp alone.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace vit::app {

/// Where the values of an option go.
struct Target {
  /// Takes all values of the option, one unless `Occurs` says otherwise; throws UsageError with what is
  /// expected and found.
  std::function<void(const std::vector<std::string>& values)> store;
  std::string default_text{};  // what --help shows; "" = nothing
  /// Values with a name, which the completion of a shell offers; other values may be allowed as well.
  std::vector<std::string> choices{};
};

/// How many values an option takes.
enum class Occurs {
  once,
  optional_value,   // --kernels or --kernels NAME: no value or an empty one stands for none
  repeated,         // --set A --set B
  list,             // --sizes 224,384
  all_positionals,  // INPUT...
};

/// One option, or a positional argument where the name has no dashes.
struct Option {
  std::string name;       // "--top", "-o,--output", "INPUT"
  std::string type_name;  // of the value, in --help: "K"; "" for flags and positional arguments
  std::string help;
  Target target{};
  bool* flag = nullptr;  // instead of `target`: set to true where the option is given
  Occurs occurs = Occurs::once;
  bool is_required = false;
  std::string group = "Options";  // heading in --help
};

/// A command and what it does once its options hold what the command line says. `run` returns the exit code
/// and throws UsageError (exit code 2) or any other exception (exit code 1).
struct Command {
  std::string name;
  std::string summary;
  std::string footer;  // of --help: examples
  std::vector<Option> options;
  std::function<int()> run;
};

/// What --help and --version show of the program itself.
struct ProgramDescription {
  std::string summary;
  std::string version;
  std::string footer;
};

/// What the arguments ask for.
struct ParsedArguments {
  const Command* command = nullptr;  // null where none is named
  std::string printed;               // by --help or --version; then nothing runs
  std::string defect;                // wrong usage, one line; "" where there is none
};

/// Reads `arguments` (without the program's name) into the targets of the command that they name. Never
/// throws for what a user can write.
ParsedArguments parse_arguments(const ProgramDescription& program, std::span<const Command> commands,
                                std::vector<std::string> arguments);

}  // namespace vit::app
