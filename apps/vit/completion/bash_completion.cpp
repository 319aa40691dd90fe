// The script for bash: options, values and files by `case`, without the package bash-completion.
#include <algorithm>
#include <string>
#include <string_view>

#include "apps/vit/completion/completion.h"
#include "apps/vit/completion/option_facts.h"

namespace vit::app {
namespace {

// The text after = is a separate word, because = is in COMP_WORDBREAKS. `compopt -o default` lets
// readline complete a file name, with its own quoting.
constexpr std::string_view kStart = R"(# bash completion for vit; made from its command line by the build

_vit() {
  local word=${COMP_WORDS[COMP_CWORD]} option= command= only_files= options= values= files= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      only_files=1
    elif [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then
      command=${COMP_WORDS[i]}
    fi
  done
  if [[ $word == = ]]; then
    word= option=${COMP_WORDS[COMP_CWORD - 1]}
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  else
    option=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  [[ -z $only_files ]] || option=
)";

constexpr std::string_view kEnd = R"(
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  elif [[ -z $only_files && $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $files ]]; then
    compopt -o default
  fi
}
complete -F _vit vit
)";

std::string joined(std::span<const std::string> words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(separator)) + word;
  return out;
}

/// The line of `case $option` for one option that takes a value.
std::string value_case(const Option& option) {
  std::string out = "        " + joined(names_of(option), " | ") + ") ";
  if (!option.target.choices.empty()) return out + "values='" + joined(option.target.choices, " ") + "' ;;\n";
  if (takes_paths(option)) return out + "files=1 options= ;;\n";
  return out + "return ;;\n";  // numbers and free text
}

std::string command_case(const Command& command) {
  std::string cases, options = "--help";
  bool has_positionals = false;
  for (const Option& option : command.options) {
    has_positionals |= is_positional(option);
    if (is_positional(option)) continue;
    options += " " + joined(names_of(option), " ");
    if (option.flag == nullptr) cases += value_case(option);
  }
  return "    " + command.name + ")\n      options='" + options + "'" + (has_positionals ? " files=1" : "") +
         "\n      case $option in\n" + cases + "      esac ;;\n";
}

}  // namespace

std::string bash_completion(std::span<const Command> commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += command_case(command);
  }
  return std::string(kStart) + "  case $command in\n    '')\n      options='--help --version'\n" +
         "      [[ $word == -* ]] || values='" + names + "' ;;\n" + cases + "  esac" + std::string(kEnd);
}

}  // namespace vit::app
