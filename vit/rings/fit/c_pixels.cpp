// Classes of pixels of the C interface.
#include <cmath>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/config.h"
#include "vit/pixels.h"

struct vit_pixels {
  vit::PixelHead head;
  vit::PixelExtractor extractor;
  vit::DecodeOptions decoding;
  int threads = 0;
};

using namespace vit;
using namespace vit::internal;

namespace {

PixelOptions pixel_options_of(const vit_pixel_options& given, const Model& model) {
  PixelOptions out;
  const auto depth = static_cast<std::int64_t>(model.config().encoder.depth);
  for (const std::int64_t layer : span_of(given.layers, given.num_layers, "layers")) {
    VIT_CHECK(layer >= -depth && layer < depth, kCall, "layer ", layer, ": the model has blocks 0 to ",
              depth - 1);
    out.layers.push_back(static_cast<std::size_t>(layer < 0 ? layer + depth : layer));
  }
  const std::span<const double> scales = span_of(given.scales, given.num_scales, "scales");
  if (!scales.empty()) out.scales.assign(scales.begin(), scales.end());
  out.size = input_size(given.size_kind, given.height, given.width);
  out.upsampling = enum_of(given.upsampling, PixelUpsampling::learned, "upsampling");
  const std::string_view upsampler = given.upsampler == nullptr ? "" : given.upsampler;
  VIT_CHECK((out.upsampling == PixelUpsampling::learned) == !upsampler.empty(), kCall,
            "upsampler is the file of VIT_UPSAMPLE_LEARNED, and of no other upsampling");
  if (!upsampler.empty()) out.upsampler = PixelUpsampler::load(upsampler);
  if (given.shifts != 0) out.shifts = given.shifts;
  out.color = given.color != 0;
  return out;
}

FitOptions fit_options_of(const vit_pixel_options& given) {
  FitOptions out{.threads = given.threads};
  VIT_CHECK(given.strength >= 0 && std::isfinite(given.strength), kCall, "strength is ", given.strength);
  if (given.strength != 0) out.strength = given.strength;
  if (given.neighbors != 0) out.neighbors = given.neighbors;
  return out;
}

/// Calls function(image) with the image of a source.
template <typename Function>
void with_image(const ImageSource& source, const DecodeOptions& decoding, const Function& function) {
  if (const auto* const view = std::get_if<ImageView>(&source)) return function(*view);
  Image image;
  if (const auto* const path = std::get_if<std::filesystem::path>(&source)) {
    image = decode_file(*path, decoding);
  } else if (const auto* const bytes = std::get_if<std::span<const std::byte>>(&source)) {
    image = decode_bytes(*bytes, decoding, "image");
  } else {
    fail(kCall.with(ErrorKind::unsupported),
         "classes of pixels need images, not preprocessed pixels or clips");
  }
  function(image.view());
}

TensorView<const std::int32_t> labels_of(const vit_array& array, std::size_t index) {
  VIT_CHECK(array.dtype == VIT_INT32 && array.ndim == 2 && array.data != nullptr, kCall, "labels ", index,
            " must be VIT_INT32 of (height, width)");
  return {static_cast<const std::int32_t*>(array.data), Shape{array.shape[0], array.shape[1]}};
}

}  // namespace

vit_status vit_pixels_fit(const vit_model* model, const vit_input* images, const vit_array* labels,
                          size_t num_images, const char* const* names, size_t num_names,
                          const vit_pixel_options* options, vit_pixels** pixels) {
  return guarded([&] {
    const std::shared_ptr<const Model>& from = object_at(model, "model").model;
    vit_pixels*& out = object_at(pixels, "pixels");
    const vit_pixel_options given = options_of(options, "vit_pixel_options");
    const std::span<const vit_array> all_labels = span_of(labels, num_images, "labels");
    std::vector<std::string> labels_of_classes = strings_of(names, num_names, "names");
    const InputList inputs(images, num_images);
    PixelExtractor extractor(from, pixel_options_of(given, *from), given.threads);
    const DecodeOptions decoding = Preprocessor(from->preprocess_config()).decode_options();
    PixelTrainer trainer;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      with_image(inputs[i], decoding, [&](ImageView image) {
        trainer.add(extractor.extract(image), labels_of(all_labels[i], i), given.threads);
      });
    }
    PixelHead head = trainer.fit(enum_of(given.method, FitMethod::centroid, "method"), fit_options_of(given));
    if (!labels_of_classes.empty()) {
      VIT_CHECK(labels_of_classes.size() == head.classifier.labels.size(), kCall, labels_of_classes.size(),
                " names for ", head.classifier.labels.size(), " classes");
      head.classifier.labels = std::move(labels_of_classes);
    }
    head.sources = head.classifier.labels;
    head.attach(*from);
    out = new vit_pixels{std::move(head), std::move(extractor), decoding, given.threads};
  });
}

