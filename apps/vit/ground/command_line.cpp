#include "apps/vit/ground/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/base/edit_distance.h"

namespace vit::app {
namespace {

/// "; did you mean X?", or "" if nothing is similar: one byte in three may differ, or one name starts the
/// other.
std::string did_you_mean(const std::string& word, std::span<const std::string> known) {
  const std::string bounded = word.substr(0, 100);
  const std::string* best = nullptr;
  std::size_t least = bounded.size() / 3 + 1;
  for (const std::string& name : known) {
    const bool begins = bounded.size() > 3 && (name.starts_with(bounded) || bounded.starts_with(name));
    const std::size_t distance = begins ? 1 : internal::edit_distance(bounded, name);
    if (distance >= least) continue;
    least = distance;
    best = &name;
  }
  return best == nullptr ? "" : "; did you mean " + *best + "?";
}

std::string unknown_option(const std::string& option, std::span<const std::string> known) {
  const std::string name = option.substr(0, option.find('='));
  if (name == "--device" || name == "--gpu" || name == "--cuda")
    return name + ": no such option; vit computes on CPUs only";
  return name + ": no such option" + did_you_mean(name, known);
}

std::string unknown_command(const std::string& word, std::span<const std::string> known) {
  std::error_code failure;
  if (std::filesystem::exists(word, failure))
    return "\"" + word + "\" is not a command; to classify it: vit classify " + word;
  return "\"" + word + "\" is not a command" + did_you_mean(word, known);
}

constexpr std::size_t kHelpColumn = 34;  // column of the descriptions
constexpr std::size_t kHelpWidth = 110;  // columns

// CLI11 treats an argument of the form [a,b] as a list; here it is a file name. A "./" before such
// arguments hides them; hidden_removed() removes it again.
constexpr std::string_view kHidden = "./[";

void hide_brackets(std::vector<std::string>& arguments) {
  for (std::string& argument : arguments) {
    if (argument.starts_with("[") || argument.starts_with(kHidden)) argument.insert(0, "./");
  }
}

std::vector<std::string> hidden_removed(std::vector<std::string> values) {
  for (std::string& value : values) {
    if (value.starts_with(kHidden) || value.starts_with("././[")) value.erase(0, 2);
  }
  return values;
}

/// CLI11 gives an option with = and nothing after it the next argument as its value; an empty value is most
/// often an unset variable. Returns the name of such an option, or "" if there is none. Those that take it
/// get it as an argument of its own.
std::string option_without_value(std::vector<std::string>& arguments,
                                 const std::set<std::string>& takes_empty) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string argument = arguments[i];
    if (!argument.starts_with("--") || argument.find('=') + 1 != argument.size()) continue;
    std::string name = argument.substr(0, argument.size() - 1);
    if (!takes_empty.contains(name)) return name;
    arguments[i] = std::move(name);
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(++i), "");
  }
  return "";
}

/// Passes values of `option` to its target; errors of the target name the option.
CLI::callback_t store_into(const Option& option) {
  const std::string name = option.name.substr(option.name.find(',') + 1);
  return [store = option.target.store, name](const CLI::results_t& values) {
    try {
      store(hidden_removed(values));
    } catch (const UsageError& error) {
      throw CLI::ValidationError(name, error.what());
    }
    return true;
  };
}

void add_option(CLI::App& app, const Option& option) {
  if (option.flag != nullptr) {
    app.add_flag(option.name, *option.flag, option.help)->group(option.group);
    return;
  }
  CLI::Option* const added = app.add_option(option.name, store_into(option), option.help);
  added->type_name(option.type_name)->required(option.is_required);
  if (option.name.starts_with("-")) added->group(option.group);
  if (!option.target.default_text.empty()) added->default_str(option.target.default_text);
  switch (option.occurs) {
    case Occurs::once: break;
    case Occurs::optional_value: added->expected(0, 1); break;
    case Occurs::two_values: added->expected(2); break;
    case Occurs::repeated:
      added->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      break;
    case Occurs::list: added->expected(CLI::detail::expected_max_vector_size)->delimiter(','); break;
    case Occurs::all_positionals: added->expected(CLI::detail::expected_max_vector_size); break;
  }
}

