#include "apps/vit/options/options.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/config/patch.h"
#include "vit/machine.h"
#include "vit/position/rope.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/tower_architectures.h"
#include "vit/weights/families/timm_args.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr const char* kModelGroup = "Model";
constexpr const char* kPreprocessGroup = "Preprocessing";
constexpr const char* kRunGroup = "Running";

constexpr Named<ResamplerChoice> kResamplers[]{{"auto", ResamplerChoice::automatic},
                                               {"pillow", ResamplerChoice::pillow},
                                               {"torchvision", ResamplerChoice::torchvision}};
constexpr Named<ExifChoice> kExifRules[]{
    {"auto", ExifChoice::automatic}, {"apply", ExifChoice::apply}, {"ignore", ExifChoice::ignore}};
constexpr Named<Precision> kPrecisions[]{
    {"float32", Precision::float32}, {"bfloat16", Precision::bfloat16}, {"int8", Precision::int8}};
constexpr std::string_view kPortable = ":portable";  // after a name of kernels
constexpr Named<TextLibrary> kLibraries[]{{"auto", TextLibrary::automatic},
                                          {"transformers", TextLibrary::transformers},
                                          {"open_clip", TextLibrary::open_clip},
                                          {"openai", TextLibrary::openai}};
constexpr Named<ProgressMode> kProgressModes[]{
    {"auto", ProgressMode::automatic}, {"always", ProgressMode::always}, {"never", ProgressMode::never}};

constexpr std::size_t kMaxShards = 1'000'000'000;
constexpr std::size_t kMostPixels = 1'000'000'000'000;  // of --max-pixels

/// An integer from 1 to kMaxInputEdge, or 0.
std::size_t parse_edge(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && value <= kMaxInputEdge ? value : 0;
}

/// Stores read(value); its Error becomes wrong usage.
template <typename Read>
auto checked_by_library(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail_usage(error.message());
  }
}

PillowRelease parse_pillow(const std::string& release) {
  return checked_by_library([&] { return parse_pillow_release(release); });
}

std::string parse_kernels(const std::string& name) {
  return checked_by_library([&] { return find_kernels(not_empty(name)).name; });
}

/// --kernels and --bits in either order: the former names a table, the latter its arithmetics.
Target kernels_target(std::string& kernels) {
  return {[&kernels](const std::vector<std::string>& values) {
    const bool is_portable = kernels.ends_with(kPortable);
    kernels = parse_kernels(values.front());
    if (is_portable && !kernels.ends_with(kPortable))
      kernels = parse_kernels(kernels + std::string(kPortable));
  }};
}

Target bits_target(std::string& kernels) {
  return {[&kernels](const std::vector<std::string>& values) {
            if (values.front() != "portable" && values.front() != "fastest")
              fail_value("one of fastest, portable", values.front());
            if (values.front() == "portable" && !kernels.ends_with(kPortable))
              kernels = parse_kernels(kernels + std::string(kPortable));
          },
          "fastest",
          {"fastest", "portable"}};
}

std::string parse_architecture(const std::string& name) {
  // a dino.txt name gives the heads of the text tower (..._dinotxt_tet1280d20h24l): not in the table
  if (not_empty(name).find("_dinotxt_") != std::string::npos) return name;
  if (name.starts_with("depth_anything_")) return name;  // a head on an architecture of the table
  if (is_tower_architecture(name)) return name;
  checked_by_library([&] { find_architecture(name); });
  return name;
}

Shard parse_shard(const std::string& value) {
  const std::size_t slash = value.find('/');
  if (slash == std::string::npos) fail_value("I/N, such as 0/4", value);
  const std::size_t count = parse_integer(value.substr(slash + 1), 1, kMaxShards);
  return {.index = parse_integer(value.substr(0, slash), 0, count - 1), .count = count};
}

RopeScaling parse_scaling(const std::string& value) {
  return checked_by_library([&] { return position::parse_rope_scaling(value); });
}

AreaLimits parse_area_limits(const std::string& value) {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  const std::size_t colon = value.find(':');
  if (colon == std::string::npos) fail_value("MIN:MAX in pixels, such as 65536:1048576", value);
  const AreaLimits limits{.least = parse_integer(value.substr(0, colon), 0, kMost),
                          .most = parse_integer(value.substr(colon + 1), 1, kMost)};
  if (limits.least > limits.most) fail_value("MIN:MAX with MIN no more than MAX", value);
  return limits;
}

