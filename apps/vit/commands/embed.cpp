// vit embed: features of images and vectors of texts, to a file.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/commands/embed.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/features.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/page_vectors.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/parts_folder.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/run/run_images.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/finite.h"
#include "vit/config.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "With --frames an input is a clip: a video, or a folder with one image a frame, in the order of names. "
    "patches and merged then have the patches in time in front: (n, t, h, w, C).\n"
    "Images with different patch grids (--size native) are written as patches.0, patches.1, ...\n"
    "Texts (--text, --text-file) are written as text (n, E), in the space of projected, or of pooled if the "
    "model has no projection (SigLIP); names in the file's metadata (.npz: the array names) identify the "
    "rows.\n"
    "FOLDER/ contains part-00000.npy (or .safetensors), part-00000.jsonl with one object per row (file, "
    "width, height, sha256; or error, with a row of NaN), ... and run.json. Parts are written atomically; "
    "--resume continues after the last complete part.\n"
    "Examples:\n"
    "  vit embed photos/ --output photos.npz\n"
    "  vit embed photos/ --size native --features pooled,patches --output photos.safetensors\n"
    "  vit embed --model vjepa2/ --frames 16 street.mp4 frames_of_a_clip/ --output clips.safetensors\n"
    "  vit embed huge_folder/ --resume --output huge.jsonl\n"
    "  vit embed shard-*.tar --shard 3/16 --resume --output vectors-3/\n"
    "  vit embed --model siglip2/ --text \"two cats\" --normalize --output cats.npy\n"
    "  vit embed --model siglip2/ --text-file names.txt --template \"a photo of a {}.\" --output "
    "classes.safetensors";

constexpr const char* kPageHelp =
    "  page                (n, t, E)         vectors of the tokens of a page (ColModernVBERT); by itself; "
    "with --text question (n, m, E): those of questions, compared by vit search\n";

constexpr std::size_t kPartSize = 10'000, kMaxPartSize = 1'000'000'000;

/// Reason the features are unusable, or "".
std::string defect_of_arrays(std::span<const ResultArray> arrays) {
  for (const ResultArray& array : arrays) {
    const std::span<const float> numbers(static_cast<const float*>(array.data), array.shape.num_elements());
    if (std::string defect = defect_of(numbers, "the features are"); !defect.empty()) return defect;
  }
  return "";
}

/// Normalized copies of the vectors among the arrays of these features, in `scratch`.
void normalize_vectors(std::span<const OutputKey> keys, std::span<ResultArray> arrays,
                       std::vector<std::vector<float>>& scratch) {
  scratch.resize(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!is_vector(keys[i].output) || arrays[i].shape.rank() != 1) continue;
    const auto* const numbers = static_cast<const float*>(arrays[i].data);
    scratch[i].assign(numbers, numbers + arrays[i].shape.num_elements());
    normalize_vector(scratch[i]);
    arrays[i].data = scratch[i].data();
  }
}

/// The format of the file, or of the parts of a folder.
ResultFormat format_of(const EmbedOptions& options) {
  constexpr std::array kFormats{ResultFormat::npz, ResultFormat::npy, ResultFormat::safetensors,
                                ResultFormat::jsonl};
  if (options.has_parts()) return options.format.value_or(ResultFormat::npy);
  if (options.format || options.part_size)
    fail_usage(options.format ? "--format" : "--part-size", " requires --output FOLDER/");
  if (!options.output.has_extension())
    fail_usage(
        "--output must end in one of .npz, .npy, .safetensors, .jsonl, or in / for a folder of parts; found "
        "'",
        options.output.string(), "'");
  return result_format(options.output, kFormats);
}

/// Throws UsageError for options that texts do not have, or not next to images.
void check_texts(const EmbedOptions& options) {
  if (!options.texts.are_given()) return;
  if (options.resume) fail_usage("--resume continues runs of images; encode texts in a separate run");
  if (options.shard && !options.inputs.empty())
    fail_usage("--shard: parts of images or of texts, not both; encode texts in a separate run");
}

