// vit embed: features of images and vectors of texts, to a file.
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>
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
#include "apps/vit/common/text_vectors.h"
#include "apps/vit/common/usage_error.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

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
    "Texts (--text, --text-file) are written as text (n, E), in the space of projected, or of pooled where a "
    "model\n"
    "has no projection (SigLIP); names in the file's metadata (.npz: the array names) say what each row is.\n"
    "Examples:\n"
    "  vit embed photos/ --output photos.npz\n"
    "  vit embed photos/ --size native --features pooled,patches --output photos.safetensors\n"
    "  vit embed huge_folder/ --resume --output huge.jsonl\n"
    "  vit embed --model siglip2/ --text \"two cats\" --normalize --output cats.npy\n"
    "  vit embed --model siglip2/ --text-file names.txt --template \"a photo of a {}.\" --output "
    "classes.safetensors";

struct EmbedOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::string features;
  std::optional<Shard> shard;
  bool resume = false;
  bool normalize = false;
  TextVectorOptions texts;
};

/// Why nobody can use these features; "" if one can.
std::string defect_of(std::span<const ResultArray> arrays) {
  for (const ResultArray& array : arrays) {
    const std::span<const float> numbers(static_cast<const float*>(array.data), array.shape.num_elements());
    if (!are_finite(numbers)) return "the features are not finite; damaged pixels or weights?";
  }
  return "";
}

/// Normalized copies of the vectors among the arrays, in `scratch`.
void normalize_vectors(std::span<ResultArray> arrays, std::vector<std::vector<float>>& scratch) {
  scratch.resize(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.rank() != 1) continue;
    const auto* const numbers = static_cast<const float*>(arrays[i].data);
    scratch[i].assign(numbers, numbers + arrays[i].shape.num_elements());
    normalize(scratch[i]);
    arrays[i].data = scratch[i].data();
  }
}

void check_usage(const EmbedOptions& options, ResultFormat format) {
  const bool has_texts = options.texts.inputs.are_given(), has_images = !options.inputs.empty();
  if (!has_texts && !has_images) fail_usage("INPUT is required");
  if (options.resume && format != ResultFormat::jsonl) fail_usage("--resume continues .jsonl files only");
  if (options.resume && has_texts)
    fail_usage("--resume continues runs of images; give the texts a run of their own");
  if (options.shard && has_texts && has_images)
    fail_usage("--shard: parts of images or of texts, not both; give the texts a run of their own");
  if (!has_images && !options.features.empty())
    fail_usage("--features: there are no images; INPUT is required");
  if (format == ResultFormat::npy && has_texts && has_images)
    fail_usage("--output: .npy takes images or texts, not both; use .npz or .safetensors");
}

/// The vectors of the texts, to the writer; the exit code.
int write_texts(const EmbedOptions& options, const TextsToEncode& texts,
                std::shared_ptr<const TextTower> tower, ResultWriter& writer) {
  TextEncoder encoder(std::move(tower), {.threads = options.common.session.threads});
  Progress progress("texts", texts.names.size(), options.common.progress_mode(), "texts");
  NamedVectors vectors = encode_texts(encoder, texts, progress);
  for (std::size_t i = 0; options.normalize && i < vectors.names.size(); ++i)
    normalize(std::span(vectors.numbers).subspan(i * vectors.width, vectors.width));
  writer.add_texts(std::move(vectors));
  progress.finish("");
  return exit_code(progress);
}

int embed_texts(const EmbedOptions& options, ResultFormat format, const TextsToEncode& texts) {
  check_has_weights(options.common);
  auto tower = TextTower::load(model_path(options.common), text_options(options.common, options.texts.tower));
  hold_interrupts();
  ResultWriterOptions writer_options{.path = options.output, .format = format, .names = {}};
  if (options.shard) writer_options.row_shapes.emplace();
  const auto writer = make_result_writer(writer_options);
  const int code = write_texts(options, texts, std::move(tower), *writer);
  writer->finish();
  return code;
}

