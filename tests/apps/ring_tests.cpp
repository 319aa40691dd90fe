// Rings of the program and of the C interface: what is not built refuses by name, with the option that adds
// it.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "vit/c.h"

using namespace vit::test;

namespace {

struct RingCommands {
  std::string_view ring, option;
  std::vector<std::vector<std::string>> commands;  // with arguments that would be refused otherwise
};

std::vector<RingCommands> ring_commands() {
  return {{"dense",
           "-DVIT_RING_DENSE=ON",
           {{"depth", "nowhere.jpg", "--output", "x/"},
            {"segment", "nowhere.jpg"},
            {"detect", "--classes", "a cat", "nowhere.jpg"},
            {"pose", "nowhere.jpg"},
            {"evaluate", "--task", "depth", "nowhere"}}},
          {"show", "-DVIT_RING_SHOW=ON", {{"show", "--what", "pca", "nowhere.jpg"}}},
          {"fit", "-DVIT_RING_FIT=ON", {{"fit", "nowhere", "--output", "x.safetensors"}}},
          {"index",
           "-DVIT_RING_INDEX=ON",
           {{"index", "nowhere", "--output", "x"}, {"search", "nowhere"}, {"duplicates", "nowhere"}}},
          {"anomaly",
           "-DVIT_RING_ANOMALY=ON",
           {{"anomaly", "score", "nowhere"}, {"evaluate", "--anomaly", "nowhere", "nowhere"}}},
          {"serve", "-DVIT_SERVE=ON", {{"serve", "--port", "0"}}}};
}

}  // namespace

TEST_CASE("rings: help names what is not built, and a command of it the option that adds it") {
  const std::string help = run_vit({"--help"}).out;
  for (const RingCommands& entry : ring_commands()) {
    for (const std::vector<std::string>& command : entry.commands) {
      CAPTURE(command.front());
      CHECK(contains(help, command.front()));
      const RunResult own_help = run_vit({command.front(), "--help"});
      CHECK(own_help.exit_code == 0);
      if (command.front() != "evaluate")
        CHECK(contains(own_help.out, "not in this build") != is_built(entry.ring));
      if (is_built(entry.ring)) continue;
      const RunResult result = run_vit(command);
      CAPTURE(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
      CHECK(contains(result.err, std::string(entry.option)));
      CHECK(contains(result.err, command.front()));
    }
  }
}

TEST_CASE("rings: calls of the C interface that are not built are unsupported") {
  int32_t unit = 0;
  const vit_status dense = vit_model_depth_unit(nullptr, &unit);
  CHECK(dense == (is_built("dense") ? VIT_ERROR_ARGUMENT : VIT_ERROR_UNSUPPORTED));
  CHECK(contains(vit_last_error(), is_built("dense") ? "NULL" : "-DVIT_RING_DENSE=ON"));
  const vit_status anomaly = vit_anomaly_save(nullptr, "x");
  CHECK(anomaly == (is_built("anomaly") ? VIT_ERROR_ARGUMENT : VIT_ERROR_UNSUPPORTED));
  CHECK(contains(vit_last_error(), is_built("anomaly") ? "NULL" : "-DVIT_RING_ANOMALY=ON"));
  vit_anomaly_free(nullptr);
  vit_detector_free(nullptr);
  CHECK(vit_detector_size(nullptr) == 0);
}