void check_usage(const EmbedOptions& options, ResultFormat format) {
  const bool has_texts = options.texts.are_given(), has_images = !options.inputs.empty();
  const bool has_parts = options.has_parts();
  if (!has_texts && !has_images) fail_usage("INPUT is required");
  if (options.resume && format != ResultFormat::jsonl && !has_parts)
    fail_usage("--resume continues only .jsonl files and FOLDER/");
  check_texts(options);
  if (has_parts && has_texts) fail_usage("--output: FOLDER/ takes images; encode texts in a separate run");
  if (!has_images && !options.features.empty())
    fail_usage("--features: there are no images; INPUT is required");
  if (format == ResultFormat::npy && has_texts && has_images)
    fail_usage("--output: .npy takes images or texts, not both; use .npz or .safetensors");
}

/// Throws UsageError for features that .npy cannot hold.
void check_features(const EmbedOptions& options, ResultFormat format, const FeatureList& features) {
  if (format != ResultFormat::npy) return;
  const bool has_parts = options.has_parts();
  const char* const others = has_parts ? "--format safetensors" : ".npz or .safetensors";
  if (features.keys.size() != 1)
    fail_usage("--output: .npy takes exactly one feature, found ", features.keys.size(), "; use ", others);
  const bool has_one_shape = is_vector(features.keys.front().output) ||
                             options.common.session.input_size.kind != InputSize::Kind::native;
  if (has_parts && !has_one_shape)
    fail_usage("--output: .npy takes arrays of one shape; with --size native use ", others);
}

/// The shapes of results, without data.
std::vector<ResultArray> row_shapes(ImageRun& run, const FeatureList& features) {
  std::vector<ResultArray> rows;
  run.run_example(features.request, [&](const ImageOutputs& outputs) { rows = features.arrays(outputs); });
  for (ResultArray& row : rows) row.data = nullptr;
  return rows;
}

/// Everything that the results of this run depend on.
RunFacts run_facts(const EmbedOptions& options, const Model& model, const FeatureList& features) {
  RunFacts facts{.model = run_model(options.common, model, features.names()), .others = {}};
  facts.others.emplace_back("normalized", options.normalize ? "yes" : "no");
  if (model.has_preprocess_config()) {
    const Preprocessor preprocessor(model.preprocess_config(), options.common.session.input_size,
                                    model.config().edge_multiple());
    std::string words = preprocessor.describe();
    std::ranges::replace(words, '\n', ';');
    facts.others.emplace_back("preprocessing", std::move(words));
  }
  return facts;
}

/// The features of one image, normalized if requested; `scratch` holds normalized copies.
std::vector<ResultArray> features_of(const EmbedOptions& options, const FeatureList& features,
                                     const ImageOutputs& outputs, std::vector<std::vector<float>>& scratch) {
  std::vector<ResultArray> arrays = features.arrays(outputs);
  if (options.normalize) normalize_vectors(features.keys, arrays, scratch);
  return arrays;
}

/// Writes features of images, and texts of the same call, to a file or to the parts of a folder.
class Embedding : public ImageWork {
 public:
  Embedding(const EmbedOptions& options, ResultFormat format, TextsToEncode texts)
      : options_(options), format_(format), texts_(std::move(texts)) {}

  std::optional<Request> load(ImageRun& run) override {
    ImageAndText towers;
    if (!texts_.names.empty()) {
      towers = load_both_towers(options_.common);
      run.set_model(towers.image);
    }
    features_ = parse_features(options_.features, *run.load());
    check_features(options_, format_, features_);
    check_preprocessing(run.inputs(), run.model());
    hold_interrupts();  // from here on there are incomplete files
    if (options_.has_parts()) {
      open_parts(run);
    } else {
      open_file(run, std::move(towers.text));
    }
    return features_.request;
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    const std::vector<ResultArray> arrays = features_of(options_, features_, *image.outputs, scratch_);
    const std::string& name = run.inputs()[image.index].name;
    const std::string defect = defect_of_arrays(arrays);
    if (!parts_) return defect.empty() ? writer_->add(name, arrays) : defect;
    const std::string digest = run.take_digest(image.index);
    if (defect.empty()) return parts_->add(name, image.size, digest, arrays);
    parts_->add_failed(name, defect);
    return defect;
  }

