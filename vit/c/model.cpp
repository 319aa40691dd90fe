// Models, inputs and preprocessing of the C interface.
#include "vit/c.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/position/rope.h"
#include "vit/weights/checkpoint/config_json.h"

namespace vit::internal {
namespace {

template <typename T>
std::vector<T> numbers_of(const T* numbers, std::size_t count, const char* name) {
  const std::span<const T> all = span_of(numbers, count, name);
  return {all.begin(), all.end()};
}

DenseOptions dense_options(const vit_model_options& options) {
  DenseOptions out{.head = text_or_empty(options.dense_head),
                   .taps = numbers_of(options.dense_taps, options.num_dense_taps, "dense_taps")};
  const float* const range = options.dense_depth_range;
  if (range[0] != 0.0f || range[1] != 0.0f) out.depth_range = {range[0], range[1]};
  VIT_CHECK(options.dense_max_depth >= 0.0f && std::isfinite(options.dense_max_depth), kCall,
            "dense_max_depth is ", options.dense_max_depth);
  if (options.dense_max_depth != 0.0f) out.max_depth = options.dense_max_depth;
  out.resize_rule = enum_of(options.dense_resize_rule, ResizeRuleChoice::repository, "dense_resize_rule");
  out.expert = options.dense_expert;
  return out;
}

PillowRelease pillow_release(std::int32_t release) {
  switch (release) {
    case VIT_PILLOW_13_0: return PillowRelease::from_13_0;
    case VIT_PILLOW_12_2: return PillowRelease::from_12_2;
    case VIT_PILLOW_12_1: return PillowRelease::up_to_12_1;
    default: fail(kCall, "pillow is ", release, ", an undefined number");
  }
}

ImageView pixels_of(const vit_input& input) {
  const PixelFormat format = enum_of(input.format, PixelFormat::gray, "format");
  return {static_cast<const std::uint8_t*>(input.data),
          input.height,
          input.width,
          {.format = format, .row_stride = input.row_stride}};
}

/// Copied when needed: the input of the model is in its own memory.
LoadPixels preprocessed_of(const vit_input& input, std::size_t num_channels) {
  const std::size_t planes = checked_mul(num_channels, std::max<std::size_t>(input.num_frames, 1), kCall);
  return [data = input.data, shape = Shape{planes, input.height, input.width}] {
    VIT_CHECK(data != nullptr && shape.num_elements() > 0, kCall, "preprocessed pixels of shape ",
              shape.to_string(), data == nullptr ? " at NULL" : "");
    Tensor<float> out(shape);
    std::memcpy(out.data(), data, out.flat().size_bytes());
    return out;
  };
}

Preprocessor preprocessor_of(const PreprocessConfig& config, const vit_size_options& size,
                             std::size_t patch_size) {
  return {config, input_size(size.kind, size.height, size.width), patch_size};
}

std::unique_ptr<vit_preprocessor> make_preprocessor(Preprocessor preprocessor, const vit_size_options& size) {
  VIT_CHECK(size.threads >= 0, kCall, "threads is ", size.threads);
  resolve_threads(size.threads);  // refuses too many
  std::string description = preprocessor.describe();
  return std::unique_ptr<vit_preprocessor>(new vit_preprocessor{.preprocessor = std::move(preprocessor),
                                                                .threads = size.threads,
                                                                .description = std::move(description)});
}

/// The image of an input, decoded into `memory` unless it is pixels.
ImageView image_of(const ImageSource& source, const DecodeOptions& options, Image& memory) {
  if (const auto* const view = std::get_if<ImageView>(&source)) return *view;
  if (const auto* const path = std::get_if<std::filesystem::path>(&source)) {
    memory = decode_file(*path, options);
  } else if (const auto* const bytes = std::get_if<std::span<const std::byte>>(&source)) {
    memory = decode_bytes(*bytes, options, "image in memory");
  } else {
    fail(kCall, "preprocessed pixels cannot be preprocessed");
  }
  return memory.view();
}

/// The frames that the rules take of those of a clip, preprocessed when needed.
LoadPixels clip_of(const vit_input& clip, const Preprocessor* preprocessor) {
  VIT_CHECK(
      preprocessor != nullptr, kCall,
      "a clip, which only vit_session_run() and vit_preprocessor_run() of models with preprocessing take");
  VIT_CHECK(preprocessor->config().clip_frames > 0, kCall,
            "a clip for a model that was loaded for images; clip_frames of vit_model_options says how many "
            "frames a clip has");
  return [frames = InputList(&object_at(clip.frames, "frames of a clip"), clip.num_frames), preprocessor] {
    const std::vector<std::size_t> taken = sample_frames(preprocessor->config(), frames.size());
    std::vector<Image> images(taken.size());
    std::vector<ImageView> views;
    for (std::size_t i = 0; i < taken.size(); ++i)
      views.push_back(image_of(frames[taken[i]], preprocessor->decode_options(), images[i]));
    return preprocessor->run_clip(views);
  };
}

/// The pixels of an input that is an image file.
FilePixels pixels_of(const ImageSource& source, const Preprocessor& preprocessor) {
  PreprocessMemory memory;
  if (const auto* const path = std::get_if<std::filesystem::path>(&source))
    return preprocessor.run_file(*path, memory);
  if (const auto* const bytes = std::get_if<std::span<const std::byte>>(&source))
    return preprocessor.run_bytes(*bytes, "image in memory", memory);
  fail(kCall, "preprocessed pixels cannot be preprocessed");
}

/// One input after a stage, or the reason it failed.
struct Preprocessed {
  Tensor<float> pixels;  // (3, H, W)
  Image cropped;
  ImageSize size;  // of the image
  std::string failure;
  ErrorKind kind = ErrorKind::io;
};

Preprocessed preprocess(const Preprocessor& preprocessor, const InputList& inputs, std::size_t index,
                        std::uint32_t stage) {
  Preprocessed out;
  try {
    const ImageSource source = inputs[index];
    if (inputs.is_clip(index)) {
      VIT_CHECK(stage == VIT_PIXELS, kCall.with(ErrorKind::unsupported),
                "a clip has VIT_PIXELS only, no 8-bit stage");
      out.pixels = std::get<LoadPixels>(source)();
      out.size = {out.pixels.dim(1), out.pixels.dim(2)};
    } else if (stage == VIT_CROPPED || std::holds_alternative<ImageView>(source)) {
      Image memory;
      const ImageView image = image_of(source, preprocessor.decode_options(), memory);
      out.size = image.size();
      if (stage == VIT_CROPPED) {
        out.cropped = preprocessor.crop_stage(image);
      } else {
        out.pixels = preprocessor.run(image);
      }
    } else {
      FilePixels file = pixels_of(source, preprocessor);
      out.size = file.image_size;
      out.pixels = std::move(file.pixels);
    }
  } catch (const Error& error) {
    out.failure = error.what();
    out.kind = error.kind();
  } catch (const std::bad_alloc&) {
    out.failure = "not enough memory for an image of this size";
  } catch (const std::exception& error) {
    out.failure = error.what();
  }
  return out;
}

void store(const Preprocessed& from, std::size_t index, std::uint32_t stage, vit_results& results) {
  if (!from.failure.empty()) return results.fail(index, from.kind, from.failure);
  results.set_size(index, from.size);
  if (stage == VIT_CROPPED) {
    results.column({stage}, VIT_UINT8)
        .put(index, from.cropped.data(), {from.cropped.height(), from.cropped.width(), 3});
  } else {
    results.column({stage}, VIT_FLOAT32).put(index, from.pixels.data(), from.pixels.shape());
  }
}

}  // namespace

InputList::InputList(const vit_input* inputs, std::size_t count, std::size_t num_channels,
                     const Preprocessor* of_clips)
    : first_(reinterpret_cast<const char*>(inputs)),
      count_(count),
      stride_(0),
      num_channels_(num_channels),
      of_clips_(of_clips) {
  static_cast<void>(span_of(inputs, count, "inputs"));
  if (count == 0) return;
  stride_ = inputs->struct_size;
  static_cast<void>(read(0));  // others lie at multiples of its size, which may be no size
}

vit_input InputList::read(std::size_t index) const {
  vit_input input{};
  read_struct(first_ + index * stride_, &input, sizeof input, "inputs");
  VIT_CHECK(input.struct_size == stride_, kCall, "inputs have different values of struct_size");
  return input;
}

bool InputList::is_clip(std::size_t index) const {
  return read(index).kind == VIT_INPUT_CLIP;
}

ImageSource InputList::operator[](std::size_t index) const {
  const vit_input input = read(index);
  switch (input.kind) {
    case VIT_INPUT_PATH: return std::filesystem::path(&object_at(input.path, "path of an input"));
    case VIT_INPUT_ENCODED:
      return std::as_bytes(span_of(static_cast<const char*>(input.data), input.size, "data of an input"));
    case VIT_INPUT_PIXELS: return pixels_of(input);
    case VIT_INPUT_PREPROCESSED: return preprocessed_of(input, num_channels_);
    case VIT_INPUT_CLIP: return clip_of(input, of_clips_);
    default: fail(kCall, "kind of an input is ", input.kind, ", an undefined number");
  }
}

ModelOptions model_options(const vit_model_options* given) {
  const vit_model_options options = options_of(given, "vit_model_options");
  ModelOptions out;
  out.architecture = text_or_empty(options.architecture);
  const std::vector<std::string> pairs =
      strings_of(options.overrides, checked_mul(options.num_overrides, 2, kCall), "overrides");
  for (std::size_t i = 0; i < pairs.size(); i += 2) out.overrides[pairs[i]] = pairs[i + 1];
  out.layout = text_or_empty(options.layout);
  out.kernels = text_or_empty(options.kernels);
  out.precision = enum_of(options.precision, Precision::int8, "precision");
  out.resampler = enum_of(options.resampler, ResamplerChoice::torchvision, "resampler");
  out.pillow = pillow_release(options.pillow);
  out.exif = enum_of(options.exif, ExifChoice::ignore, "exif");
  if (options.channels != VIT_CHANNELS_AUTO)
    out.channels = enum_of(std::int64_t{options.channels} - VIT_CHANNELS_RGB, ChannelOrder::bgr, "channels");
  const std::uint8_t* const color = options.pad_color;
  out.adapter = text_or_empty(options.adapter);
  out.prefix = text_or_empty(options.prefix);
  if (options.rope_scaling != nullptr) out.rope_scaling = position::parse_rope_scaling(options.rope_scaling);
  if (options.max_pixels != 0) out.max_pixels = options.max_pixels;
  if (options.pads_to_square != 0) out.square_pad_color = {color[0], color[1], color[2]};
  if (options.min_area != 0 || options.max_area != 0)
    out.area_limits = AreaLimits{.least = options.min_area, .most = options.max_area};
  out.mean = numbers_of(options.mean, options.num_means, "mean");
  out.std = numbers_of(options.std, options.num_stds, "std");
  out.dense = dense_options(options);
  out.clip_frames = options.clip_frames;
  return out;
}

InputSize input_size(std::int32_t kind, std::size_t height, std::size_t width) {
  InputSize out{.kind = enum_of(kind, InputSize::Kind::fixed, "kind of the input size")};
  if (out.kind != InputSize::Kind::fixed) return out;
  VIT_CHECK(height >= 1 && height <= kMaxInputEdge && width >= 1 && width <= kMaxInputEdge, kCall,
            "input size of ", height, " x ", width, " pixels, expected edges from 1 to ", kMaxInputEdge);
  out.height = height;
  out.width = width;
  return out;
}

std::unique_ptr<vit_model> make_model(std::shared_ptr<const Model> model, const ModelOptions& options,
                                      std::string path) {
  auto out = std::make_unique<vit_model>();
  for (std::size_t i = 0; i < model->config().head.num_classes; ++i) out->labels.push_back(model->label(i));
  out->config = config_json(model->config());
  if (model->has_preprocess_config()) out->preprocess = config_json(model->preprocess_config());
  out->model = std::move(model);
  out->path = std::move(path);
  out->options = options;
  return out;
}

}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