namespace {

vit_status load_pixels(const vit_model* model, const char* path, const std::filesystem::path& upsampler,
                       int32_t threads, vit_pixels** pixels) {
  return guarded([&] {
    const std::shared_ptr<const Model>& from = object_at(model, "model").model;
    vit_pixels*& out = object_at(pixels, "pixels");
    PixelHead head = PixelHead::load(&object_at(path, "path"), upsampler);
    head.check(*from);
    PixelExtractor extractor(from, head.options, threads);
    const DecodeOptions decoding = Preprocessor(from->preprocess_config()).decode_options();
    out = new vit_pixels{std::move(head), std::move(extractor), decoding, threads};
  });
}

}  // namespace

vit_status vit_pixels_load(const vit_model* model, const char* path, int32_t threads, vit_pixels** pixels) {
  return load_pixels(model, path, {}, threads, pixels);
}

vit_status vit_pixels_load_upsampled(const vit_model* model, const char* path, const char* upsampler,
                                     int32_t threads, vit_pixels** pixels) {
  return load_pixels(model, path, upsampler == nullptr ? "" : upsampler, threads, pixels);
}

vit_status vit_pixels_save(const vit_pixels* pixels, const char* path) {
  return guarded([&] { object_at(pixels, "pixels").head.save(&object_at(path, "path")); });
}

void vit_pixels_free(vit_pixels* pixels) {
  delete pixels;
}

size_t vit_pixels_size(const vit_pixels* pixels) {
  return pixels == nullptr ? 0 : pixels->head.classifier.labels.size();
}

vit_status vit_pixels_label(const vit_pixels* pixels, size_t index, const char** label) {
  return guarded([&] {
    const std::vector<std::string>& labels = object_at(pixels, "pixels").head.classifier.labels;
    VIT_CHECK(index < labels.size(), kCall, "class ", index, " of ", labels.size());
    object_at(label, "label") = labels[index].c_str();
  });
}

vit_status vit_pixels_iou(const vit_pixels* pixels, double* iou, int32_t* held_out) {
  return guarded([&] {
    const PixelHead& head = object_at(pixels, "pixels").head;
    object_at(iou, "iou") = head.cross_validated_iou.value_or(std::nan(""));
    if (held_out != nullptr) *held_out = static_cast<int32_t>(head.held_out);
  });
}

vit_status vit_pixels_run(vit_pixels* pixels, const vit_input* inputs, size_t num_inputs,
                          int32_t probabilities, vit_results* results) {
  return guarded([&] {
    vit_pixels& known = object_at(pixels, "pixels");
    vit_results& out = object_at(results, "results");
    const InputList list(inputs, num_inputs);
    return out.fill(num_inputs, [&] {
      for (std::size_t i = 0; i < num_inputs; ++i) {
        try {
          with_image(list[i], known.decoding, [&](ImageView image) {
            out.set_size(i, image.size());
            const PixelFeatures features = known.extractor.extract(image);
            const Tensor<std::int32_t> classes = known.head.classes(features, known.threads);
            out.column({VIT_SEGMENTATION}, VIT_INT32).put(i, classes.data(), classes.shape());
            if (probabilities == 0) return;
            const Tensor<float> all = known.head.probabilities(features, known.threads);
            out.column({VIT_PROBABILITIES}, VIT_FLOAT32).put(i, all.data(), all.shape());
          });
        } catch (const Error& error) {
          out.fail(i, error.kind(), error.what());
        }
      }
    });
  });
}