  std::string add_failed(ImageRun& run, const StreamedImage& image) override {
    if (parts_) {
      run.take_digest(image.index);
      parts_->add_failed(run.inputs()[image.index].name, image.failure);
    }
    return image.failure;
  }

  int finish(ImageRun& run) override {
    if (parts_) parts_->finish();
    if (writer_) writer_->finish();
    run.progress().finish(options_.output.string() + ": " +
                          (parts_ ? parts_->summary() : writer_->summary()));
    return text_code_;
  }

 private:
  void open_parts(ImageRun& run) {
    InputList& list = run.list();
    parts_.emplace(PartsOptions{.folder = options_.output,
                                .format = format_,
                                .part_size = options_.part_size.value_or(kPartSize),
                                .resume = options_.resume,
                                .names = features_.names(),
                                .row_shapes = row_shapes(run, features_),
                                .facts = run_facts(options_, run.model(), features_)},
                   list.inputs);
    const auto first = list.inputs.begin();
    list.inputs.erase(first, first + static_cast<std::ptrdiff_t>(parts_->num_kept()));
    const std::vector<InputFailure>& kept = parts_->kept_failures();
    list.failures.insert(list.failures.end(), kept.begin(), kept.end());
  }

  void open_file(ImageRun& run, std::shared_ptr<const TextTower> text) {
    ResultWriterOptions writer_options{
        .path = options_.output, .format = format_, .names = features_.names(), .resume = options_.resume};
    if (format_ == ResultFormat::jsonl) writer_options.facts = run_facts(options_, run.model(), features_);
    if (format_ == ResultFormat::safetensors)
      writer_options.facts =
          text ? text_facts(options_, *text, texts_) : run_facts(options_, run.model(), features_);
    if (options_.shard) writer_options.row_shapes = row_shapes(run, features_);
    writer_ = make_result_writer(writer_options);
    std::erase_if(run.list().inputs, [&](const Input& input) { return writer_->take_done(input.name); });
    if (!text) return;
    text_code_ = encode_texts(text_job(options_, texts_), std::move(text), [&](NamedVectors vectors) {
      add_texts(options_, std::move(vectors), *writer_);
    });
  }

  const EmbedOptions& options_;
  const ResultFormat format_;
  const TextsToEncode texts_;
  FeatureList features_;
  std::optional<PartsFolder> parts_;  // one of these two
  std::unique_ptr<ResultWriter> writer_;
  int text_code_ = 0;  // exit code of the texts
  std::vector<std::vector<float>> scratch_;
};

ResultFormat parse_format(const std::string& value) {
  if (value == "npy") return ResultFormat::npy;
  if (value == "safetensors") return ResultFormat::safetensors;
  fail_value("npy or safetensors", value);
}

/// Takes from the run that is resumed what the command line does not say.
void take_resumed(EmbedOptions& options) {
  if (!options.resume) return;
  const std::optional<RunFacts> made = resume_record(options.output, options.has_parts(), options.common);
  if (!made) return;
  if (options.features.empty()) options.features = made->model.features;
  for (const auto& [name, value] : made->others) {
    if (name == "normalized" && value == "yes") options.normalize = true;
    if (name == "format" && !options.format) options.format = parse_format(value);
    if (name == "part_size" && !options.part_size) options.part_size = parse_integer(value, 1, kMaxPartSize);
  }
}

