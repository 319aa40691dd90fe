// The command line as data: the options of each command, the targets of values, and the selected command.
// The meaning of option values is defined in option_values.h; the parser is used only in command_line.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace vit::app {

/// Receives the values of an option.
struct Target {
  /// Takes all values of the option, one unless `Occurs` specifies otherwise; throws UsageError with what is
  /// expected and found.
  std::function<void(const std::vector<std::string>& values)> store;
  std::string default_text{};  // shown by --help; "" = nothing
  /// Named values, offered by shell completion; other values may be allowed as well.
  std::vector<std::string> choices{};
};

/// How many values an option takes.
enum class Occurs {
  once,
  optional_value,   // --kernels or --kernels NAME: no value or an empty one means none
  two_values,       // --expect PIXELS OUTPUTS
  repeated,         // --set A --set B
  list,             // --sizes 224,384
  all_positionals,  // INPUT...
};

/// One option, or a positional argument if the name has no dashes.
struct Option {
  std::string name;       // "--top", "-o,--output", "INPUT"
  std::string type_name;  // of the value, in --help: "K"; "" for flags and positional arguments
  std::string help;
  Target target{};
  bool* flag = nullptr;  // instead of `target`: set to true if the option is given
  Occurs occurs = Occurs::once;
  bool is_required = false;
  std::string group = "Options";  // heading in --help
  bool takes_empty = false;       // whether --name= is an empty value, not one that was forgotten
};

/// A command and the function to run after its options are filled in. `run` returns the exit code
/// and throws UsageError (exit code 2) or any other exception (exit code 1).
struct Command {
  std::string name;
  std::string summary;
  std::string footer;  // of --help: examples
  std::vector<Option> options;
  std::function<int()> run;
  bool ignores_arguments = false;  // of a command that only refuses to run
};

/// The parts of --help and --version that describe the program itself.
struct ProgramDescription {
  std::string summary;
  std::string version;
  std::string footer;
};

/// The parsed arguments.
struct ParsedArguments {
  const Command* command = nullptr;  // null if none is named
  std::string printed;               // text of --help or --version; then nothing runs
  std::string defect;                // wrong usage, one line; "" if there is none
};

/// Parses `arguments` (without the program's name) into the targets of the named command. Never
/// throws for user input.
ParsedArguments parse_arguments(const ProgramDescription& program, std::span<const Command> commands,
                                std::vector<std::string> arguments);

}  // namespace vit::app
