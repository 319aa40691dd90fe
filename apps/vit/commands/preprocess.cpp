// vit preprocess: writes the model input to a file.
#include <array>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/commands/model_facts.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/options.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/run/ordered_stream.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/checkpoint.h"
#include "vit/image/preprocess.h"
#include "vit/machine.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr const char* kExamples =
    "The configuration files of a checkpoint folder are sufficient for --model.\n"
    "Examples:\n"
    "  vit preprocess photo.jpg --output photo.png\n"
    "  vit preprocess --model vit_base/ photos/ --output pixels.npz\n"
    "  vit preprocess --model vit_base/ --stage cropped photos/ --output cropped.safetensors";

enum class Stage { automatic, pixels, cropped };  // automatic: pixels, for .png cropped
constexpr Named<Stage> kStages[]{{"pixels", Stage::pixels}, {"cropped", Stage::cropped}};

struct PreprocessOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::optional<Shard> shard;
  Stage stage = Stage::automatic;
};

/// One input after the requested stage, or the reason it failed.
struct Prepared {
  Tensor<float> pixels;  // (K, H, W), normalized
  Image cropped;
  std::string failure;

  std::size_t bytes() const noexcept {
    return (pixels.empty() ? 0 : pixels.num_elements() * sizeof(float)) +
           cropped.height() * cropped.row_stride();
  }
  ResultArray array() const {
    if (!cropped.empty()) {
      return {.dtype = Dtype::u8, .shape = {cropped.height(), cropped.width(), 3}, .data = cropped.data()};
    }
    return ResultArray::of(pixels.view());
  }
};

/// `preprocessor` is null if no file of the model defines the rules.
Prepared prepare(const Input& input, const Preprocessor* preprocessor, bool is_cropped) noexcept {
  Prepared prepared;
  try {
    if (input.pixels) {
      VIT_CHECK(!is_cropped, "preprocess", "preprocessed pixels have no cropped stage");
      prepared.pixels = input.pixels->load(input.pixels_index);
      return prepared;
    }
    VIT_CHECK(preprocessor != nullptr, "preprocess", "no file of the model defines the preprocessing");
    if (is_cropped) {
      const Image image = decode_input(input, preprocessor->decode_options());
      prepared.cropped = preprocessor->crop_stage(image);
    } else {
      prepared.pixels = preprocess_input(input, *preprocessor);
    }
  } catch (const std::bad_alloc&) {
    prepared.failure = "not enough memory for an image of this size; try a smaller --size";
  } catch (const std::exception& error) {
    prepared.failure = error.what();
  }
  return prepared;
}

/// The output: a file of arrays or one image.
class OutputFile {
 public:
  OutputFile(const std::filesystem::path& path, ResultFormat format, const std::string& name,
             std::optional<std::vector<ResultArray>> row_shapes)
      : path_(path) {
    if (format != ResultFormat::png)
      writer_ = make_result_writer(
          {.path = path, .format = format, .names = {name}, .row_shapes = std::move(row_shapes)});
  }
  /// Why the format cannot hold it, or "" if it was added.
  std::string add(const Input& input, Prepared prepared) {
    if (writer_) return writer_->add(input.name, std::array{prepared.array()});
    image_ = std::move(prepared.cropped);
    return "";
  }
  void finish() {
    if (writer_) return writer_->finish();
    if (!image_.empty()) write_png(path_, image_);
  }
  std::string summary() const { return writer_ ? writer_->summary() : "one image"; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<ResultWriter> writer_;
  Image image_;
};

/// The shape of a row, that of a black image, if a part without inputs may need it.
std::optional<std::vector<ResultArray>> row_shapes(const PreprocessOptions& options,
                                                   const Preprocessor* preprocessor, bool is_cropped,
                                                   bool has_inputs) {
  if (!options.shard || (has_inputs && preprocessor == nullptr)) return std::nullopt;
  if (preprocessor == nullptr) fail_without_preprocess_config(model_path(options.common));
  const Image image(224, 224);
  if (is_cropped) {
    const Image cropped = preprocessor->crop_stage(image.view());
    return {{{.dtype = Dtype::u8, .shape = {cropped.height(), cropped.width(), 3}}}};
  }
  const std::size_t num_frames = options.common.model_options.clip_frames;
  const Tensor<float> pixels = num_frames == 0
                                   ? preprocessor->run(image.view())
                                   : preprocessor->run_clip(std::vector<ImageView>(num_frames, image.view()));
  return {{{.dtype = Dtype::f32, .shape = pixels.shape()}}};
}

bool takes_cropped(const PreprocessOptions& options, ResultFormat format) {
  if (format == ResultFormat::png && options.shard) fail_usage("--shard: a .png holds one image");
  if (format == ResultFormat::png && options.stage == Stage::pixels)
    fail_usage("--output: .png files hold the stage cropped; found --stage pixels");
  return format == ResultFormat::png || options.stage == Stage::cropped;
}

/// A run without a model: preprocessing rules and the output of their results.
class Preprocessing : public ImageWork {
 public:
  Preprocessing(const PreprocessOptions& options, ResultFormat format)
      : options_(options), format_(format), is_cropped_(takes_cropped(options, format)) {}