ChannelOrder parse_channels(const std::string& order) {
  if (order != "rgb" && order != "bgr") fail_value("rgb or bgr", order);
  return order == "bgr" ? ChannelOrder::bgr : ChannelOrder::rgb;
}

Target overrides_target(std::map<std::string, std::string>& overrides) {
  return {[&overrides](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const std::size_t equals = entry.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size())
        fail_value("KEY=VALUE", entry);
      overrides[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }};
}

void add_preprocess_options(std::vector<Option>& list, CommonOptions& options) {
  ModelOptions& preprocess = options.model_options;
  list.push_back({.name = "--size",
                  .type_name = "SIZE",
                  .help = "Input size: model, native, S or HxW",
                  .target = offering(parsed_target(options.session.input_size, parse_size, "model"),
                                     {"model", "native"}),
                  .group = kPreprocessGroup});
  list.push_back({.name = "--pixels",
                  .type_name = "MIN:MAX",
                  .help = "Limits of the area of an image, instead of the processor's (Qwen-VL, GLM-4V, ...)",
                  .target = parsed_target(preprocess.area_limits, parse_area_limits),
                  .group = kPreprocessGroup});
  list.push_back({.name = "--resampler",
                  .type_name = "NAME",
                  .help = "auto (as the checkpoint's library), pillow or torchvision",
                  .target = choice_target(preprocess.resampler, kResamplers),
                  .group = kPreprocessGroup});
  list.push_back({.name = "--pillow",
                  .type_name = "RELEASE",
                  .help = "Pillow release to reproduce bit-exactly, e.g. 12.1",
                  .target = parsed_target(preprocess.pillow, parse_pillow, "13"),
                  .group = kPreprocessGroup});
  list.push_back({.name = "--exif",
                  .type_name = "RULE",
                  .help = "EXIF orientation: auto (as the checkpoint's library), apply or ignore",
                  .target = choice_target(preprocess.exif, kExifRules),
                  .group = kPreprocessGroup});
  list.push_back({.name = "--pad",
                  .type_name = "COLOR",
                  .help = "Pad to a square before resizing: white, black, gray, #rrggbb or r,g,b",
                  .target = offering(parsed_target(preprocess.square_pad_color, parse_color),
                                     {"white", "black", "gray"}),
                  .group = kPreprocessGroup});
  list.push_back(
      {.name = "--channels",
       .type_name = "ORDER",
       .help = "Channel order of the model: rgb or bgr",
       .target = offering(parsed_target(preprocess.channels, parse_channels, "rgb"), {"rgb", "bgr"}),
       .group = kPreprocessGroup});
  for (const auto& [name, values, least] :
       {std::tuple("--mean", &preprocess.mean, -1e6), {"--std", &preprocess.std, 1e-6}})
    list.push_back(
        {.name = name,
         .type_name = "LIST",
         .help = "One number per channel of the model, or one for all; default: as the checkpoint says",
         .target = list_target(
             *values, [least = least](const std::string& value) { return parse_real(value, least, 1e6); }),
         .occurs = Occurs::list,
         .group = kPreprocessGroup});
  list.push_back({.name = "--max-pixels",
                  .type_name = "N",
                  .help = "Largest image that is decoded; larger ones are errors",
                  .target = integer_target(preprocess.max_pixels, std::size_t{1}, kMostPixels),
                  .group = kPreprocessGroup});
}

void add_batch_options(std::vector<Option>& list, SessionOptions& session) {
  list.push_back({.name = "--threads",
                  .type_name = "N",
                  .help = "Threads; 0 = OMP_NUM_THREADS, or all cores",
                  .target = integer_target(session.threads, 0, kMaxThreads),
                  .group = kRunGroup});
  list.push_back({.name = "--batch",
                  .type_name = "N",
                  .help = "Images per batch; 0 = chosen by vit; results do not depend on it",
                  .target = integer_target(session.batch, std::size_t{0}, kMaxBatch),
                  .group = kRunGroup});
}

void add_precision_option(std::vector<Option>& list, CommonOptions& options) {
  list.push_back(
      {.name = "--dtype",
       .type_name = "NAME",
       .help = "Precision of blocks and dense heads: float32, bfloat16 or int8 (converted while loading)",
       .target = choice_target(options.model_options.precision, kPrecisions),
       .group = kRunGroup});
}

