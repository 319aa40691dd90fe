// Many images through one session: files are read, preprocessed and computed in groups, results come in the
// order of the inputs, and an input that fails does not stop the others. The loop of an embedding job:
//
//   vit::for_each_image(session, paths, {.pooled = true}, [&](const vit::StreamedImage& image) {
//     if (image.outputs) save(paths[image.index], image.outputs->pooled());
//     else report(paths[image.index], image.failure);
//   });
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/outputs.h"
#include "vit/session.h"

namespace vit {

/// Makes preprocessed pixels, normalized planes (3, H, W), of an input. Called in any thread of the stream.
using LoadPixels = std::function<Tensor<float>()>;

/// An image file that is read when its turn comes, such as a member of an archive. `read` is called in any
/// thread of the stream; `name` stands for the file in messages.
struct LoadFile {
  std::string name;
  std::function<std::vector<std::byte>()> read;
};

/// An input: a file, a file in memory or one that is read elsewhere, pixels, or pixels that are preprocessed
/// already. What it points at must live until its result was handed out.
using ImageSource =
    std::variant<std::filesystem::path, std::span<const std::byte>, LoadFile, ImageView, LoadPixels>;

/// One input and what became of it.
struct StreamedImage {
  std::size_t index = 0;                // of the input
  std::optional<ImageOutputs> outputs;  // nothing if it failed; valid during the call
  ImageSize size;                       // of the image as decoded, or of the preprocessed pixels
  std::string failure;                  // why it failed
  ErrorKind kind = ErrorKind::io;       // of the failure
};

/// Takes one result after another, in the calling thread. What it throws ends the stream.
using ConsumeImage = std::function<void(const StreamedImage&)>;

/// Progress and cancellation of for_each_image.
struct StreamOptions {
  /// Called after each result with the number of inputs that are done and that of all.
  std::function<void(std::size_t done, std::size_t count)> on_progress{};
  /// Asked before each file and each group; true ends the stream.
  std::function<bool()> is_cancelled{};
};

/// Runs the inputs 0 .. count - 1, made by source(index) in any thread, with the session's threads, batch and
/// input size. Reading and computing take turns, so that no more than SessionOptions::threads threads are
/// busy at any time; one thread does everything itself. At most max(16, 4 x threads) images, or as many as
/// fill 2 MiB of pixels for each thread (10 MiB for few threads), are held at a time. The results have the
/// same bits for any batch and number of threads. Returns how many inputs were handed to `consume`, fewer
/// than `count` if the stream was cancelled. Throws Error if the request does not fit the model.
VIT_API std::size_t for_each_image(Session& session, std::size_t count,
                                   const std::function<ImageSource(std::size_t)>& source,
                                   const Request& request, const ConsumeImage& consume,
                                   const StreamOptions& options = {});

/// Runs image files.
VIT_API std::size_t for_each_image(Session& session, std::span<const std::filesystem::path> files,
                                   const Request& request, const ConsumeImage& consume,
                                   const StreamOptions& options = {});

}  // namespace vit
