#include "vit/api/source_pixels.h"

#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::internal {
namespace {

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
    const Image image = load();
    return (*this)(image.view());
  }
  SourcePixels operator()(const LoadPixels& load) const { return {.pixels = load(), .frame = {}}; }

  SourcePixels of_file(FilePixels file) const {
    return {.pixels = std::move(file.pixels), .frame = frame_of(session, file.image_size)};
  }
};

struct Decoder {
  const Session& session;

  Image operator()(const std::filesystem::path& file) const { return session.decode(file); }
  Image operator()(std::span<const std::byte> file) const { return session.decode(file); }
  Image operator()(const LoadFile& file) const {
    return decode_bytes(file.read(), session.preprocessor().decode_options(), file.name);
  }
  Image operator()(const LoadImage& load) const { return load(); }
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
  const Preprocessor& preprocessor = session.preprocessor();
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

SourcePixels read_pixels(const Session& session, const ImageSource& source, PreprocessMemory& memory,
                         int threads) {
  SourcePixels out = std::visit(Reader{session, memory, threads}, source);
  const Shape& shape = out.pixels.shape();
  VIT_CHECK(shape.rank() == 3, (Where{"Session", ErrorKind::argument}),
            "pixels of an input must have the shape (", session.model().config().image.num_channels,
            ", H, W), got ", shape.to_string());
  session.model().steps_for(shape[0]);
  if (std::holds_alternative<LoadPixels>(source)) out.frame = frame_of_pixels({shape[1], shape[2]});
  return out;
}

}  // namespace vit::internal
