#include "apps/vit/common/image_runner.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "apps/vit/common/interrupt.h"
#include "apps/vit/common/ordered_stream.h"
#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/image/decode.h"

namespace vit::app {
namespace {

constexpr std::size_t kImagesTogether = 16;  // enough for full batches, few enough to end quickly
constexpr std::size_t kBytesTogether = std::size_t{256} << 20;  // of pixels

}  // namespace

PreparedImage prepare_image(const Input& input, const Preprocessor& preprocessor) noexcept {
  PreparedImage prepared;
  try {
    if (input.pixels) {
      prepared.pixels = input.pixels->load(input.pixels_index);
    } else {
      prepared.pixels = preprocessor.run(decode_file(input.path, preprocessor.decode_options()));
    }
  } catch (const std::exception& error) {
    prepared.failure = error.what();
  }
  return prepared;
}

void run_images(const ImageRun& run, const std::function<void(const Input&, const ImageOutputs&)>& consume) {
  const VisionTransformer& transformer = run.session.model().transformer();
  const auto prepare = [&](std::size_t index) {
    PreparedImage prepared = prepare_image(run.inputs[index], run.session.preprocessor());
    try {
      if (prepared.failure.empty()) transformer.grid_for(prepared.pixels.size(1), prepared.pixels.size(2));
    } catch (const Error& error) {
      prepared.failure = error.what();
    }
    return prepared;
  };
  const std::size_t together = run.batch > 0 ? run.batch : kImagesTogether;
  OrderedStream<PreparedImage> stream(run.inputs.size(), prepare,
                                      {.threads = resolve_threads(run.threads), .max_items = 2 * together});
  std::size_t next = 0;  // input that the stream hands out next
  while (next < run.inputs.size() && !interrupted()) {
    std::vector<PreparedImage> images;
    std::vector<const Input*> inputs;
    std::size_t bytes = 0;
    while (images.size() < together && bytes < kBytesTogether && next < run.inputs.size()) {
      PreparedImage prepared = *stream.next();
      const Input& input = run.inputs[next++];
      if (!prepared.failure.empty()) {
        run.progress.add_failed(input.name, prepared.failure);
        continue;
      }
      bytes += prepared.bytes();
      images.push_back(std::move(prepared));
      inputs.push_back(&input);
    }
    std::vector<TensorView<const float>> pixels;
    for (const PreparedImage& image : images) pixels.push_back(image.pixels.view());
    const std::vector<ImageOutputs> outputs = run.session.run_pixels(pixels, run.request);
    for (std::size_t i = 0; i < outputs.size(); ++i) consume(*inputs[i], outputs[i]);
    run.progress.add_done(outputs.size());
  }
}

void report_failures(const InputList& list, Progress& progress) {
  for (const InputFailure& failure : list.failures) progress.add_failed(failure.name, failure.cause);
}

int exit_code(const Progress& progress) {
  if (interrupted()) return kInterruptedExitCode;
  return progress.num_failed() > 0 ? 1 : 0;
}

}  // namespace vit::app
