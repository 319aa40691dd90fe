#include "apps/vit/options/load_model.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "apps/vit/ground/data_dir.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/sandbox.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/clips.h"
#include "apps/vit/inputs/video.h"
#include "apps/vit/outputs/drawing.h"
#include "vit/base/check.h"
#include "vit/image/image_file.h"
#include "vit/weights/checkpoint/checkpoint_files.h"

namespace vit::app {

void check_has_weights(const CommonOptions& options) {
  if (options.is_architecture_alone())
    fail_usage("--architecture is the architecture of a weight file: give --model");
}

void check_no_weights(std::span<const std::filesystem::path> outputs,
                      std::span<const std::filesystem::path> weights) {
  std::error_code error;  // no such file
  for (const std::filesystem::path& output : outputs) {
    if (output.empty() || !std::filesystem::exists(output, error)) continue;
    for (const std::filesystem::path& file : weights) {
      if (std::filesystem::equivalent(file, output, error))
        fail_usage("--output: ", output.string(), " is a weight file of the model; name another file");
    }
  }
}

std::filesystem::path model_path(const CommonOptions& options) {
  if (!options.model.empty()) return options.model;
  const std::filesystem::path shipped = data_dir() / "model";
  VIT_CHECK(std::filesystem::exists(shipped), "load model", shipped.string(),
            ": bundled model not found; give one with --model");
  return shipped;
}

void confine(const CommonOptions& options, std::span<const Input> inputs,
             std::vector<std::filesystem::path> others, std::vector<std::filesystem::path> outputs) {
  if (!options.sandbox) return;
  SandboxRules rules{.reads = std::move(others), .outputs = std::move(outputs)};
  const std::filesystem::path model = std::filesystem::absolute(model_path(options));
  rules.reads.push_back(std::filesystem::is_directory(model) ? model : model.parent_path());
  const internal::CheckpointFiles files = internal::find_checkpoint(model);
  if (!files.adapter.empty()) rules.reads.push_back(std::filesystem::absolute(files.path));
  rules.reads.push_back(options.model_options.layout);
  rules.reads.push_back(options.tokenizer);
  rules.reads.push_back(options.model_options.adapter);
  for (const Input& input : inputs) {
    if (rules.reads.back() != input.path) rules.reads.emplace_back(input.path);  // a .tar has many
  }
  const auto is_video = [](const Input& input) { return input.clip && input.clip->is_video(); };
  if (std::ranges::any_of(inputs, is_video) || std::ranges::any_of(rules.reads, has_video_extension))
    load_video_module();
  load_drawing_module();
  internal::open_decoders();
  enter_sandbox(rules);
}

TextOptions text_options(const CommonOptions& options) {
  const ModelOptions& model = options.model_options;
  return {.architecture = model.architecture,
          .tokenizer = options.tokenizer,
          .library = options.library,
          .kernels = model.kernels,
          .precision = model.precision};
}

std::shared_ptr<const Model> load_model(const CommonOptions& options) {
  check_has_weights(options);
  std::shared_ptr<const Model> model = Model::load(model_path(options), options.model_options);
  for (const std::string& note : model->report().notes)  // outputs would be silently off
    if (note.starts_with("the file contradicts the configuration")) print_failure("", note);
  return model;
}

std::shared_ptr<const TextTower> load_text_tower(const CommonOptions& options) {
  check_has_weights(options);
  return TextTower::load(model_path(options), text_options(options));
}

ImageAndText load_both_towers(const CommonOptions& options) {
  check_has_weights(options);
  return ImageAndText::load(model_path(options), options.model_options, text_options(options));
}

}  // namespace vit::app
