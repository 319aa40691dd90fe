// The list of all commands.
#include "apps/vit/commands/command.h"

namespace vit::app {

std::vector<Command> all_commands() {
  return {classify_command(), evaluate_command(), embed_command(),    preprocess_command(),
          info_command(),     bench_command(),    tokenize_command(), show_command(),
          fit_command(),      index_command(),    search_command(),   duplicates_command(),
          serve_command()};
}

}  // namespace vit::app
