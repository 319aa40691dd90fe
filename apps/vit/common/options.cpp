#include "apps/vit/common/options.h"

#include <algorithm>
#include <charconv>

#include "apps/vit/common/data_dir.h"
#include "apps/vit/common/text_format.h"
#include "apps/vit/common/usage_error.h"
#include "vit/base/error.h"
#include "vit/kernels/kernels.h"
#include "vit/weights/folder_files.h"
#include "vit/weights/preprocess_config.h"
#include "vit/weights/timm_args.h"

namespace vit::app {
namespace {

constexpr const char* kModelGroup = "Model";
constexpr const char* kPreprocessGroup = "Preprocessing";
constexpr const char* kRunGroup = "Running";
constexpr std::size_t kMaxEdge = 32768;  // the limit of the model's configuration

/// A whole number from 1 to kMaxEdge, or 0.
std::size_t parse_edge(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && value <= kMaxEdge ? value : 0;
}

std::map<std::string, std::string> parse_overrides(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> out;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      fail_usage("--set takes KEY=VALUE, found '", entry, "'");
    }
    out[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return out;
}

/// What read() makes of the value of an option; its Error is wrong usage.
template <typename Read>
auto read_option(const char* option, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail_usage(option, ": ", error.what());
  }
}

PillowRelease parse_pillow(const std::string& release) {
  return read_option("--pillow", [&] { return parse_pillow_release(release); });
}

ResamplerChoice parse_resampler(const std::string& name) {
  if (name == "pillow") return ResamplerChoice::pillow;
  return name == "torchvision" ? ResamplerChoice::torchvision : ResamplerChoice::automatic;
}

ExifChoice parse_exif(const std::string& name) {
  if (name == "apply") return ExifChoice::apply;
  return name == "ignore" ? ExifChoice::ignore : ExifChoice::automatic;
}

/// Takes back what protected_from_cli11 did to an INPUT.
std::string unprotected_from_cli11(std::string& input) {
  if (input.starts_with("./[") || input.starts_with("././[")) input.erase(0, 2);
  return "";
}

}  // namespace

void add_common_options(CLI::App& command, CommonOptions& options, BatchOptions batch_options) {
  command
      .add_option("--model", options.model,
                  "Checkpoint folder, .safetensors or .pth file; default the model that ships with vit")
      ->type_name("PATH")
      ->check(not_empty())
      ->group(kModelGroup);
  command
      .add_option("--architecture", options.architecture,
                  "Architecture of a bare weight file, as timm or the publisher names it")
      ->type_name("NAME")
      ->check(not_empty())
      ->group(kModelGroup);
  command
      .add_option("--set", options.set, "Overrides a value, by timm's names: num_heads=6, img_size=256x256")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kModelGroup);
  command.add_option("--size", options.size, "What preprocessing makes: model, native, S or HxW")
      ->type_name("SIZE")
      ->capture_default_str()
      ->group(kPreprocessGroup);
  command
      .add_option("--resampler", options.resampler,
                  "auto, pillow or torchvision; auto = as the checkpoint's library")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "pillow", "torchvision"}).description(""))
      ->capture_default_str()
      ->group(kPreprocessGroup);
  command.add_option("--pillow", options.pillow, "Release of Pillow whose bytes are made, such as 12.1")
      ->type_name("RELEASE")
      ->capture_default_str()
      ->group(kPreprocessGroup);
  command
      .add_option("--exif", options.exif,
                  "auto, apply or ignore the orientation; auto = as the checkpoint's library")
      ->type_name("RULE")
      ->check(CLI::IsMember({"auto", "apply", "ignore"}).description(""))
      ->capture_default_str()
      ->group(kPreprocessGroup);
  if (batch_options == BatchOptions::single) {
    command.add_option("--threads", options.threads, "Threads; 0 = all")
        ->type_name("N")
        ->check(whole_number())
        ->check(CLI::Range(0, kMaxThreads).description(""))
        ->capture_default_str()
        ->group(kRunGroup);
    command
        .add_option("--batch", options.batch,
                    "Images computed together; 0 = chosen by vit; results do not depend on it")
        ->type_name("N")
        ->check(whole_number())
        ->check(CLI::Range(std::size_t{0}, kMaxBatch).description(""))
        ->capture_default_str()
        ->group(kRunGroup);
  }
  command
      .add_option("--dtype", options.dtype,
                  "Arithmetic of the blocks: float32, bfloat16 or int8 (rounded or quantised while loading)")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kRunGroup);
  command.add_option("--kernels", options.kernels, "Kernels to compute with; vit info --kernels lists them")
      ->type_name("NAME")
      ->check(not_empty())
      ->group(kRunGroup);
  command.add_option("--progress", options.progress, "auto (on terminals), always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->capture_default_str()
      ->group(kRunGroup);
  command.add_flag("--quiet", options.quiet, "No progress; errors are still reported")->group(kRunGroup);
}

