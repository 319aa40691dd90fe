#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/base/check.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_memory.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/kernels/kernels.h"

namespace {

vit::ResizeFilter filter_named(std::string_view name) {
  if (name == "nearest") return vit::ResizeFilter::nearest;
  if (name == "lanczos") return vit::ResizeFilter::lanczos;
  if (name == "bilinear") return vit::ResizeFilter::bilinear;
  if (name == "bicubic") return vit::ResizeFilter::bicubic;
  if (name == "box") return vit::ResizeFilter::box;
  REQUIRE(name == "hamming");
  return vit::ResizeFilter::hamming;
}

using Coefficients = std::vector<std::vector<int>>;

Coefficients coefficients_of(std::size_t in, std::size_t out,
                             vit::Resampler resampler = vit::Resampler::pillow) {
  const vit::internal::FixedAxis axis({in, out, 0, out}, vit::ResizeFilter::bicubic, resampler);
  const auto view = axis.view();
  Coefficients result;
  for (std::size_t i = 0; i < view.num_outputs; ++i) {
    std::vector<int> row{view.first[i]};
    for (int j = 0; j < view.count[i]; ++j)
      row.push_back(view.weights[view.offset[i] + static_cast<std::size_t>(j)]);
    result.push_back(row);
  }
  return result;
}

std::vector<int> resized_row(vit::ResizeFilter filter, std::size_t out) {
  std::vector<std::uint8_t> in{10, 200, 30, 255, 0, 128, 64, 250};
  std::vector<std::uint8_t> bytes(out);
  vit::internal::ResizeMemory memory;
  vit::internal::resize({.data = in.data(), .height = 1, .width = 8, .channels = 1, .row_stride = 8},
                        {1, out}, {.height = 1, .width = out}, {.filter = filter}, memory, bytes.data());
  return {bytes.begin(), bytes.end()};
}

vit::Image random_image(std::size_t height, std::size_t width, unsigned seed) {
  vit::Image image(height, width);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < height * width * 3; ++i)
    image.data()[i] = static_cast<std::uint8_t>(random() >> 24);
  return image;
}

vit::Image resize(vit::ImageView image, vit::ImageSize target, const vit::internal::ResizeWindow& window,
                  const vit::internal::ResampleOptions& options) {
  vit::internal::ResizeMemory memory;
  vit::Image out(window.height, window.width);
  vit::internal::resize({.data = image.data(),
                         .height = image.height(),
                         .width = image.width(),
                         .row_stride = image.row_stride()},
                        target, window, options, memory, out.data());
  return out;
}

vit::Image resize(vit::ImageView image, vit::ImageSize target,
                  const vit::internal::ResampleOptions& options) {
  return resize(image, target, {.height = target.height, .width = target.width}, options);
}

bool same_pixels(const vit::Image& a, const vit::Image& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.height() * a.row_stride()) == 0;
}

}  // namespace

TEST_CASE("image: bicubic coefficients are Pillow's") {
  CHECK(coefficients_of(8, 4) == Coefficients{{0, 1947982, 1947982, 508932, -157945, -52648},
                                              {0, -145748, 469632, 1797559, 1797559, 469632, -145748, -48583},
                                              {1, -48583, -145748, 469632, 1797559, 1797559, 469632, -145748},
                                              {3, -52648, -157945, 508932, 1947982, 1947982}});
  CHECK(coefficients_of(5, 3) == Coefficients{{0, 2452055, 1871305, 0, -129056},
                                              {0, -156067, 1033945, 2438549, 1033945, -156067},
                                              {1, -129056, 0, 1871305, 2452055}});
  CHECK(coefficients_of(3, 5) == Coefficients{{0, 4510855, -316551},
                                              {0, 2723168, 1658941, -187805},
                                              {0, 0, 4194304, 0},
                                              {0, -187805, 1658941, 2723168},
                                              {1, -316551, 4510855}});
}

TEST_CASE("image: one row through every size") {
  using vit::ResizeFilter;
  CHECK(resized_row(ResizeFilter::bicubic, 4) == std::vector<int>{92, 139, 79, 158});
  CHECK(resized_row(ResizeFilter::bicubic, 3) == std::vector<int>{104, 111, 133});
  CHECK(resized_row(ResizeFilter::bicubic, 11) ==
        std::vector<int>{0, 133, 159, 33, 229, 134, 7, 126, 73, 137, 255});
  CHECK(resized_row(ResizeFilter::bilinear, 4) == std::vector<int>{94, 132, 88, 153});
  CHECK(resized_row(ResizeFilter::bilinear, 3) == std::vector<int>{109, 112, 128});
  CHECK(resized_row(ResizeFilter::bilinear, 11) ==
        std::vector<int>{10, 122, 146, 40, 204, 128, 29, 122, 84, 140, 250});
}

