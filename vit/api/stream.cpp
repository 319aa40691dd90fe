#include "vit/session.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "vit/api/source_pixels.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/layers/pass_watch.h"
#include "vit/towers/batch_plan.h"

namespace vit {
using namespace internal;
namespace {

constexpr const char* kOutOfMemory = "not enough memory for an image of this size; try a smaller input size";

/// Preprocessed pixels of one input, or why there are none.
struct Item {
  Tensor<float> pixels;  // (planes, H, W)
  ImageFrame frame;      // of the image
  std::string failure;
  ErrorKind kind = ErrorKind::io;  // of the failure
};

/// Reads one input; errors become its failure. Throws std::bad_alloc if even the text of the failure
/// cannot be stored.
Item read_item(const Session& session, const std::function<ImageSource(std::size_t)>& source,
               std::size_t index, PreprocessMemory& memory) {
  Item item;
  try {
    SourcePixels read = read_pixels(session, source(index), memory);
    const ImageSize computed = session.computed_size({read.pixels.dim(1), read.pixels.dim(2)});
    session.model().require_grid(computed.height, computed.width);
    item.frame = read.frame;
    item.pixels = std::move(read.pixels);
  } catch (const std::bad_alloc&) {
    item.failure = kOutOfMemory;
  } catch (const Error& error) {
    item.failure = error.what();
    item.kind = error.kind();
  } catch (const std::exception& error) {
    item.failure = error.what();
  }
  return item;
}

}  // namespace

/// One run of for_each_image.
class internal::ImageStream {
 public:
  ImageStream(Session& session, std::size_t count, const std::function<ImageSource(std::size_t)>& source,
              const Request& request, const ConsumeImage& consume, const StreamOptions& options)
      : session_(session),
        count_(count),
        source_(source),
        request_(request),
        consume_(consume),
        options_(options),
        memory_(static_cast<std::size_t>(session.options().threads)),
        plan_(plan_group(memory_.size(), session.options().batch)) {}

  std::size_t run() {
    try {
      while (next_ < count_ && !is_cancelled()) {
        first_ = next_;
        read_group();
        if (is_cancelled()) break;
        compute_group();
      }
    } catch (const PassCancelled&) {
      // no completed image would be lost
    }
    return done_;
  }

 private:
  bool is_cancelled() const { return options_.is_cancelled && options_.is_cancelled(); }

  /// The next input to be read into this group; nothing if the group is full.
  std::optional<std::size_t> claim() {
    const std::lock_guard lock(mutex_);
    if (next_ == count_ || plan_.is_full(next_ - first_, bytes_) || is_cancelled()) return std::nullopt;
    items_.emplace_back();
    return next_++;
  }

  void read_group() {
    items_.clear();
    items_.reserve(plan_.at_most);  // claims of other threads must not move items
    bytes_ = 0;
    parallel_for(std::min(plan_.at_most, count_ - first_), session_.options().threads,
                 [&](std::size_t, int thread) {
                   const std::optional<std::size_t> index = claim();
                   if (!index) return;
                   PreprocessMemory& memory = memory_[static_cast<std::size_t>(thread)];
                   Item item = read_item(session_, source_, *index, memory);
                   const std::lock_guard lock(mutex_);
                   bytes_ += item.pixels.empty() ? 0 : item.pixels.num_elements() * sizeof(float);
                   items_[*index - first_] = std::move(item);
                 });
  }

  /// Computes the images read, `batch` at a time if a batch is given, and delivers the results.
  void compute_group() {
    const std::size_t batch = session_.options().batch > 0 ? session_.options().batch : items_.size();
    std::size_t begin = 0;
    while (begin < items_.size()) {
      std::size_t end = begin;
      pixels_.clear();
      for (; end < items_.size() && pixels_.size() < batch; ++end) {
        if (items_[end].failure.empty()) pixels_.push_back(items_[end].pixels.view());
      }
      compute(begin, end);
      begin = end;
    }
  }

  /// Computes the items [begin, end), whose pixels are pixels_: together, or if memory is short
  /// one by one.
  void compute(std::size_t begin, std::size_t end) {
    const bool is_done = run_session(pixels_, done_ + end - begin - pixels_.size());
    std::size_t number = 0;  // of those that were read
    for (std::size_t i = begin; i < end; ++i) {
      if (!items_[i].failure.empty()) {
        hand_out(i, std::nullopt, items_[i].failure);
      } else if (is_done) {
        hand_out(i, results_[number++].of(items_[i].frame), "");
      } else if (run_session(std::span(pixels_).subspan(number++, 1), done_)) {
        hand_out(i, results_[0].of(items_[i].frame), "");
      } else {
        hand_out(i, std::nullopt, kOutOfMemory);
      }
    }
  }

  /// False if memory was short. `done` inputs are completed before.
  bool run_session(std::span<const TensorView<const float>> pixels, std::size_t done) {
    PassWatch watch([this, done](double images) { report(static_cast<double>(done) + images); },
                    options_.is_cancelled);
    const Watched watched(session_, watch);
    try {
      session_.run_pixels(pixels, request_, results_);
      return true;
    } catch (const std::bad_alloc&) {
      results_ = {};
      return false;
    }
  }

  void hand_out(std::size_t item, std::optional<ImageOutputs> outputs, const std::string& failure) {
    consume_({.index = first_ + item,
              .outputs = outputs,
              .size = items_[item].frame.image,
              .failure = failure,
              .kind = items_[item].kind});
    ++done_;
    report(static_cast<double>(done_));
  }

  /// Computed images of a group count as done before they are delivered.
  void report(double done) {
    reported_ = std::max(reported_, done);
    if (options_.on_progress) options_.on_progress(reported_, count_);
  }

  /// While it lives, passes of a session are watched.
  class Watched {
   public:
    Watched(Session& session, PassWatch& watch) : session_(session) { session_.watch_passes(&watch); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() { session_.watch_passes(nullptr); }

   private:
    Session& session_;
  };

  Session& session_;
  const std::size_t count_;
  const std::function<ImageSource(std::size_t)>& source_;
  const Request& request_;
  const ConsumeImage& consume_;
  const StreamOptions& options_;
  std::vector<PreprocessMemory> memory_;  // one per thread
  const GroupPlan plan_;

  std::mutex mutex_;         // guards the four below while a group is read
  std::size_t next_ = 0;     // input to be read next
  std::size_t bytes_ = 0;    // of the pixels of this group
  std::vector<Item> items_;  // the group: inputs first_, first_ + 1, ...
  std::size_t first_ = 0;

  std::vector<TensorView<const float>> pixels_;  // (K, H, W) each, of the images computed together
  BatchOutputs results_;
  std::size_t done_ = 0;
  double reported_ = 0;  // to on_progress
};

std::size_t for_each_image(Session& session, std::size_t count,
                           const std::function<ImageSource(std::size_t)>& source, const Request& request,
                           const ConsumeImage& consume, const StreamOptions& options) {
  VIT_CHECK(source && consume, (Where{"for_each_image", ErrorKind::argument}), "the function that ",
            source ? "takes the results" : "creates the inputs", " is empty");
  return ImageStream(session, count, source, request, consume, options).run();
}

std::size_t for_each_image(Session& session, std::span<const std::filesystem::path> files,
                           const Request& request, const ConsumeImage& consume,
                           const StreamOptions& options) {
  return for_each_image(
      session, files.size(), [files](std::size_t index) { return ImageSource(files[index]); }, request,
      consume, options);
}

}  // namespace vit
