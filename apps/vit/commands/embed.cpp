// vit embed: features of images, to a file.
#include <array>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/command.h"
#include "apps/vit/common/features.h"
#include "apps/vit/common/image_run.h"
#include "apps/vit/common/inputs.h"
#include "apps/vit/common/interrupt.h"
#include "apps/vit/common/option_values.h"
#include "apps/vit/common/options.h"
#include "apps/vit/common/output_file.h"
#include "apps/vit/common/result_writer.h"
#include "apps/vit/common/usage_error.h"
#include "vit/session.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "Features:\n"
    "  pooled     (n, C)         the vector that the model's own library calls its embedding\n"
    "  projected  (n, E)         the embedding in the joint space of image and text (CLIP)\n"
    "  cls        (n, C)         class token after the final norm\n"
    "  patches    (n, h, w, C)   patch tokens after the final norm\n"
    "  tokens     (n, T, C)      all tokens after the final norm, prefix first\n"
    "  block.K    (n, T, C)      all tokens after block K; block.-1 is the last one\n"
    "  attention.K (n, heads, T, T) softmax probabilities of block K, rows are queries\n"
    "  logits     (n, classes)\n"
    "Images with different patch grids (--size native) are written as patches.0, patches.1, ...\n"
    "Examples:\n"
    "  vit embed photos/ --output photos.npz\n"
    "  vit embed photos/ --size native --features pooled,patches --output photos.safetensors\n"
    "  vit embed huge_folder/ --resume --output huge.jsonl";

struct EmbedOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::string features;
  bool resume = false;
};

/// Why nobody can use these features; "" if one can.
std::string defect_of(std::span<const ResultArray> arrays) {
  for (const ResultArray& array : arrays) {
    const std::span<const float> numbers(static_cast<const float*>(array.data), array.shape.num_elements());
    if (!are_finite(numbers)) return "the features are not finite; damaged pixels or weights?";
  }
  return "";
}

int embed(const EmbedOptions& options) {
  constexpr std::array kFormats{ResultFormat::npz, ResultFormat::npy, ResultFormat::safetensors,
                                ResultFormat::jsonl};
  const ResultFormat format = result_format(options.output, kFormats);
  if (options.resume && format != ResultFormat::jsonl) fail_usage("--resume continues .jsonl files only");
  check_output_place(options.output);  // before the model is loaded
  InputList list = list_inputs(options.inputs, std::cin);
  check_no_input(options.output, list.inputs);
  check_no_weights(options.output, options.common);
  ImageRun run("embed", options.common);
  const FeatureList features = parse_features(options.features, run.model().config());
  if (format == ResultFormat::npy && features.features.size() != 1) {
    fail_usage("--output: .npy takes exactly one feature, found ", features.features.size(),
               "; use .npz or .safetensors");
  }
  check_preprocessing(list.inputs, run.model());
  hold_interrupts();  // from here on there is a partial file

  const auto writer = make_result_writer(
      {.path = options.output, .format = format, .names = features.names(), .resume = options.resume});
  std::erase_if(list.inputs, [&](const Input& input) { return writer->take_done(input.name); });
  run.start(std::move(list));
  run.for_each(features.request, [&](std::size_t index, const ImageOutputs& outputs) {
    const std::vector<ResultArray> arrays = features.arrays(outputs);
    std::string defect = defect_of(arrays);
    return defect.empty() ? writer->add(run.inputs()[index].name, arrays) : defect;
  });
  writer->finish();
  return run.finish(options.output.string() + ": " + writer->summary());
}

}  // namespace

Command embed_command() {
  const auto options = std::make_shared<EmbedOptions>();
  Command command{
      .name = "embed",
      .summary = "Write image features to a file",
      .footer = kFooter,
      .options =
          {inputs_option(options->inputs),
           {.name = "-o,--output",
            .type_name = "FILE",
            .help = "Ends in .npz, .npy, .safetensors or .jsonl",
            .target = text_target(options->output),
            .is_required = true},
           {.name = "--features",
            .type_name = "LIST",
            .help = "Comma-separated names, see below; default: projected if the model has it, else pooled",
            .target = text_target(options->features)},
           {.name = "--resume",
            .type_name = "",
            .help = "Continue an interrupted run (.jsonl)",
            .flag = &options->resume}},
      .run = [options] { return embed(*options); }};
  add_common_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
