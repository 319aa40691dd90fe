// The function for zsh: every command is a call of _arguments, whose syntax this file writes.
#include <string>
#include <string_view>

#include "apps/vit/completion/completion.h"
#include "apps/vit/completion/option_facts.h"

namespace vit::app {
namespace {

/// A text inside single quotes, where [, ] and : are plain characters for _arguments and _describe.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// ":NAME:ACTION", the text after the name of an option or the number of a positional argument.
std::string value_spec(const Option& option) {
  const std::string shown = is_positional(option) ? option.name : option.type_name;
  std::string action = " ";  // nothing to offer
  if (!option.target.choices.empty()) {
    action = "(";
    for (const std::string& choice : option.target.choices) action += (action == "(" ? "" : " ") + choice;
    action += ")";
  } else if (takes_paths(option)) {
    action = "_files";
  }
  return ":" + escaped(shown) + ":" + action;
}

std::string option_specs(const Option& option) {
  std::string out;
  for (const std::string& name : names_of(option)) {
    out += "        '" + std::string(option.occurs == Occurs::repeated ? "*" : "") + name;
    if (option.flag == nullptr) out += name.starts_with("--") ? "=" : "+";
    out += "[" + escaped(option.help) + "]";
    if (option.flag == nullptr)
      out += (option.occurs == Occurs::optional_value ? ":" : "") + value_spec(option);
    out += "' \\\n";
  }
  return out;
}

std::string zsh_case(const Command& command) {
  std::string out = "      (" + command.name + ")\n        _arguments -S \\\n" +
                    "        '(- *)'{-h,--help}'[Print this help message and exit]'";
  std::string positionals;
  int place = 0;
  for (const Option& option : command.options) {
    if (is_positional(option)) {
      const bool takes_rest = option.occurs == Occurs::all_positionals;
      positionals +=
          " \\\n        '" + (takes_rest ? "*" : std::to_string(++place)) + value_spec(option) + "'";
    } else {
      std::string specs = option_specs(option);
      specs.erase(specs.size() - std::string_view(" \\\n").size());
      out += " \\\n" + specs;
    }
  }
  return out + positionals + " ;;\n";
}

}  // namespace

std::string zsh_completion(std::span<const Command> commands) {
  std::string out =
      "#compdef vit\n# zsh completion for vit; made from its command line by the build\n\n"
      "_vit() {\n  local context state state_descr line\n  local -a commands\n  typeset -A opt_args\n  "
      "commands=(\n";
  for (const Command& command : commands)
    out += "    '" + command.name + ":" + escaped(command.summary) + "'\n";
  out +=
      "  )\n  _arguments -C '(- *)'{-h,--help}'[Print this help message and exit]' \\\n"
      "    '(- *)--version[Display program version information and exit]' \\\n"
      "    '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n    (command) _describe -t commands command commands ;;\n"
      "    (argument)\n      case $words[1] in\n";
  for (const Command& command : commands) out += zsh_case(command);
  return out + "      esac ;;\n  esac\n}\n\n_vit \"$@\"\n";
}

}  // namespace vit::app