/// Where the rest of a line of help begins if it is continued: below its description.
std::size_t hanging_indent(std::string_view line) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  if (first == 0) return 0;
  if (line.size() > kHelpColumn && line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ')
    return kHelpColumn;
  const std::size_t gap = line.find("  ", first);  // between a word and what it means
  if (gap == line.npos || gap >= kHelpColumn) return first;
  return line.find_first_not_of(' ', gap);
}

/// Lines of at most kHelpWidth columns, but for commands, which are copied.
std::string wrapped(const std::string& help) {
  std::string out;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = hanging_indent(line);
    while (line.size() > kHelpWidth && !line.starts_with("  vit ")) {
      const std::size_t space = line.rfind(' ', kHelpWidth);
      if (space == line.npos || space <= indent) break;
      out.append(line, 0, line.find_last_not_of(' ', space) + 1).append("\n");
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    out += line + "\n";
  }
  return out;
}

/// The parser of one command line.
class Parser {
 public:
  Parser(const ProgramDescription& program, std::span<const Command> commands)
      : app_(program.summary, "vit") {
    app_.set_version_flag("--version", program.version);
    app_.footer(program.footer);
    app_.require_subcommand(0, 1);
    app_.get_formatter()->column_width(kHelpColumn);
    for (const Command& command : commands) {
      CLI::App* const added = app_.add_subcommand(command.name, command.summary);
      added->footer(command.footer);
      for (const Option& option : command.options) {
        add_option(*added, option);
        if (option.takes_empty) takes_empty_.insert(option.name);
      }
      if (command.ignores_arguments) added->prefix_command();
      commands_.emplace_back(&command, added);
    }
  }

  ParsedArguments parse(std::vector<std::string> arguments) {
    ParsedArguments out;
    if (const std::string name = option_without_value(arguments, takes_empty_); !name.empty()) {
      out.defect = name + ": is empty";
      return out;
    }
    hide_brackets(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 expects them
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) {
        std::ostringstream printed;
        printed.exceptions(std::ios::badbit);  // a stream drops text that it cannot store
        app_.exit(error, printed, printed);
        out.printed = wrapped(printed.str());
      } else {
        out.defect = message_of(error);
        std::replace(out.defect.begin(), out.defect.end(), '\n', ' ');
      }
    }
    for (const auto& [command, app] : commands_) {
      if (app->parsed()) out.command = command;
    }
    return out;
  }

 private:
  static std::vector<std::string> names_of(std::span<const Option> options) {
    std::vector<std::string> names{"--help"};
    for (const Option& option : options) {
      if (option.name.starts_with("-")) names.push_back(option.name.substr(option.name.find(',') + 1));
    }
    return names;
  }

  /// If a required option is missing, a mistyped one is the cause.
  std::string message_of(const CLI::ParseError& error) const {
    const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
    if (code != CLI::ExitCodes::RequiredError && code != CLI::ExitCodes::ExtrasError) return error.what();
    for (const auto& [command, app] : commands_) {
      for (const std::string& left : app->remaining()) {
        if (left.starts_with("-")) return unknown_option(left, names_of(command->options));
      }
    }
    const std::vector<std::string> left = app_.remaining();
    if (left.empty() || left.front().starts_with("-")) return error.what();
    std::vector<std::string> names;
    for (const auto& entry : commands_) names.push_back(entry.first->name);
    return unknown_command(left.front(), names);
  }

  CLI::App app_;
  std::set<std::string> takes_empty_;  // names of options
  std::vector<std::pair<const Command*, CLI::App*>> commands_;
};

}  // namespace

ParsedArguments parse_arguments(const ProgramDescription& program, std::span<const Command> commands,
                                std::vector<std::string> arguments) {
  return Parser(program, commands).parse(std::move(arguments));
}

}  // namespace vit::app