TEST_CASE("image: every resize of the reference set") {
  SKIP_WITHOUT_SHARED("fixtures/preprocess/resize");
  const std::filesystem::path folder = vit::test::shared_path("fixtures/preprocess/resize");
  const vit::internal::TensorFile tensors = vit::internal::open_safetensors(folder / "resize.safetensors");
  const vit::internal::Json cases = vit::internal::load_json(folder / "index.json").at("cases");
  REQUIRE(cases.size() == 1172);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const vit::internal::Json item = cases[k];
    const auto& entry = tensors.at("in/" + std::string(item.at("image").as_string()));
    const std::vector<std::byte> pixels = entry.bytes.copy();
    const std::size_t height = entry.shape[0];
    const std::size_t width = entry.shape[1];
    const std::size_t channels = entry.shape[2];
    const std::size_t out_width = item.at("out_size")[0].as_size();
    const std::size_t out_height = item.at("out_size")[1].as_size();
    const auto run = [&](vit::PillowRelease release, vit::internal::ResampleLoops loops) {
      std::vector<std::uint8_t> out(out_height * out_width * channels);
      vit::internal::ResizeMemory memory;
      vit::internal::resize(
          {.data = reinterpret_cast<const std::uint8_t*>(pixels.data()),
           .height = height,
           .width = width,
           .channels = channels,
           .row_stride = width * channels},
          {out_height, out_width}, {.height = out_height, .width = out_width},
          {.filter = filter_named(item.at("filter").as_string()), .pillow = release, .loops = loops}, memory,
          out.data());
      return vit::test::sha256(out.data(), out.size());
    };
    CAPTURE(item.at("name").as_string());
    const std::string expected(item.at("sha256").as_string());
    const std::string horizontal(item.find_string("sha256_horizontal_first").value_or(expected));
    for (const auto loops :
         {vit::internal::ResampleLoops::vectorized, vit::internal::ResampleLoops::reference}) {
      CHECK(run(vit::PillowRelease::from_13_0, loops) == expected);
      CHECK(run(vit::PillowRelease::up_to_12_1, loops) == horizontal);
      const bool tall = height > 100 * width && out_height < height;
      CHECK(run(vit::PillowRelease::from_12_2, loops) == (tall ? expected : horizontal));
    }
  }
}

TEST_CASE("image: vectors, plain loops, windows and threads agree on awkward sizes") {
  unsigned seed = 1;
  for (const auto resampler : {vit::Resampler::pillow, vit::Resampler::torchvision_uint8}) {
    for (const auto filter :
         {vit::ResizeFilter::bilinear, vit::ResizeFilter::bicubic, vit::ResizeFilter::lanczos}) {
      for (const std::size_t height : {1, 2, 5, 37, 131}) {
        for (const std::size_t width : {1, 3, 6, 17, 97, 301}) {
          const vit::Image image = random_image(height, width, ++seed);
          for (const vit::ImageSize target : {vit::ImageSize{1, 1}, {7, 5}, {16, 43}, {140, 6}, {33, 310}}) {
            vit::internal::ResampleOptions options{.resampler = resampler, .filter = filter};
            const vit::Image fast = resize(image, target, options);
            options.loops = vit::internal::ResampleLoops::reference;
            const vit::Image plain = resize(image, target, options);
            CAPTURE(vit::text(width, " x ", height, " to ", target.width, " x ", target.height));
            CHECK(same_pixels(fast, plain));
            options = {.resampler = resampler, .filter = filter, .threads = 3};
            const vit::internal::ResizeWindow window{target.height / 3, target.width / 4,
                                                     target.height - target.height / 3,
                                                     (target.width + 1) / 2};
            const vit::Image part = resize(image, target, window, options);
            bool equal = true;
            for (std::size_t y = 0; y < window.height; ++y) {
              equal = equal && std::memcmp(part.row(y), plain.row(window.top + y) + 3 * window.left,
                                           3 * window.width) == 0;
            }
            CHECK(equal);
          }
        }
      }
    }
  }
}

