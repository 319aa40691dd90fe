// Checkpoints as people have them, run by the program: every case has its command and the values of the
// library that defines them, or the names that its message must have.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

struct Case {
  const char* folder;
  int exit_code = 0;
  std::vector<std::string> names{};  // in the message of a case that fails
};

/// The arguments of the case, with its files made absolute by a run inside a copy of its folder.
RunResult run_case(const fs::path& folder) {
  std::vector<std::string> arguments;
  const Json command = load_json(folder / "case.json").at("command");
  for (std::size_t i = 0; i < command.size(); ++i) arguments.emplace_back(command[i].as_string());
  for (std::string& argument : arguments) {
    const bool is_file = fs::exists(folder / argument) || argument == "result.npy";
    if (is_file) argument = (folder / argument).string();
  }
  return run_vit(arguments);
}

void check_values(const fs::path& folder) {
  const std::vector<float> found = parse_npy(read_text(folder / "result.npy")).floats();
  const std::vector<float> expected = parse_npy(read_text(folder / "expected.npy")).floats();
  REQUIRE(found.size() == expected.size());
  double largest = 1.0, error = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    error = std::max(error, std::abs(double{found[i]} - double{expected[i]}));
  }
  CHECK(error <= 1e-5 * largest);
}

}  // namespace

TEST_CASE("apps: training files, folders and names of neighbors give the numbers of their libraries") {
  SKIP_WITHOUT_SHARED("fixtures/field");
  const Case cases[] = {
      {"activation_checkpoint"},
      {"dinov2_chunks"},
      {"dinov2_ssl"},
      {"features_only"},
      {"fsdp"},
      {"google_npz"},
      {"hf_lightning"},
      {"layout_star_form"},
      {"legacy_pickle"},
      {"lightning_metrics"},
      {"lightning_net"},
      {"lightning_vit"},
      {"numpy_scalar"},
      {"openclip_info"},
      {"openclip_training"},
      {"other_format_folder", 1, {"tf_model.h5", "TensorFlow"}},
      {"peft_adapter"},
      {"rectangle", 1, {"--set img_size=HxW", "8x16"}},
      {"sentence_transformers"},
      {"simple_vit_layout", 1, {"256 x 256", "8 x 8", "--set img_size"}},
      {"solo_learn"},
      {"timm_best"},
      {"torchscript_clip"},
      {"torchvision"},
      {"trainer_output"},
      {"weights_key"},
  };
  for (const Case& row : cases) {
    CAPTURE(row.folder);
    const TestFolder copy;
    const fs::path folder = fs::path(copy.path()) / row.folder;
    fs::copy(shared_path("fixtures/field") / row.folder, folder, fs::copy_options::recursive);
    const RunResult result = run_case(folder);
    CAPTURE(result.err);
    CHECK(result.exit_code == row.exit_code);
    for (const std::string& name : row.names) CHECK(contains(result.err, name));
    if (fs::exists(folder / "expected.npy") && row.exit_code == 0) check_values(folder);
  }
}
