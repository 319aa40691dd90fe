#include "vit/api/source_pixels.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::internal {
namespace {

void require_function(bool is_there, const char* kind) {
  VIT_CHECK(is_there, (Where{"Session", ErrorKind::argument}), "the function of a ", kind, " is empty");
}

struct Reader {
  const Session& session;
  PreprocessMemory& memory;
  int threads;

  SourcePixels operator()(const std::filesystem::path& file) const {
    return of_file(session.preprocessor().run_file(file, memory, threads));
  }
  SourcePixels operator()(std::span<const std::byte> file) const {
    return of_file(session.preprocessor().run_bytes(file, "image in memory", memory, threads));
  }
  SourcePixels operator()(const LoadFile& file) const {
    require_function(static_cast<bool>(file.read), "LoadFile");
    return of_file(session.preprocessor().run_bytes(file.read(), file.name, memory, threads));
  }
  SourcePixels operator()(const ImageView& image) const {
    const Preprocessor& preprocessor = session.preprocessor();
    const ImageSize size = preprocessor.output_size(image.size());
    SourcePixels out{
        .pixels = Tensor<float>(Shape{preprocessor.num_planes(image.size()), size.height, size.width}),
        .frame = frame_of(session, image.size())};
    preprocessor.run(image, out.pixels, memory, threads);
    return out;
  }
  SourcePixels operator()(const LoadImage& load) const {
    require_function(static_cast<bool>(load), "LoadImage");
    const Image image = load();
    return (*this)(image.view());
  }
  SourcePixels operator()(const LoadPixels& load) const {
    require_function(static_cast<bool>(load), "LoadPixels");
    return {.pixels = load(), .frame = {}};
  }

  SourcePixels of_file(FilePixels file) const {
    return {.pixels = std::move(file.pixels), .frame = frame_of(session, file.image_size)};
  }
};

struct Decoder {
  const Session& session;

  Image operator()(const std::filesystem::path& file) const { return session.decode(file); }
  Image operator()(std::span<const std::byte> file) const { return session.decode(file); }
  Image operator()(const LoadFile& file) const {
    require_function(static_cast<bool>(file.read), "LoadFile");
    return decode_bytes(file.read(), session.preprocessor().decode_options(), file.name);
  }
  Image operator()(const LoadImage& load) const {
    require_function(static_cast<bool>(load), "LoadImage");
    return load();
  }
  Image operator()(const ImageView&) const { return {}; }
  Image operator()(const LoadPixels&) const {
    fail(Where{"Session", ErrorKind::argument}, "preprocessed pixels have no boxes; give an image");
  }
};

}  // namespace

ImageView image_of(const Session& session, const ImageSource& source, Image& memory) {
  if (const auto* const image = std::get_if<ImageView>(&source)) return *image;
  memory = std::visit(Decoder{session}, source);
  return memory;
}

ImageFrame frame_of(const Session& session, ImageSize image) {
  if (session.model().dense_config() == nullptr) return {.image = image};
  return frame_of(session.preprocessor(), image);
}

ImageFrame frame_of(const Preprocessor& preprocessor, ImageSize image) {
  const SourceMap map = preprocessor.source_map(image);
  const auto shown = [](std::size_t size, double step) {
    return static_cast<std::size_t>(std::nearbyint(static_cast<double>(size) / step));
  };
  return {.image = image,
          .pixels = preprocessor.output_size(image),
          .content = {shown(image.height, map.y_step), shown(image.width, map.x_step)}};
}

ImageFrame frame_of_pixels(ImageSize pixels) {
  return {.image = pixels, .pixels = pixels, .content = pixels};
}

void require_finite(TensorView<const float> pixels, std::optional<std::size_t> image) {
  // An exponent of ones, plus one, reaches the sign; integers, so that compilers vectorize the loop.
  constexpr std::uint32_t kExponent = 0x7F800000, kOne = 0x00800000, kSign = 0x80000000;
  const std::size_t height = pixels.dim(pixels.rank() - 2);
  static_cast<void>(pixels.num_elements());  // throws for sizes that overflow, before a pixel is read
  for (std::size_t row = 0; row < pixels.num_rows(); ++row) {
    std::uint32_t carries = 0;
    for (const float number : std::span(pixels.row(row), pixels.num_columns()))
      carries |= (std::bit_cast<std::uint32_t>(number) & kExponent) + kOne;
    VIT_CHECK((carries & kSign) == 0, (Where{"Session", ErrorKind::argument}), "the pixels",
              image ? text(" of image ", *image) : std::string(),
              " are not finite (NaN or infinity in plane ", row / height, ", row ", row % height,
              "); a damaged file, or a division by zero before?");
  }
}

SourcePixels read_pixels(const Session& session, const ImageSource& source, PreprocessMemory& memory,
                         int threads) {
  SourcePixels out = std::visit(Reader{session, memory, threads}, source);
  const Shape& shape = out.pixels.shape();
  VIT_CHECK(shape.rank() == 3, (Where{"Session", ErrorKind::argument}),
            "pixels of an input must have the shape (", session.model().config().image.num_channels,
            ", H, W), got ", shape.to_string());
  session.model().steps_for(shape[0]);
  require_finite(out.pixels, std::nullopt);
  if (std::holds_alternative<LoadPixels>(source)) out.frame = frame_of_pixels({shape[1], shape[2]});
  return out;
}

}  // namespace vit::internal
