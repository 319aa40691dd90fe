#include "tests/fuzz/fuzz_dense.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/dense.h"

namespace vit::fuzz {
using namespace internal;
namespace {

namespace fs = std::filesystem;

fs::path golden_root() {
  return fs::path(VIT_FUZZ_DATA_DIR) / "golden" / "dense";
}

/// Folders with config.json.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(golden_root())) {
    if (fs::exists(entry.path() / "config.json")) out.push_back(entry.path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

/// Runs the model on gray pixels of its own size and makes all that its maps allow.
void run_maps(const std::shared_ptr<const Model>& model) {
  constexpr std::size_t kMostEdge = 64, kMostDepth = 16;
  const ModelConfig& config = model->config();
  const DenseConfig* const dense = model->dense_config();
  const bool is_small = std::max(config.image.height, config.image.width) <= kMostEdge &&
                        config.encoder.depth <= kMostDepth && config.image.num_channels == 3;
  if (dense == nullptr || !is_small) return;
  Tensor<float> pixels(Shape{1, 3, config.image.height, config.image.width});
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) pixels.data()[i] = static_cast<float>(i % 7) - 3.0f;
  Session session(model, {.threads = 1});
  Outputs outputs;
  session.forward(pixels, dense->request(), outputs);
  const ImageSize size{config.image.height, config.image.width};
  const ImageOutputs seen = outputs[0].of({.image = {19, 23}, .pixels = size, .content = size});
  if (dense->find(Output::depth) != nullptr) depth_of(seen);
  if (dense->find(Output::normals) != nullptr) normals_of(seen);
  const bool has_masks = dense->find(Output::masks) != nullptr;
  if (!has_masks && dense->find(Output::classes) == nullptr) return;
  SegmentOptions options{.threshold = 0.1, .overlap = 0.1};
  for (const SegmentTask task : {SegmentTask::semantic, SegmentTask::instance, SegmentTask::panoptic}) {
    options.task = task;
    if (task != SegmentTask::semantic && !has_masks) continue;
    const SegmentMap map = segments_of(seen, options);
    for (const std::int32_t id : map.map.flat()) {
      if (id < -1) throw std::logic_error("a pixel of no segment");
    }
  }
}

}  // namespace

void run_dense_config(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string name(input.substr(0, end));
  static const std::vector<std::string> known = folders();
  VIT_CHECK(std::ranges::find(known, name) != known.end(), "fuzz", "no golden folder");
  const fs::path place = folder.path() / name;
  if (!fs::exists(place)) fs::copy(golden_root() / name, place);
  test::write_text(place / "config.json", input.substr(std::min(end + 1, input.size())));
  run_maps(Model::load(place));
}

std::vector<std::string> dense_config_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& name : folders())
    seeds.push_back(name + "\n" + test::read_text(golden_root() / name / "config.json"));
  return seeds;
}

void run_dense_head(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  ModelOptions options;
  // the range of depths is known by the name
  const bool is_depth = input.find("conv_depth") != input.npos;
  options.dense.head =
      folder.write(is_depth ? "nyu_linear_head.safetensors" : "voc2012_ms_head.safetensors", input);
  run_maps(Model::load(golden_root() / "dinov2-heads" / "model.safetensors", options));
}

std::vector<std::string> dense_head_seeds() {
  std::vector<std::string> seeds;
  for (const char* const head : {"voc2012_ms_head.safetensors", "nyu_linear_head.safetensors"})
    seeds.push_back(test::read_text(golden_root() / "dinov2-heads" / head));
  return seeds;
}

}  // namespace vit::fuzz