  std::optional<Request> load(ImageRun& run) override {
    if (format_ == ResultFormat::png && run.inputs().size() > 1) {
      fail_usage("--output: a .png holds one image, found ", run.inputs().size(),
                 "; use .npz or .safetensors");
    }
    if (!options_.common.is_architecture_alone())
      check_no_weights(std::array{options_.output},
                       vit::Checkpoint(model_path(options_.common)).weight_files());
    preprocessor_ = find_preprocessor(options_.common);
    const Preprocessor* const preprocessor = preprocessor_ ? &*preprocessor_ : nullptr;
    if (preprocessor == nullptr && (is_cropped_ || are_images(run.inputs())))
      fail_without_preprocess_config(model_path(options_.common));
    VIT_CHECK(!is_cropped_ || preprocessor->has_crop_stage(), "preprocess", preprocessor->config().source,
              ": resizes in float, so there is no 8-bit stage cropped; use --stage pixels and an array file");
    hold_interrupts();
    output_.emplace(options_.output, format_, is_cropped_ ? "cropped" : "pixels",
                    row_shapes(options_, preprocessor, is_cropped_, !run.inputs().empty()));
    return Request();
  }

  void run_inputs(ImageRun& run, const Request&) override {
    const std::vector<Input>& inputs = run.inputs();
    const Preprocessor* const preprocessor = preprocessor_ ? &*preprocessor_ : nullptr;
    OrderedStream<Prepared> stream(
        inputs.size(), [&](std::size_t index) { return prepare(inputs[index], preprocessor, is_cropped_); },
        {.threads = num_threads(options_.common.session.threads)});
    run.for_each_input([&](std::size_t index) {
      Prepared prepared = *stream.next();
      std::string failure = prepared.failure;
      return failure.empty() ? output_->add(inputs[index], std::move(prepared)) : failure;
    });
  }

  int finish(ImageRun& run) override {
    output_->finish();
    run.progress().finish(options_.output.string() + ": " + output_->summary());
    return 0;
  }

 private:
  const PreprocessOptions& options_;
  const ResultFormat format_;
  const bool is_cropped_;
  std::optional<Preprocessor> preprocessor_;  // nothing if no file of the model has the rules
  std::optional<OutputFile> output_;
};

int preprocess(const PreprocessOptions& options) {
  constexpr std::array kFormats{ResultFormat::npz, ResultFormat::npy, ResultFormat::safetensors,
                                ResultFormat::png};
  const ResultFormat format = result_format(options.output, kFormats);
  Preprocessing work(options, format);
  return run_images({.name = "preprocess",
                     .common = options.common,
                     .inputs = options.inputs,
                     .shard = options.shard,
                     .files = {options.output}},
                    work);
}

}  // namespace

Command preprocess_command() {
  const auto options = std::make_shared<PreprocessOptions>();
  Command command{
      .name = "preprocess",
      .summary = "Write preprocessed inputs to a file",
      .footer = kExamples,
      .options = {inputs_option(options->inputs),
                  {.name = "-o,--output",
                   .type_name = "FILE",
                   .help = "Ends in .npz, .npy or .safetensors, or .png for one image",
                   .target = text_target(options->output),
                   .is_required = true},
                  {.name = "--stage",
                   .type_name = "STAGE",
                   .help =
                       "pixels: (n, 3, H, W) float32, normalized, the default; cropped: (n, H, W, 3) uint8, "
                       "before normalization",
                   .target = choice_target(options->stage, kStages)},
                  frames_option(options->common),
                  shard_option(options->shard)},
      .run = [options] { return preprocess(*options); }};
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
