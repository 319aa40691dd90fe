// The list of all commands.
#include "apps/vit/commands/command.h"

namespace vit::app {

std::vector<Command> all_commands() {
  std::vector<Command> list;
  for (const auto make : {
           classify_command,
           evaluate_command,
           embed_command,
           depth_command,
           segment_command,
           detect_command,
           pose_command,
           preprocess_command,
           info_command,
           bench_command,
           tokenize_command,
           show_command,
           fit_command,
           index_command,
           search_command,
           duplicates_command,
           anomaly_command,
           serve_command,
       })
    list.push_back(make());
  return list;
}

}  // namespace vit::app
