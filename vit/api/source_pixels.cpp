#include "vit/api/source_pixels.h"

#include <utility>

#include "vit/base/check.h"

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
        .size = image.size()};
    preprocessor.run(image, out.pixels, memory, threads);
    return out;
  }
  SourcePixels operator()(const LoadPixels& load) const { return {.pixels = load(), .size = {}}; }

  static SourcePixels of_file(FilePixels file) {
    return {.pixels = std::move(file.pixels), .size = file.image_size};
  }
};

}  // namespace

SourcePixels read_pixels(const Session& session, const ImageSource& source, PreprocessMemory& memory,
                         int threads) {
  SourcePixels out = std::visit(Reader{session, memory, threads}, source);
  const Shape& shape = out.pixels.shape();
  VIT_CHECK(shape.rank() == 3, (Where{"Session", ErrorKind::argument}),
            "pixels of an input must have the shape (", session.model().config().image.num_channels,
            ", H, W), got ", shape.to_string());
  session.model().steps_for(shape[0]);
  if (out.size == ImageSize{}) out.size = {shape[1], shape[2]};
  return out;
}

}  // namespace vit::internal
