// The loop that classify, evaluate and embed share: prepare images ahead, compute them in batches, hand out
// the results in order. Failed images are reported and left out.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "apps/vit/common/inputs.h"
#include "apps/vit/common/progress.h"
#include "vit/session.h"

namespace vit::app {

/// Pixels of one input, or why there are none.
struct PreparedImage {
  Tensor<float> pixels;  // (3, H, W), normalised
  std::string failure;

  std::size_t bytes() const noexcept { return pixels.empty() ? 0 : pixels.num_elements() * sizeof(float); }
};

/// Throws Error where all inputs are pictures and no file of the model tells how they are prepared.
void check_preparable(std::span<const Input> inputs, const Model& model);

/// Reads and preprocesses one input; .npy inputs are taken as they are and need no `preprocessor`, pictures
/// fail without. Never throws.
PreparedImage prepare_image(const Input& input, const Preprocessor* preprocessor) noexcept;

struct ImageRun {
  Session& session;
  const Request& request;
  std::span<const Input> inputs;
  int threads = 0;        // for reading; 0 = all
  std::size_t batch = 0;  // images computed together; 0 = chosen here
  Progress& progress;
};

/// Takes the results of one image. Returns why they are of no use; "" where they are.
using ConsumeResults = std::function<std::string(const Input&, const ImageOutputs&)>;

/// Calls `consume` with the results of each image that could be done, in the order of the inputs. Ends early
/// after SIGINT.
void run_images(const ImageRun& run, const ConsumeResults& consume);

/// Whether none of the numbers is a NaN or infinite.
bool are_finite(std::span<const float> numbers);

/// Why no class can be told from these logits; "" where one can.
std::string defect_of_logits(const ImageOutputs& outputs);

/// Reports arguments that give no images.
void report_failures(const InputList& list, Progress& progress);

/// 130 after SIGINT, 1 where something failed, else 0.
int exit_code(const Progress& progress);

}  // namespace vit::app