void add_run_options(std::vector<Option>& list, CommonOptions& options) {
  list.push_back({.name = "--kernels",
                  .type_name = "NAME",
                  .help = "Kernels to compute with; vit info --kernels lists them",
                  .target = kernels_target(options.model_options.kernels),
                  .group = kRunGroup});
  list.push_back({.name = "--bits",
                  .type_name = "NAME",
                  .help = "fastest, or portable: bfloat16 and int8, too, have the same bits on every machine",
                  .target = bits_target(options.model_options.kernels),
                  .group = kRunGroup});
  list.push_back({.name = "--progress",
                  .type_name = "WHEN",
                  .help = "auto (on terminals), always or never",
                  .target = choice_target(options.progress, kProgressModes),
                  .group = kRunGroup});
  list.push_back({.name = "--quiet",
                  .type_name = "",
                  .help = "No progress; errors are still reported",
                  .flag = &options.quiet,
                  .group = kRunGroup});
}

}  // namespace

void add_model_options(std::vector<Option>& list, CommonOptions& options) {
  ModelOptions& load = options.model_options;
  list.push_back({.name = "--model",
                  .type_name = "PATH",
                  .help = "Checkpoint folder, .safetensors or .pth file; default: the model shipped with vit",
                  .target = text_target(options.model),
                  .group = kModelGroup});
  list.push_back({.name = "--architecture",
                  .type_name = "NAME",
                  .help = "Architecture of a bare weight file, named as timm or its publisher names it",
                  .target = parsed_target(load.architecture, parse_architecture),
                  .group = kModelGroup});
  list.push_back({.name = "--layout",
                  .type_name = "FILE",
                  .help = "JSON file that describes a custom checkpoint: vit/weights/layouts.md",
                  .target = text_target(load.layout),
                  .group = kModelGroup});
  list.push_back({.name = "--prefix",
                  .type_name = "NAME",
                  .help =
                      "Selects one of several models in a file by the prefix of its tensor names; default: "
                      "averaged weights, else the teacher, else the only one",
                  .target = text_target(load.prefix),
                  .group = kModelGroup});
  list.push_back({.name = "--adapter",
                  .type_name = "FOLDER",
                  .help = "LoRA adapter of PEFT, merged into the weights while loading",
                  .target = text_target(load.adapter),
                  .group = kModelGroup});
  list.push_back(
      {.name = "--rope-scaling",
       .type_name = "RULE",
       .help = "RoPE extrapolation rule for other sizes than trained: none, linear, ntk or yarn, "
               "with [,key=value...]; default: as the checkpoint's library",
       .target = offering(parsed_target(load.rope_scaling, parse_scaling), {"none", "linear", "ntk", "yarn"}),
       .group = kModelGroup});
  list.push_back({.name = "--set",
                  .type_name = "KEY=VALUE",
                  .help = "Override a configuration value by timm's name: num_heads=6, img_size=256x256",
                  .target = overrides_target(load.overrides),
                  .occurs = Occurs::repeated,
                  .group = kModelGroup});
  list.push_back(
      {.name = "--tokenizer",
       .type_name = "PATH",
       .help = "Folder of a tokenizer, or file with CLIP's merges; supplies the vocabulary if the model "
               "has none",
       .target = text_target(options.tokenizer),
       .group = kModelGroup});
  list.push_back(
      {.name = "--library",
       .type_name = "NAME",
       .help = "Library whose text cleaning rules apply: auto (the model's), transformers, open_clip, openai",
       .target = choice_target(options.library, kLibraries),
       .group = kModelGroup});
}

void add_common_options(std::vector<Option>& list, CommonOptions& options, BatchOptions batch_options) {
  const std::size_t first = list.size();
  add_model_options(list, options);
  add_preprocess_options(list, options);
  remember_options(list, first, options);
  if (batch_options == BatchOptions::single) {
    add_batch_options(list, options.session);
    add_precision_option(list, options);
  }
  add_run_options(list, options);
  for (Option& option : std::span(list).subspan(first)) {
    if (option.flag != nullptr) continue;
    option.target.store = [&options, name = option.name,
                           store = option.target.store](const std::vector<std::string>& values) {
      store(values);
      options.said.insert(name);
    };
  }
}