void add_inputs(CLI::App& command, std::vector<std::string>& inputs) {
  command
      .add_option("INPUT", inputs,
                  "Images, folders (all images below), .npy files (prepared pixels), or - for paths on "
                  "standard input")
      ->type_name("")
      ->transform(CLI::Validator(unprotected_from_cli11, ""))
      ->required();
}

std::vector<std::string> protected_from_cli11(std::vector<std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size())
      throw CLI::ArgumentMismatch(argument.substr(0, argument.size() - 1) + ": is empty");
  }
  for (std::string& argument : arguments) {
    if (argument.starts_with("[") || argument.starts_with("./[")) argument.insert(0, "./");
  }
  return arguments;
}

CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& value) {
        const bool is_decimal = !value.empty() && (value == "0" || value.front() != '0') &&
                                value.find_first_not_of("0123456789") == std::string::npos;
        return is_decimal ? "" : "a whole number expected, found '" + printable(value) + "'";
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& value) { return value.empty() ? "is empty" : ""; }, "");
}

Dtype parse_dtype(std::string_view name) {
  if (name == "float32") return Dtype::f32;
  if (name == "bfloat16") return Dtype::bf16;
  if (name == "int8") return Dtype::i8;
  fail_usage("--dtype: expected float32, bfloat16 or int8, found '", name, "'");
}

void validate(const CommonOptions& options) {
  parse_dtype(options.dtype);
  parse_size(options.size);
  parse_pillow(options.pillow);
  parse_overrides(options.set);
  if (!options.kernels.empty()) read_option("--kernels", [&] { kernels::find_kernels(options.kernels); });
  if (!options.architecture.empty())
    read_option("--architecture", [&] { find_architecture(options.architecture); });
}

void validate_with_weights(const CommonOptions& options) {
  validate(options);
  if (options.model.empty() && !options.architecture.empty())
    fail_usage("--architecture names the architecture of a weight file: give --model");
}

void check_no_weights(const std::filesystem::path& output, const CommonOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return;
  if (options.model.empty() && !options.architecture.empty()) return;
  for (const std::filesystem::path& file : weight_files(model_path(options))) {
    if (std::filesystem::equivalent(file, output, error))
      fail_usage("--output: ", output.string(), " is a weight file of the model; name another file");
  }
}

InputSize parse_size(std::string_view size, std::string_view option) {
  if (size == "model") return {};
  if (size == "native") return {.kind = InputSize::Kind::native};
  const std::size_t cross = size.find('x');
  const std::size_t height = parse_edge(size.substr(0, cross));
  const std::size_t width = cross == std::string_view::npos ? height : parse_edge(size.substr(cross + 1));
  if (height == 0 || width == 0) {
    fail_usage(option, ": model, native, S or HxW with edges from 1 to ", kMaxEdge, " expected, found '",
               printable(size), "'");
  }
  return {.kind = InputSize::Kind::fixed, .height = height, .width = width};
}

ImageSize bench_size(std::string_view size, const ModelConfig& config, std::string_view option) {
  const InputSize parsed = parse_size(size, option);
  if (parsed.kind == InputSize::Kind::native)
    fail_usage(option, ": native is the size of a picture, and there is none");
  if (parsed.kind == InputSize::Kind::model) return {config.image_height, config.image_width};
  return {parsed.height, parsed.width};
}

ModelOptions to_model_options(const CommonOptions& options) {
  return {.load = {.architecture = options.architecture, .overrides = parse_overrides(options.set)},
          .preprocess = {.resampler = parse_resampler(options.resampler),
                         .pillow = parse_pillow(options.pillow),
                         .exif = parse_exif(options.exif)},
          .kernels = options.kernels,
          .dtype = parse_dtype(options.dtype)};
}

SessionOptions to_session_options(const CommonOptions& options) {
  return {.threads = options.threads, .batch = options.batch, .input_size = parse_size(options.size)};
}

ProgressMode to_progress_mode(const CommonOptions& options) {
  if (options.quiet || options.progress == "never") return ProgressMode::never;
  return options.progress == "always" ? ProgressMode::always : ProgressMode::automatic;
}

std::filesystem::path model_path(const CommonOptions& options) {
  if (!options.model.empty()) return options.model;
  const std::filesystem::path shipped = data_dir() / "model";
  VIT_CHECK(std::filesystem::exists(shipped), "load model", shipped.string(),
            ": the model that ships with vit is not there; name one with --model");
  return shipped;
}

std::shared_ptr<const Model> load_model(const CommonOptions& options) {
  return Model::load(model_path(options), to_model_options(options));
}

}  // namespace vit::app