/// Throws UsageError for options that pages do not have.
int embed_page_vectors(const EmbedOptions& options, ResultFormat format, EmbedPagesOf of_pages) {
  if (options.has_parts() || format == ResultFormat::npy)
    fail_usage("--output: the vectors of pages differ in number; use .npz, .safetensors or .jsonl");
  if (options.templates.are_given()) fail_usage("--template: questions to pages are used as they are");
  if (options.resume && format != ResultFormat::jsonl) fail_usage("--resume continues only .jsonl files");
  check_texts(options);
  TextsToEncode texts = read_texts_to_encode(options);
  if (texts.names.empty() && options.inputs.empty()) fail_usage("INPUT or --text is required");
  if (options.shard) take_shard(texts.names, *options.shard);
  return of_pages({.common = options.common,
                   .inputs = options.inputs,
                   .texts = texts.names,
                   .shard = options.shard,
                   .reads = options.text_files(),
                   .output = options.output,
                   .format = format,
                   .resume = options.resume});
}

int embed(EmbedOptions& options, EmbedPagesOf of_pages) {
  take_resumed(options);
  const ResultFormat format = format_of(options);
  if (options.features == kPageFeature) return embed_page_vectors(options, format, of_pages);
  check_usage(options, format);
  TextsToEncode texts = read_texts_to_encode(options);
  if (options.shard) take_shard(texts.names, *options.shard);
  if (options.inputs.empty()) return embed_texts(options, format, texts);
  const std::vector<std::filesystem::path> output{options.output}, none;
  Embedding work(options, format, std::move(texts));
  return run_images({.name = "embed",
                     .common = options.common,
                     .inputs = options.inputs,
                     .shard = options.shard,
                     .takes_videos = true,
                     .reads = options.text_files(),
                     .files = options.has_parts() ? none : output,
                     .writes = options.has_parts() ? output : none,
                     .digests = options.has_parts() ? Digests::sha256 : Digests::none},
                    work);
}

std::vector<std::string> with_pages(std::vector<std::string> names) {
  names.emplace_back(kPageFeature);
  return names;
}

/// Images, which are optional if there are texts.
Option optional_inputs(std::vector<std::string>& inputs) {
  Option option = inputs_option(inputs);
  option.is_required = false;
  return option;
}

}  // namespace

Command embed_command(EmbedPagesOf of_pages) {
  const auto options = std::make_shared<EmbedOptions>();
  Command command{
      .name = "embed",
      .summary = "Write features of images and vectors of texts to a file",
      .footer = "Features:\n" + features_help() + kPageHelp + kFooter,
      .options =
          {optional_inputs(options->inputs),
           {.name = "-o,--output",
            .type_name = "FILE",
            .help = "Ends in .npz, .npy, .safetensors or .jsonl; or FOLDER/, for parts of very many inputs",
            .target = text_target(options->output),
            .is_required = true},
           {.name = "--features",
            .type_name = "LIST",
            .help = "Comma-separated names, see below; default: the first of merged, projected, pooled and "
                    "patches that the model has",
            .target = offering(text_target(options->features), with_pages(feature_names()))},
           {.name = "--normalize",
            .type_name = "",
            .help = "Divide vectors of images and texts by their length",
            .flag = &options->normalize},
           {.name = "--part-size",
            .type_name = "N",
            .help = "Inputs per part of FOLDER/",
            .target = parsed_target(
                options->part_size,
                [](const std::string& value) { return parse_integer(value, 1, kMaxPartSize); },
                std::to_string(kPartSize))},
           {.name = "--format",
            .type_name = "FORMAT",
            .help = "Format of the parts of FOLDER/: npy, which takes one feature, or safetensors",
            .target = offering(parsed_target(options->format, parse_format, "npy"), {"npy", "safetensors"})},
           frames_option(options->common),
           shard_option(options->shard),
           {.name = "--resume",
            .type_name = "",
            .help = "Continue an interrupted run of the same inputs (.jsonl, FOLDER/)",
            .flag = &options->resume}},
      .run = [options, of_pages] { return embed(*options, of_pages); }};
  add_text_options(command.options, options->texts);
  add_template_options(command.options, options->templates);
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
