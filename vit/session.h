// From images to results: a Session for each thread of the caller over a shared Model, and a
// convenience class, FeatureExtractor; for_each_image runs many files. For classification see classifier.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/run_limits.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/outputs.h"

namespace vit {
namespace internal {
class ImageStream;
class PassWatch;
}  // namespace internal

/// Returns the preprocessed pixels (3, H, W) of an input, normalized; of a clip (frames 3, H, W), frame by
/// frame. Called in any thread of the stream.
using LoadPixels = std::function<Tensor<float>()>;

/// An image file that is read on demand, such as a member of an archive. `read` is called in any
/// thread of the stream; `name` is used for the file in messages.
struct LoadFile {
  std::string name;                              // for messages
  std::function<std::vector<std::byte>()> read;  // the bytes of the file; an exception is the failure
};

/// An image that is made on demand, such as a frame of a video. Called in any thread of the stream.
using LoadImage = std::function<Image()>;

/// An image to be run: a file, a file in memory or one that is read elsewhere, an image or one that is made
/// elsewhere, or preprocessed pixels. The memory it points to must live until its result is delivered.
using ImageSource = std::variant<std::filesystem::path, std::span<const std::byte>, LoadFile, ImageView,
                                 LoadImage, LoadPixels>;

/// Settings of a Session.
struct SessionOptions {
  int threads = 0;        // 0 = num_threads() where the session is created: all cores, or OpenMP's setting
  std::size_t batch = 0;  // images per forward pass; 0 = chosen from their size. Results do not depend on it.
  InputSize input_size{};  // size of preprocessed images: model (default), native, or fixed
};

/// How images of one size are computed: in passes of images_per_pass; a pass as num_tasks tasks of
/// images_per_task, one thread each, and then num_shared images by all threads. Results do not depend on it.
struct PassPlan {
  std::size_t images_per_pass = 1;   // of all passes except the last
  std::size_t images_per_task = 1;   // computed one after the other by one thread
  std::size_t num_tasks = 0;         // of a pass
  std::size_t num_shared = 0;        // images of a pass that all threads compute together
  std::size_t images_per_group = 1;  // that for_each_image() reads before it computes them
};

/// Working memory and settings of one thread of the caller; must not be shared. Several sessions may use one
/// Model. Images are run in order, those of one size in common forward passes. A session whose
/// threads have all processed such images before allocates nothing, if the object for the results is reused
/// as well.
/// ```
/// vit::Session session(vit::Model::load("model"), {.threads = 2});
/// vit::Outputs outputs;
/// session.run("photo.jpg", {vit::Output::pooled, vit::Output::patches}, outputs);
/// outputs[0].pooled();   // (C)
/// outputs[0].patches();  // (h, w, C)
/// ```
class VIT_API Session {
 public:
  /// Throws Error (argument) for a null model, and for a number of threads or an input size out of range.
  explicit Session(std::shared_ptr<const Model> model, SessionOptions options = {});
  ~Session();
  /// What is moved from throws Error (argument) when it is used.
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Model& model() const;  // lives as long as the session
  const std::shared_ptr<const Model>& shared_model() const noexcept { return model_; }  // as model()
  const SessionOptions& options() const;                                                // as given
  /// Throws Error if no file of the checkpoint defines the preprocessing.
  const Preprocessor& preprocessor() const;

  /// Reads an image file by the rules of the checkpoint (orientation, transparency).
  Image decode(const std::filesystem::path& file) const;
  /// Reads an image file in memory.
  Image decode(std::span<const std::byte> file) const;

  /// Reads, preprocesses and runs one image into outputs[0]. A frame of a size seen before allocates
  /// nothing; a file takes less time and memory than decode() and run() (see Preprocessor::run_bytes).
  void run(const ImageSource& image, const Request& request, Outputs& outputs);
  /// Preprocesses and runs images of any sizes.
  void run(std::span<const ImageView> images, const Request& request, BatchOutputs& outputs);
  BatchOutputs run(std::span<const ImageView> images, const Request& request);  // into new outputs
  /// Runs preprocessed pixels, normalized planes (3, H, W) of any sizes; of clips, or images in tiles, (3 n,
  /// H, W), image by image (Model::steps_for). Throws Error (argument) for pixels that are not finite.
  void run_pixels(std::span<const TensorView<const float>> pixels, const Request& request,
                  BatchOutputs& outputs);
  BatchOutputs run_pixels(std::span<const TensorView<const float>> pixels,
                          const Request& request);  // into new ones

  /// The size at which preprocessed pixels are computed: their own, or with the input size `native` their
  /// edges floored to whole patches, dropping pixels on the right and below.
  ImageSize computed_size(ImageSize pixels) const;

  /// One forward pass over preprocessed pixels (B, K, H, W). Throws Error, as run() does, for a size or an
  /// output that the model does not support, and for pixels that are not finite.
  void forward(TensorView<const float> pixels, const Request& request, Outputs& outputs);
  /// One forward pass whose stages are timed.
  StageTimes measure(TensorView<const float> pixels, const Request& request, Outputs& outputs);
  /// What ends the following runs and streams early; by default nothing. One that ends throws Cancelled.
  void set_limits(RunLimits limits);
  /// Grows the working memory of all threads to that of up to `batch` images of each of these sizes in one
  /// call, so that runs of the request on them allocate nothing from the first on, outputs aside. Takes as
  /// long as a few passes over such images. Throws Error for a size or request that the model cannot take.
  void reserve(std::span<const ImageSize> sizes, const Request& request, std::size_t batch = 1);
  /// The plan of this session for `num_images` inputs of this size. Throws Error if the model cannot take it.
  PassPlan plan(std::size_t num_images, std::size_t height, std::size_t width) const;
  /// PassPlan::images_per_group of the smallest images, for sessions with these threads and this batch.
  static std::size_t most_images_per_group(const SessionOptions& options);
  /// Bytes of working memory.
  std::size_t workspace_bytes() const;

