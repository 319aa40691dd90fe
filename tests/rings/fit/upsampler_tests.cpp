// Learned upsamplers against the published classes in float64, and files and images that they refuse.
#include "vit/pixel_upsampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("fit");

namespace vit {

using namespace internal;

TEST_CASE("upsamplers: features of pixels are those of the published networks, for any number of threads") {
  for (const std::string name : {"naf", "anyup", "jafar"}) {
    CAPTURE(name);
    const std::shared_ptr<const PixelUpsampler> upsampler =
        PixelUpsampler::load(test::data_path("golden/upsamplers/" + name + ".pth"));
    const TensorFile expected =
        open_safetensors(test::data_path("golden/upsamplers/" + name + ".expected.safetensors"));
    const Json errors = parse_json(expected.metadata().at("float32_errors"), name);
    for (const std::string kind : {"even", "uneven"}) {
      CAPTURE(kind);
      const TensorEntry& stored = expected.at(kind + ".image");
      Image image(stored.shape[0], stored.shape[1]);
      stored.bytes.read(
          0, std::as_writable_bytes(std::span(image.data(), 3 * stored.shape[0] * stored.shape[1])));
      const Tensor<float> features = to_float(expected.at(kind + ".features"));
      const Tensor<float> exact = to_float(expected.at(kind + ".pixels"));
      const Tensor<float> found = upsampler->upsample(image, features, 1);
      REQUIRE(found.shape() == exact.shape());
      float largest = 0, error = 0;
      for (std::size_t i = 0; i < exact.num_elements(); ++i) {
        largest = std::max(largest, std::abs(exact.data()[i]));
        error = std::max(error, std::abs(found.data()[i] - exact.data()[i]));
      }
      CHECK(static_cast<double>(error / largest) <= std::max(3e-6, 2 * errors.at(kind).as_double()));
      CHECK(std::ranges::equal(found.flat(), upsampler->upsample(image, features, 2).flat()));
    }
  }
}

TEST_CASE("upsamplers: a file without one, and images that a network is not for, are errors that say so") {
  CHECK_THROWS_WITH_AS((void)PixelUpsampler::load(test::data_path("golden/fit/fit.safetensors")),
                       doctest::Contains("no upsampler that is known"), Error);
  const auto naf = PixelUpsampler::load(test::data_path("golden/upsamplers/naf.pth"));
  CHECK(naf->name() == "NAF");
  const Image image(40, 40);
  CHECK_THROWS_WITH_AS((void)naf->upsample(image, Tensor<float>(Shape{5, 9, 8})), doctest::Contains("9 x 9"),
                       Error);
  CHECK_THROWS_WITH_AS((void)naf->upsample(image, Tensor<float>(Shape{9, 9, 6})),
                       doctest::Contains("4 parts"), Error);
  const auto jafar = PixelUpsampler::load(test::data_path("golden/upsamplers/jafar.pth"));
  CHECK_THROWS_WITH_AS((void)jafar->upsample(image, Tensor<float>(Shape{9, 9, 12})),
                       doctest::Contains("8 features"), Error);
}

}  // namespace vit

TEST_SUITE_END();
