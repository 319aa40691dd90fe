#include "apps/vit/common/image_runner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "apps/vit/common/interrupt.h"
#include "apps/vit/common/ordered_stream.h"
#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/image/decode.h"

namespace vit::app {
namespace {

constexpr const char* kOutOfMemory = "not enough memory for an image of this size; try a smaller --size";

// Images that are computed together: enough for full batches and for all threads; few, so that an interrupt
// is heard soon and results do not pile up.
constexpr std::size_t kImagesTogether = 16;
constexpr std::size_t kBytesTogether = std::size_t{10} << 20;  // of pixels: 16 images of 224 x 224

/// Computes images and hands out their results; false where the memory did not suffice and nothing was done.
bool run_together(const ImageRun& run, std::span<const Input* const> inputs,
                  std::span<const TensorView<const float>> pixels, const ConsumeResults& consume) {
  Results outputs;
  try {
    outputs = run.session.run_pixels(pixels, run.request);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string defect = consume(*inputs[i], outputs[i]);
    if (defect.empty()) {
      run.progress.add_done(1);
    } else {
      run.progress.add_failed(inputs[i]->name, defect);
    }
  }
  return true;
}

}  // namespace

void check_preparable(std::span<const Input> inputs, const Model& model) {
  if (are_pictures(inputs)) static_cast<void>(model.preprocess_config());
}

PreparedImage prepare_image(const Input& input, const Preprocessor* preprocessor) noexcept {
  PreparedImage prepared;
  try {
    if (input.pixels) {
      prepared.pixels = input.pixels->load(input.pixels_index);
    } else if (preprocessor == nullptr) {
      prepared.failure = "no file of the model tells how pictures are prepared";
    } else {
      const Image image = decode_file(input.path, preprocessor->decode_options());
      prepared.pixels = preprocessor->run(image);
    }
  } catch (const std::bad_alloc&) {
    prepared.failure = kOutOfMemory;
  } catch (const std::exception& error) {
    prepared.failure = error.what();
  }
  return prepared;
}

bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

std::string defect_of_logits(const ImageOutputs& outputs) {
  return are_finite(outputs.logits()) ? "" : "the logits are not finite; damaged pixels or weights?";
}

void run_images(const ImageRun& run, const ConsumeResults& consume) {
  const Model& model = run.session.model();
  const Preprocessor* const preprocessor =
      model.has_preprocess_config() ? &run.session.preprocessor() : nullptr;
  const auto prepare = [&](std::size_t index) {
    PreparedImage prepared = prepare_image(run.inputs[index], preprocessor);
    try {
      if (prepared.failure.empty()) model.grid_for(prepared.pixels.dim(1), prepared.pixels.dim(2));
    } catch (const Error& error) {
      prepared.failure = error.what();
    }
    return prepared;
  };
  const int threads = resolve_threads(run.threads);
  const std::size_t at_least = run.batch > 0 ? run.batch : static_cast<std::size_t>(threads);
  const std::size_t at_most = run.batch > 0 ? run.batch : std::max(kImagesTogether, at_least);
  OrderedStream<PreparedImage> stream(run.inputs.size(), prepare,
                                      {.threads = threads, .max_items = 2 * at_most});
  std::size_t next = 0;  // input that the stream hands out next
  while (next < run.inputs.size() && !interrupted()) {
    std::vector<PreparedImage> images;
    std::vector<const Input*> inputs;
    std::size_t bytes = 0;
    while (images.size() < at_most && (images.size() < at_least || bytes < kBytesTogether) &&
           next < run.inputs.size()) {
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
    if (!run_together(run, inputs, pixels, consume)) {
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const bool is_done =
            run_together(run, std::span(inputs).subspan(i, 1), std::span(pixels).subspan(i, 1), consume);
        if (!is_done) run.progress.add_failed(inputs[i]->name, kOutOfMemory);
      }
    }
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
