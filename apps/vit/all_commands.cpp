#include "apps/vit/all_commands.h"

#include "apps/vit/commands/commands.h"
#include "apps/vit/rings/rings.h"

namespace vit::app {

std::vector<Command> all_commands() {
  return {
      classify_command(),
      evaluate_command({anomaly_measure(), scale_measure(), map_measure()}),
      embed_command(embed_pages),
      depth_command(),
      segment_command(),
      detect_command(),
      pose_command(),
      preprocess_command(),
      info_command(),
      bench_command(bench_server, bench_prompts),
      tokenize_command(),
      rope_command(),
      show_command(),
      fit_command(),
      index_command(),
      search_command(),
      duplicates_command(),
      anomaly_command(),
      serve_command(),
  };
}

}  // namespace vit::app