TEST_CASE("image: weights of OpenCV's cubic filter on float data, far from the border too") {
  struct Weights {
    std::size_t in, out, index, first;
    float values[4];  // of cv2.resize of rows with a single 1, in OpenCV 5.0
  };
  constexpr Weights kCases[] = {
      {3000, 2947, 7, 6, {-0.0757126808f, 0.962132335f, 0.125384867f, -0.0118045211f}},
      {3000, 2947, 2689, 2736, {-0.110183954f, 0.756280303f, 0.418376565f, -0.0644729137f}},
      {3000, 2947, 2913, 2964, {-0.10822463f, 0.723042011f, 0.456572294f, -0.0713896751f}},
      {1117, 2000, 1993, 1111, {-0.0110659599f, 0.120371938f, 0.964591265f, -0.0738972425f}},
  };
  for (const Weights& c : kCases) {
    CAPTURE(c.index);
    const vit::internal::FloatAxis axis({c.in, c.out, c.index, c.index + 1}, vit::ResizeFilter::opencv_cubic);
    CHECK(axis.first.front() == c.first);
    REQUIRE(axis.weights.size() == 4);
    for (std::size_t k = 0; k < 4; ++k) CHECK(axis.weights[k] == c.values[k]);
  }
}

TEST_CASE("image: every kernel table gives the same bytes") {
  const vit::Image image = random_image(61, 203, 5);
  for (const auto resampler : {vit::Resampler::pillow, vit::Resampler::torchvision_uint8}) {
    for (const vit::ImageSize target : {vit::ImageSize{24, 57}, {90, 31}, {17, 300}}) {
      const auto filter = vit::ResizeFilter::bicubic;
      const vit::internal::FixedAxis columns({203, target.width, 0, target.width}, filter, resampler);
      const vit::internal::FixedAxis rows({61, target.height, 0, target.height}, filter, resampler);
      const auto bytes_of = [&](const vit::internal::kernels::KernelTable& table) {
        std::vector<std::uint8_t> between(61 * target.width * 3), out(target.height * target.width * 3);
        table.resample.columns_rgb({image.data(), image.row_stride(), between.data(), target.width * 3}, 61,
                                   203 * 3, columns.view());
        table.resample.rows({between.data(), target.width * 3, out.data(), target.width * 3},
                            target.width * 3, rows.view());
        return out;
      };
      const std::vector<std::uint8_t> expected = bytes_of(vit::internal::kernels::find_kernels("reference"));
      for (const vit::internal::kernels::KernelTable* table : vit::internal::kernels::available_kernels()) {
        CAPTURE(std::string(table->name));
        CHECK(bytes_of(*table) == expected);
      }
    }
  }
}

TEST_CASE("image: a window of an absurdly tall image needs no memory for the rest") {
  const vit::Image image = random_image(1, 4000, 7);
  const vit::Image part = resize(image, {256, 1'024'000}, {16, 500'000, 224, 224}, {});
  CHECK(part.size() == vit::ImageSize{224, 224});
}

TEST_CASE("image: resizes that cannot be are Errors") {
  const vit::Image image = random_image(4, 5, 3);
  CHECK_THROWS_AS(resize(image, {0, 5}, {}), vit::Error);
  CHECK_THROWS_AS(resize(vit::ImageView(), {4, 5}, {}), vit::Error);
  CHECK_THROWS_AS(resize(image, {8, 8}, {4, 4, 5, 4}, {}), vit::Error);
  CHECK_THROWS_AS(resize(image, {8, 8},
                         {.resampler = vit::Resampler::torchvision_uint8, .filter = vit::ResizeFilter::box}),
                  vit::Error);
  CHECK_THROWS_AS(resize(image, {8, 8}, {.resampler = vit::Resampler::torchvision_float}), vit::Error);
  CHECK_THROWS_WITH_AS(resize(image, {1u << 20, 1u << 12}, {0, 0, 1, 1}, {}),
                       doctest::Contains("2^31 pixels"), vit::Error);
  const vit::Image line(1, 12'000'000);
  CHECK_THROWS_WITH_AS(resize(line, {224, 224}, {}), doctest::Contains("weights"), vit::Error);
  CHECK_THROWS_AS(vit::ImageView(image.data(), 4, 5, {.row_stride = 14}), vit::Error);
}
