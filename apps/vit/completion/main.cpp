// Writes the completion scripts of the program at build time: vit_completion bash|zsh FILE.
#include <fstream>
#include <iostream>
#include <string>

#include "apps/vit/all_commands.h"
#include "apps/vit/completion/completion.h"

int main(int argc, char** argv) {
  const std::string shell = argc == 3 ? argv[1] : "";
  if (shell != "bash" && shell != "zsh") {
    std::cerr << "usage: vit_completion bash|zsh FILE\n";
    return 2;
  }
  const auto commands = vit::app::all_commands();
  std::ofstream out(argv[2], std::ios::binary);
  out << (shell == "bash" ? vit::app::bash_completion(commands) : vit::app::zsh_completion(commands));
  out.close();
  if (!out) std::cerr << "vit_completion: " << argv[2] << " could not be written\n";
  return out ? 0 : 1;
}