vit_status vit_model_load(const char* path, const vit_model_options* options, vit_model** model) {
  return guarded([&] {
    vit_model*& out = object_at(model, "model");
    const ModelOptions known = model_options(options);
    const std::string from = &object_at(path, "path");
    out = make_model(Model::load(from, known), known, from).release();
  });
}

vit_status vit_model_random(const char* architecture, const vit_model_options* options, vit_model** model) {
  return guarded([&] {
    vit_model*& out = object_at(model, "model");
    const ModelOptions known = model_options(options);
    out = make_model(Model::random(&object_at(architecture, "architecture"), known), known, "").release();
  });
}

void vit_model_free(vit_model* model) {
  delete model;
}

vit_status vit_model_describe(const vit_model* model, vit_model_info* info) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    const std::size_t size = object_at(info, "info").struct_size;
    VIT_CHECK(size >= sizeof size, kCall, "struct_size of vit_model_info is ", size, ", expected ",
              sizeof *info, ", its sizeof");
    const ModelConfig& config = from.model->config();
    vit_model_info out{};
    out.struct_size = size;
    out.image_height = config.image.height;
    out.image_width = config.image.width;
    out.patch_size = config.patch.size;
    out.embed_dim = config.embed_dim;
    out.depth = config.encoder.depth;
    out.num_heads = config.attention.num_heads;
    out.num_prefix_tokens = config.num_prefix_tokens();
    out.projection_dim = config.projection_dim();
    out.num_classes = config.head.num_classes;
    out.has_class_token = config.tokens.class_token ? 1 : 0;
    out.has_pooled = config.head.pooling != Pooling::none ? 1 : 0;
    out.has_preprocessing = from.model->has_preprocess_config() ? 1 : 0;
    out.precision = static_cast<std::int32_t>(from.model->precision());
    out.kernels = from.model->kernels();
    out.path = from.path.c_str();
    out.fingerprint = from.model->report().fingerprint.c_str();
    out.config = from.config.c_str();
    out.preprocess = from.preprocess.empty() ? nullptr : from.preprocess.c_str();
    std::memcpy(info, &out, std::min(size, sizeof out));
  });
}