 private:
  struct State;
  State& state() const;
  /// forward() of pixels that are known to be finite.
  void compute(TensorView<const float> pixels, const Request& request, Outputs& outputs);
  /// Passes report their progress to `watch`; null = none.
  VIT_HIDDEN void watch_passes(internal::PassWatch* watch) noexcept;
  template <typename Fill>
  void run_sorted(const Request& request, BatchOutputs& outputs, const Fill& fill);

  std::shared_ptr<const Model> model_;
  std::unique_ptr<State> state_;
  friend class internal::ImageStream;
};

/// A model, and what a task requests of it: the base of DepthEstimator, Segmenter, Detector and
/// PoseEstimator. Immutable; share it between threads, each with its own Session.
class VIT_API ImageTask {
 public:
  const std::shared_ptr<const Model>& model() const noexcept { return model_; }  // of the images
  const Request& request() const noexcept { return request_; }                   // for a Session

 protected:
  ImageTask(std::shared_ptr<const Model> model, Request request);  // which the model can answer
  /// Throws Error if the session has another model.
  void run(Session& session, const ImageSource& image, Outputs& outputs) const;

 private:
  std::shared_ptr<const Model> model_;
  Request request_;
};

/// Embeddings of images: the pooled vector and the map of patch features.
/// ```
/// vit::FeatureExtractor extractor("model");
/// const vit::ImageOutputs outputs = extractor.extract("photo.jpg");
/// outputs.patches();  // (h, w, C), valid until the next call
/// ```
class VIT_API FeatureExtractor {
 public:
  /// Features of a loaded model.
  explicit FeatureExtractor(std::shared_ptr<const Model> model, SessionOptions options = {});
  /// Features of the model in a folder or weight file; throws Error as Model::load() does.
  explicit FeatureExtractor(const std::filesystem::path& path, SessionOptions options = {},
                            const ModelOptions& model_options = {});
  /// The features of an image; a file is read by the rules of the checkpoint. The results are valid until the
  /// next call: pooled() (if the model has it), tokens(), class_token(), and patches() (h, w, C).
  ImageOutputs extract(const ImageSource& image) &;
  template <typename Source>
  ImageOutputs extract(const Source& source) && =
      delete;  // the results would point into an object that was destroyed
  Session& session() noexcept { return session_; }  // runs the images

 private:
  Session session_;
  Request request_;
  Outputs outputs_;
};

// ----------------------------------------------------------------------------------------------- many images

// Runs many images through one session: files are read, preprocessed and computed in groups, results are in
// the order of the inputs, and a failed input does not stop the others. The loop of an embedding job:
// ```
// vit::Session session(vit::Model::load("model"));
// const std::vector<std::filesystem::path> paths{"photo.jpg", "other.jpg"};
// std::vector<std::vector<float>> vectors(paths.size());
// vit::for_each_image(session, paths, vit::Output::pooled, [&](const vit::StreamedImage& image) {
//   if (!image.outputs) throw vit::Error("embed", image.failure);
//   vectors[image.index].assign(image.outputs->pooled().begin(), image.outputs->pooled().end());
// });
// ```

/// One input and its result.
struct StreamedImage {
  std::size_t index = 0;                // of the input
  std::optional<ImageOutputs> outputs;  // nothing if it failed; valid during the call
  ImageSize size;                       // of the image as decoded, or of the preprocessed pixels
  std::string failure;                  // why it failed
  ErrorKind kind = ErrorKind::io;       // of the failure
};

/// Takes one result after another, in the calling thread. An exception ends the stream.
using ConsumeImage = std::function<void(const StreamedImage&)>;

/// Progress and cancellation of many images or texts.
struct StreamOptions {
  /// Called in the calling thread after each result or group of texts and, while one is computed, after each
  /// block that all threads share, with the number of completed inputs (including fractions of those in
  /// progress) and their total number.
  std::function<void(double done, std::size_t count)> on_progress{};
  /// Called before each file and, in the calling thread, before each group and after each such block; true
  /// ends the call.
  std::function<bool()> is_cancelled{};
};

/// Runs the inputs 0 .. count - 1, created by source(index) in any thread, with the session's threads, batch
/// and input size. Reading and computing alternate, so that at most SessionOptions::threads threads are busy
/// at any time; a single thread does both. At most max(16, 4 x threads) images, or as many as fill 2 MiB of
/// pixels for each thread (10 MiB for few threads), are held at a time. The results have the same bits for
/// any batch and number of threads. Returns how many inputs were passed to `consume`, fewer than `count` if
/// the stream was cancelled. Throws Error if the request does not fit the model.
VIT_API std::size_t for_each_image(Session& session, std::size_t count,
                                   const std::function<ImageSource(std::size_t)>& source,
                                   const Request& request, const ConsumeImage& consume,
                                   const StreamOptions& options = {});

/// Runs image files.
VIT_API std::size_t for_each_image(Session& session, std::span<const std::filesystem::path> files,
                                   const Request& request, const ConsumeImage& consume,
                                   const StreamOptions& options = {});

}  // namespace vit
