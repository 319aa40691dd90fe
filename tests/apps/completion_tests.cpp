// The completion scripts hold every command, option and value; every value that they offer is taken.
#include "apps/vit/completion/completion.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/vit/all_commands.h"
#include "apps/vit/completion/option_facts.h"
#include "tests/apps/program.h"
#include "vit/kernels/kernels.h"

using namespace vit;
using namespace vit::test;

TEST_CASE("completion: both scripts hold every command, option and value") {
  const std::vector<app::Command> commands = app::all_commands();
  const std::string bash = app::bash_completion(commands), zsh = app::zsh_completion(commands);
  for (const app::Command& command : commands) {
    CAPTURE(command.name);
    const std::size_t bash_start = bash.find("\n    " + command.name + ")\n");
    const std::size_t zsh_start = zsh.find("\n      (" + command.name + ")\n");
    REQUIRE(bash_start != std::string::npos);
    REQUIRE(zsh_start != std::string::npos);
    const std::string of_bash = bash.substr(bash_start, bash.find("esac", bash_start) - bash_start);
    const std::string of_zsh = zsh.substr(zsh_start, zsh.find(";;\n", zsh_start) - zsh_start);
    for (const app::Option& option : command.options) {
      CAPTURE(option.name);
      if (!option.name.starts_with("-")) {
        const bool has_choices = !option.target.choices.empty();
        CHECK(contains(of_zsh, ":" + option.name + (has_choices ? ":(" : ":_files")));
        continue;
      }
      const std::string name = option.name.substr(option.name.find(',') + 1);
      CHECK((contains(of_bash, " " + name + " ") || contains(of_bash, " " + name + "'")));
      CHECK((contains(of_zsh, name + "=[") || contains(of_zsh, name + "[")));
      for (const std::string& choice : option.target.choices) {
        CAPTURE(choice);
        CHECK(contains(of_bash, choice));
        if (option.name == "--bits" && !internal::kernels::default_kernels().is_portable) continue;
        CHECK_NOTHROW(option.target.store({choice}));
      }
    }
  }
}

TEST_CASE("completion: files are offered where an option takes one, also in a part of its value") {
  for (const char* const type : {"FILE", "PATH", "FOLDER", "HEAD", "BANK", "OUT", "PAGE.html", "[NAME=]PATH",
                                 "WAY|FILE", "LIST|FILE", "PIXELS.npy OUTPUTS.npy"}) {
    CAPTURE(type);
    CHECK(app::takes_paths({.name = "--option", .type_name = type, .help = ""}));
  }
  for (const char* const type : {"", "N", "HxW", "LIST", "NAME", "PIXELS", "TEXT", "FORMAT", "X,Y[,-]"}) {
    CAPTURE(type);
    CHECK_FALSE(app::takes_paths({.name = "--option", .type_name = type, .help = ""}));
  }
}

TEST_CASE("completion: what means something to a shell is a plain character in descriptions") {
  const std::vector<app::Command> commands{
      {.name = "draw",
       .summary = "a: the model's",
       .footer = "",
       .options = {{.name = "-o,--output", .type_name = "FILE", .help = "[a] model's: b\\c"}},
       .run = {}}};
  const std::string zsh = app::zsh_completion(commands);
  CHECK(contains(zsh, R"('draw:a\: the model'\''s')"));
  CHECK(contains(zsh, R"('-o+[\[a\] model'\''s\: b\\c]:FILE:_files')"));
  CHECK(contains(app::bash_completion(commands), "-o | --output) files=1"));
}
