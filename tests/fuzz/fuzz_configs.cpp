// Writes the input into a checkpoint folder and loads that folder.
#include "tests/fuzz/fuzz_configs.h"

#include <filesystem>

#include "tests/support/files.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::fuzz {
using namespace internal;
namespace {

std::filesystem::path golden(std::string_view model) {
  return std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "models" / model;
}

/// A folder that lasts as long as the process, with the weights of a golden model where one is named.
const test::TemporaryFolder& checkpoint_folder(std::string_view model) {
  static const test::TemporaryFolder folder;
  if (!model.empty() && !std::filesystem::exists(folder.path() / "model.safetensors")) {
    std::filesystem::copy_file(golden(model) / "model.safetensors", folder.path() / "model.safetensors");
  }
  return folder;
}

}  // namespace

void run_timm_config(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("rope-axial");
  folder.write("config.json", input);
  load_checkpoint(folder.path());
}

std::vector<std::string> timm_config_seeds() {
  return {test::read_text(golden("rope-axial") / "config.json")};
}

void run_hf_config(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("hf-vit");
  folder.write("config.json", input);
  load_checkpoint(folder.path());
}

std::vector<std::string> hf_config_seeds() {
  return {test::read_text(golden("hf-vit") / "config.json")};
}

void run_open_clip_config(std::string_view input) {
  static const test::TemporaryFolder folder;
  const std::filesystem::path weights = folder.path() / "open_clip_model.safetensors";
  if (!std::filesystem::exists(weights))
    std::filesystem::copy_file(golden("open-clip") / weights.filename(), weights);
  folder.write("open_clip_config.json", input);
  load_preprocess_config(folder.path());
  load_checkpoint(folder.path());
}

std::vector<std::string> open_clip_config_seeds() {
  return {test::read_text(golden("open-clip") / "open_clip_config.json")};
}

void run_layout(std::string_view input) {
  static const test::TemporaryFolder folder;
  folder.write("layout.json", input);
  const auto weights =
      std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "layouts" / "own-rope" / "model.pth";
  const CheckpointFolder checkpoint(weights, {.layout = folder.path() / "layout.json"});
  checkpoint.preprocess_config();
  checkpoint.load();
}

std::vector<std::string> layout_seeds() {
  const auto folder = std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "layouts" / "own-rope";
  const std::string plain = test::read_text(folder / "layout.json");
  const std::string more =
      R"({"preprocess": {"crop_pct": 0.9, "filter": "bilinear", "std": [1, 1, 1]}, "labels": ["a","b","c","d","e","f"],)";
  return {plain, more + plain.substr(plain.find('{') + 1)};
}

void run_timm_preprocess(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("");
  folder.write("config.json", input);
  load_preprocess_config(folder.path());
}

void run_hf_preprocess(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("");
  folder.write("preprocessor_config.json", input);
  load_preprocess_config(folder.path());
}

std::vector<std::string> hf_preprocess_seeds() {
  return {
      test::read_text(golden("hf-vit") / "preprocessor_config.json"),
      R"({"image_processor_type":"CLIPImageProcessor","do_resize":true,"size":{"shortest_edge":224},"resample":3,)"
      R"("do_center_crop":true,"crop_size":{"height":224,"width":224},"do_rescale":true,)"
      R"("rescale_factor":0.00392156862745098,"do_normalize":true,"image_mean":[0.5,0.5,0.5],)"
      R"("image_std":[0.5,0.25,0.5],"do_convert_rgb":true,"data_format":null})"};
}

}  // namespace vit::fuzz