void remember_options(std::vector<Option>& list, std::size_t first, CommonOptions& options) {
  // those that RunModel keeps, and one that does not affect results
  constexpr std::string_view kOthers[] = {"--model", "--size", "--pad", "--channels", "--max-pixels"};
  for (Option& option : std::span(list).subspan(first)) {
    if (std::ranges::find(kOthers, option.name) != std::end(kOthers)) continue;
    const bool is_path =
        option.type_name == "FILE" || option.type_name == "FOLDER" || option.type_name == "PATH";
    option.target.store = [&options, is_path, name = option.name,
                           store = option.target.store](const std::vector<std::string>& values) {
      store(values);
      std::vector<std::string>& kept = options.given[name] = values;
      for (std::string& value : kept) {
        if (is_path) value = std::filesystem::absolute(value).lexically_normal().string();
      }
    };
  }
}

void repeat_options(std::span<const Option> list,
                    const std::map<std::string, std::vector<std::string>>& saved,
                    const CommonOptions& options, const std::string& source) {
  const auto given = options.given;  // the targets write to it
  for (const auto& [name, values] : saved) {
    if (given.contains(name)) continue;
    const auto option = std::ranges::find(list, name, &Option::name);
    VIT_CHECK(option != list.end() && option->target.store, (Where{"options", ErrorKind::unsupported}),
              source, ": has the option ", printable(name), ", which this release does not support");
    try {
      option->target.store(values);
    } catch (const UsageError& error) {
      fail(Where{"options", ErrorKind::format}, source, ": ", name, ": ", error.what());
    }
  }
}

void add_image_run_options(std::vector<Option>& list, CommonOptions& options) {
  list.push_back({.name = "--sandbox",
                  .type_name = "",
                  .help = "Sandbox for untrusted images: restricts the process to reading its inputs and the "
                          "model and writing to the folders of its outputs (Linux)",
                  .flag = &options.sandbox,
                  .group = kRunGroup});
  add_common_options(list, options);
}

Option inputs_option(std::vector<std::string>& inputs) {
  return {.name = "INPUT",
          .type_name = "",
          .help =
              "Images, folders (all images below), .tar files (all images in them), .npy files (preprocessed "
              "pixels), or - for paths on standard input",
          .target = list_target(inputs, [](const std::string& input) { return input; }),
          .occurs = Occurs::all_positionals,
          .is_required = true};
}

Option frames_option(CommonOptions& options) {
  constexpr std::size_t kMostFrames = 4096;
  return {.name = "--frames",
          .type_name = "N",
          .help =
              "Each INPUT is a clip, a video or a folder of frames, of which N are taken (Qwen-VL, GLM-4V, "
              "V-JEPA 2)",
          .target = parsed_target(options.model_options.clip_frames, [](const std::string& value) {
            return parse_integer(value, 1, kMostFrames);
          })};
}

Option shard_option(std::optional<Shard>& shard) {
  return {
      .name = "--shard",
      .type_name = "I/N",
      .help =
          "Process only part I, from 0, of N contiguous parts of the inputs; the N outputs in order equal "
          "that of one run",
      .target = parsed_target(shard, parse_shard)};
}

Option labels_option(std::filesystem::path& labels) {
  return {.name = "--labels",
          .type_name = "FILE",
          .help =
              "Names of the classes: one per line; JSON, a list or an object by index or by name; CSV or TSV "
              "with a header",
          .target = text_target(labels)};
}

Precision parse_precision(const std::string& name) {
  Precision precision{};
  choice_target(precision, kPrecisions).store({name});
  return precision;
}

InputSize parse_size(const std::string& size) {
  if (size == "model") return {};
  if (size == "native") return {.kind = InputSize::Kind::native};
  const std::string_view edges = size;
  const std::size_t cross = edges.find('x');
  const std::size_t height = parse_edge(edges.substr(0, cross));
  const std::size_t width = cross == std::string_view::npos ? height : parse_edge(edges.substr(cross + 1));
  if (height == 0 || width == 0)
    fail_value(text("model, native, S or HxW with edges from 1 to ", kMaxInputEdge), size);
  return {.kind = InputSize::Kind::fixed, .height = height, .width = width};
}

}  // namespace vit::app
