// Classes of pixels of the C interface are those of the C++ interface, bit for bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/config.h"
#include "vit/pixels.h"

TEST_SUITE_BEGIN("fit");

namespace vit {
using namespace test;

namespace {

using PixelsHandle = std::unique_ptr<vit_pixels, Release<vit_pixels, vit_pixels_free>>;

/// The left and the right edge of an image.
Tensor<std::int32_t> edges_of(const Image& image) {
  Tensor<std::int32_t> labels(Shape{image.height(), image.width()});
  std::ranges::fill(labels.flat(), -1);
  for (std::size_t y = 0; y < image.height(); ++y) {
    labels.view().row(y)[0] = 0;
    labels.view().row(y)[image.width() - 1] = 1;
  }
  return labels;
}

}  // namespace

TEST_CASE("c: classes of pixels") {
  const std::string path = data_path("model").string();
  const ModelHandle model = load(path);
  const Image image = decode_file(images()[0]);
  const Tensor<std::int32_t> labels = edges_of(image);
  vit_array array{};
  array.data = labels.data();
  array.dtype = VIT_INT32;
  array.ndim = 2;
  array.shape[0] = image.height();
  array.shape[1] = image.width();
  const std::int64_t layers[] = {-1};
  vit_pixel_options options{};
  options.struct_size = sizeof options;
  options.layers = layers;
  options.num_layers = 1;
  options.upsampling = VIT_UPSAMPLE_GUIDED;
  options.strength = 1.0;
  const char* const names[] = {"left", "right"};
  vit_pixels* made = nullptr;
  REQUIRE(vit_pixels_fit(model.get(), inputs().data(), &array, 1, names, 2, &options, &made) == VIT_OK);
  const PixelsHandle pixels(made);
  CHECK(vit_pixels_size(pixels.get()) == 2);
  const char* label = nullptr;
  REQUIRE(vit_pixels_label(pixels.get(), 1, &label) == VIT_OK);
  CHECK(std::string(label) == "right");
  double iou = 0;
  std::int32_t held_out = 7;
  REQUIRE(vit_pixels_iou(pixels.get(), &iou, &held_out) == VIT_OK);
  CHECK(std::isnan(iou));
  CHECK(held_out == 0);

  const auto loaded = Model::load(path);
  PixelExtractor extractor(
      loaded, {.layers = {loaded->config().encoder.depth - 1}, .upsampling = PixelUpsampling::guided});
  PixelTrainer trainer;
  trainer.add(extractor.extract(image), labels);
  const PixelHead head = trainer.fit(FitMethod::logistic, {.strength = 1.0});
  const ResultsHandle results = make_results();
  REQUIRE(vit_pixels_run(pixels.get(), inputs().data(), 2, 1, results.get()) == VIT_OK);
  for (std::size_t i = 0; i < 2; ++i) {
    const Image picture = decode_file(images()[i]);
    const PixelFeatures features = extractor.extract(picture);
    CHECK(std::ranges::equal(one(results, i, VIT_PROBABILITIES), head.probabilities(features).flat()));
    vit_array found{};
    REQUIRE(vit_results_one(results.get(), i, VIT_SEGMENTATION, 0, &found) == VIT_OK);
    const Tensor<std::int32_t> classes = head.classes(features);
    CHECK(std::ranges::equal(std::span(static_cast<const std::int32_t*>(found.data), classes.num_elements()),
                             classes.flat()));
  }

  const TemporaryFolder folder;
  const std::string file = (folder / "pixels.safetensors").string();
  REQUIRE(vit_pixels_save(pixels.get(), file.c_str()) == VIT_OK);
  vit_pixels* again = nullptr;
  REQUIRE(vit_pixels_load(model.get(), file.c_str(), 1, &again) == VIT_OK);
  vit_pixels_free(again);
  const ModelHandle other = load(data_path("golden/models/rope-axial").string());
  CHECK(vit_pixels_load(other.get(), file.c_str(), 1, &again) == VIT_ERROR_MISMATCH);
  const std::string network = data_path("golden/upsamplers/naf.pth").string();
  vit_pixels* upsampled = nullptr;
  CHECK(vit_pixels_load_upsampled(model.get(), file.c_str(), network.c_str(), 1, &upsampled) ==
        VIT_ERROR_MISMATCH);
  vit_pixel_options by_network = options;
  by_network.upsampling = VIT_UPSAMPLE_LEARNED;
  CHECK(vit_pixels_fit(model.get(), inputs().data(), &array, 1, names, 2, &by_network, &upsampled) ==
        VIT_ERROR_ARGUMENT);
  CHECK(contains(vit_last_error(), "upsampler"));
  by_network.upsampler = network.c_str();
  REQUIRE(vit_pixels_fit(model.get(), inputs().data(), &array, 1, names, 2, &by_network, &upsampled) ==
          VIT_OK);
  REQUIRE(vit_pixels_save(upsampled, file.c_str()) == VIT_OK);
  vit_pixels_free(upsampled);
  REQUIRE(vit_pixels_load(model.get(), file.c_str(), 1, &upsampled) == VIT_OK);
  vit_pixels_free(upsampled);
  REQUIRE(vit_pixels_load_upsampled(model.get(), file.c_str(), network.c_str(), 1, &upsampled) == VIT_OK);
  REQUIRE(vit_pixels_run(upsampled, inputs().data(), 1, 0, results.get()) == VIT_OK);
  vit_pixels_free(upsampled);
  array.shape[1] -= 1;
  CHECK(vit_pixels_fit(model.get(), inputs().data(), &array, 1, names, 2, &options, &again) ==
        VIT_ERROR_MISMATCH);
  array.dtype = VIT_FLOAT32;
  CHECK(vit_pixels_fit(model.get(), inputs().data(), &array, 1, names, 2, &options, &again) ==
        VIT_ERROR_ARGUMENT);
  CHECK(contains(vit_last_error(), "VIT_INT32"));
  CHECK(vit_pixels_fit(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, &again) == VIT_ERROR_ARGUMENT);
  CHECK(vit_pixels_run(nullptr, nullptr, 0, 0, results.get()) == VIT_ERROR_ARGUMENT);
  CHECK(vit_pixels_size(nullptr) == 0);
}

}  // namespace vit

TEST_SUITE_END();