vit_status vit_model_label(const vit_model* model, size_t index, const char** label) {
  return guarded([&] {
    const std::vector<std::string>& labels = object_at(model, "model").labels;
    VIT_CHECK(index < labels.size(), kCall, "the model has ", labels.size(), " classes, but no index ",
              index);
    object_at(label, "label") = labels[index].c_str();
  });
}

vit_status vit_preprocessor_load(const char* path, const vit_model_options* options,
                                 const vit_size_options* size, vit_preprocessor** preprocessor) {
  return guarded([&] {
    vit_preprocessor*& out = object_at(preprocessor, "preprocessor");
    const vit_size_options known = options_of(size, "vit_size_options");
    const InputSize target = input_size(known.kind, known.height, known.width);
    const std::optional<PreprocessConfig> config =
        vit::Checkpoint(&object_at(path, "path"), model_options(options)).preprocess_config(target);
    VIT_CHECK(config, kCall.with(ErrorKind::mismatch), path, ": no file defines the preprocessing");
    out = make_preprocessor(Preprocessor(*config), known).release();
  });
}

vit_status vit_preprocessor_create(const vit_model* model, const vit_size_options* size,
                                   vit_preprocessor** preprocessor) {
  return guarded([&] {
    const Model& from = *object_at(model, "model").model;
    vit_preprocessor*& out = object_at(preprocessor, "preprocessor");
    const vit_size_options known = options_of(size, "vit_size_options");
    out = make_preprocessor(preprocessor_of(from.preprocess_config(), known, from.config().edge_multiple()),
                            known)
              .release();
  });
}

