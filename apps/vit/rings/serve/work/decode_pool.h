// Image files become pixels in processes of their own, confined so that a file which takes one over finds
// nothing: no other file, no network, no other request. A supervisor, forked before there are threads and
// before a secret is read, starts them and starts them again; what ends one costs the request that it had.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/work/decode_link.h"
#include "vit/image/preprocess.h"

namespace vit::app {

struct DecodePoolOptions {
  std::size_t processes = 1;
  std::size_t max_file_bytes = std::size_t{32} << 20;
  bool confined = true;
};

class DecodePool {
 public:
  using Clock = std::chrono::steady_clock;

  /// Forks the supervisor. `preprocessors`: one for each model, nothing for those that take no images; they
  /// must outlive the pool. Throws Error of kind unsupported where there is no sandbox, io where the system
  /// refuses a process or memory.
  DecodePool(std::span<const std::optional<Preprocessor>> preprocessors, const DecodePoolOptions& options);
  ~DecodePool();
  DecodePool(const DecodePool&) = delete;
  DecodePool& operator=(const DecodePool&) = delete;

  std::size_t size() const noexcept;
  /// Decodes and preprocesses in process `index`, for one thread at a time; of `task` the model and its rules
  /// count; no pixels for a box outside of the image. Throws Error: what the file has wrong, or that it ended
  /// the process twice, or was not done by the deadline.
  FilePixels decode(std::size_t index, std::string_view file, DecodeTask task, Clock::time_point deadline);
  /// `lost` is called once, in a thread of the pool, if the supervisor ends by itself: no further file is
  /// decoded then.
  void watch(std::function<void()> lost);
  /// Whether the supervisor lives.
  bool is_alive() const noexcept;
  /// Ends all processes; what is being decoded fails.
  void end() noexcept;
  /// Processes that were started again after one ended unasked.
  std::size_t num_restarts() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace vit::app