/// The shapes of results, where a part without inputs needs them.
std::optional<std::vector<ResultArray>> row_shapes(const EmbedOptions& options, ImageRun& run,
                                                   const FeatureList& features) {
  if (!options.shard) return std::nullopt;
  std::vector<ResultArray> rows;
  run.run_example(features.request, [&](const ImageOutputs& outputs) { rows = features.arrays(outputs); });
  for (ResultArray& row : rows) row.data = nullptr;
  return rows;
}

/// The image tower, and with it the text tower where there are texts.
ImageAndText load_towers(const EmbedOptions& options, bool with_text) {
  if (!with_text) return {.image = load_model(options.common), .text = nullptr};
  return ImageAndText::load(model_path(options.common), options.common.model_options,
                            text_options(options.common, options.texts.tower));
}

int embed(const EmbedOptions& options) {
  constexpr std::array kFormats{ResultFormat::npz, ResultFormat::npy, ResultFormat::safetensors,
                                ResultFormat::jsonl};
  const ResultFormat format = result_format(options.output, kFormats);
  check_usage(options, format);
  check_output_place(options.output);  // before the model is loaded
  InputList list = list_inputs(options.inputs, std::cin);
  check_no_input(options.output, list.inputs);
  check_no_weights(options.output, options.common);
  TextsToEncode texts = read_texts_to_encode(options.texts);
  if (options.shard) {
    take_shard(list, *options.shard);
    take_shard(texts.names, *options.shard);
  }
  if (options.inputs.empty()) return embed_texts(options, format, texts);
  check_has_weights(options.common);
  ImageAndText towers = load_towers(options, !texts.names.empty());
  ImageRun run("embed", options.common, towers.image);
  const FeatureList features = parse_features(options.features, run.model().config());
  if (format == ResultFormat::npy && features.features.size() != 1) {
    fail_usage("--output: .npy takes exactly one feature, found ", features.features.size(),
               "; use .npz or .safetensors");
  }
  check_preprocessing(list.inputs, run.model());
  hold_interrupts();  // from here on there is a partial file

  const auto writer = make_result_writer({.path = options.output,
                                          .format = format,
                                          .names = features.names(),
                                          .resume = options.resume,
                                          .row_shapes = row_shapes(options, run, features)});
  std::erase_if(list.inputs, [&](const Input& input) { return writer->take_done(input.name); });
  const int text_code = towers.text ? write_texts(options, texts, std::move(towers.text), *writer) : 0;
  run.start(std::move(list));
  std::vector<std::vector<float>> scratch;
  run.for_each(features.request, [&](std::size_t index, const ImageOutputs& outputs) {
    std::vector<ResultArray> arrays = features.arrays(outputs);
    if (options.normalize) normalize_vectors(arrays, scratch);
    std::string defect = defect_of(arrays);
    return defect.empty() ? writer->add(run.inputs()[index].name, arrays) : defect;
  });
  writer->finish();
  return std::max(text_code, run.finish(options.output.string() + ": " + writer->summary()));
}

/// Images, which may be missing beside texts.
Option optional_inputs(std::vector<std::string>& inputs) {
  Option option = inputs_option(inputs);
  option.is_required = false;
  return option;
}

}  // namespace

Command embed_command() {
  const auto options = std::make_shared<EmbedOptions>();
  Command command{
      .name = "embed",
      .summary = "Write features of images and vectors of texts to a file",
      .footer = kFooter,
      .options =
          {optional_inputs(options->inputs),
           {.name = "-o,--output",
            .type_name = "FILE",
            .help = "Ends in .npz, .npy, .safetensors or .jsonl",
            .target = text_target(options->output),
            .is_required = true},
           {.name = "--features",
            .type_name = "LIST",
            .help = "Comma-separated names, see below; default: projected if the model has it, else pooled",
            .target = text_target(options->features)},
           {.name = "--normalize",
            .type_name = "",
            .help = "Divide vectors of images and texts by their length",
            .flag = &options->normalize},
           shard_option(options->shard),
           {.name = "--resume",
            .type_name = "",
            .help = "Continue an interrupted run (.jsonl)",
            .flag = &options->resume}},
      .run = [options] { return embed(*options); }};
  add_text_vector_options(command.options, options->texts);
  add_common_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