void vit_preprocessor_free(vit_preprocessor* preprocessor) {
  delete preprocessor;
}

const char* vit_preprocessor_describe(const vit_preprocessor* preprocessor) {
  return preprocessor == nullptr ? nullptr : preprocessor->description.c_str();
}

vit_status vit_preprocessor_run(const vit_preprocessor* preprocessor, const vit_input* inputs,
                                size_t num_inputs, uint32_t stage, vit_results* results) {
  return guarded([&] {
    const vit_preprocessor& rules = object_at(preprocessor, "preprocessor");
    vit_results& out = object_at(results, "results");
    out.clear();
    VIT_CHECK(stage == VIT_PIXELS || stage == VIT_CROPPED, kCall, "stage is ", stage,
              ", expected VIT_PIXELS or VIT_CROPPED");
    VIT_CHECK(stage == VIT_PIXELS || rules.preprocessor.has_crop_stage(), kCall.with(ErrorKind::unsupported),
              rules.preprocessor.config().source, ": resizes in float, so there is no 8-bit stage");
    const InputList list(inputs, num_inputs, /*num_channels=*/3, &rules.preprocessor);
    return out.fill(num_inputs, [&] {
      const auto together = static_cast<std::size_t>(resolve_threads(rules.threads));
      for (std::size_t first = 0; first < num_inputs; first += together) {
        std::vector<Preprocessed> group(std::min(together, num_inputs - first));
        parallel_for(group.size(), rules.threads, [&](std::size_t i, int) {
          group[i] = preprocess(rules.preprocessor, list, first + i, stage);
        });
        for (std::size_t i = 0; i < group.size(); ++i) store(group[i], first + i, stage, out);
      }
    });
  });
}
