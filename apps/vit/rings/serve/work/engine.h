// The work between a request and its answer: image files are decoded by a DecodePool, what is ready is
// computed, and the last input of a request hands it back. No more than --threads threads are busy:
//
//   submit() -> files waiting -> decoded by workers -> ready, a queue for each model -> computed -> done
//            -> texts ------------------------------------^
//
// Few inputs are computed by all threads together once everything that waits is decoded, so that a single
// request is answered soonest. Where enough images wait to keep all threads busy, each worker decodes and
// computes images of its own, and none of them waits for another one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/work/decode_pool.h"
#include "apps/vit/rings/serve/work/metrics.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "vit/session.h"

namespace vit::app {

/// What a request wants of its inputs.
enum class Wanted {
  embedding,  // the vector of `vit embed`
  classes,    // a value for each class: the model's logits, or scaled cosines with ClassTexts
  look,       // patch features, and the attention of the class token in the last block
};

/// One input, and what became of it.
struct WorkItem {
  bool is_text = false;
  std::string data;  // image file, or text

  std::vector<float> values;              // of embedding or classes
  std::vector<float> patches, attention;  // of look: (h, w, C) and (h, w)
  GridSize grid;                          // of look
  ImageSize image_size;
  std::size_t num_tokens = 0;
  std::string failure;  // "" where there is none
  ErrorKind kind = ErrorKind::io;
};

/// The inputs of one request for one model.
struct Work {
  std::size_t model = 0;  // index
  std::vector<WorkItem> items;
  Wanted wanted = Wanted::embedding;
  ImageRules image_rules = ImageRules::checkpoint;
  TextRules text_rules = TextRules::checkpoint;
  std::optional<ClassTexts> classes;
  GoneFlag gone;
  std::chrono::steady_clock::time_point deadline;
  /// Called once all items are done or failed, in a thread of the engine, which it must not hold up.
  std::function<void(Work&)> done;

  std::size_t num_left = 0;  // for the engine
};

struct EngineOptions {
  int threads = 0;                   // 0 = all cores
  std::size_t batch = 0;             // inputs computed together; 0 = chosen
  std::size_t max_waiting = 1024;    // inputs
  unsigned idle_unload_seconds = 0;  // 0 = never
};

class Engine {
 public:
  /// `pool` and `models` must outlive it.
  Engine(std::span<ServedModel> models, DecodePool& pool, Metrics& metrics, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads all models in the thread that computes, and then calls `loaded` there, with what went wrong or "".
  void start(std::function<void(const std::string& failure)> loaded);
  /// False where too many inputs wait; nothing happens then. A request of more inputs than may wait is taken
  /// while nothing else waits.
  bool submit(std::shared_ptr<Work> work);
  /// Ends after what is being computed; what waits is not handed back.
  void stop();
  std::size_t num_waiting() const;
  std::size_t num_loaded() const { return num_loaded_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Ref {
    std::shared_ptr<Work> work;
    std::size_t index = 0;
    std::uint64_t number = 0;  // in the order of arrival
    Tensor<float> pixels;      // of an image that is decoded

    WorkItem& item() const { return work->items[index]; }
  };

  /// What images are computed with.
  struct Lane {
    Session* session = nullptr;
    BatchOutputs* outputs = nullptr;
  };

  void work_loop(std::size_t worker);
  void compute_loop();
  bool load_all();
  bool may_decode() const;
  bool may_compute() const;
  std::size_t task_size() const;
  std::size_t oldest_queue() const;
  std::vector<Ref> take_batch();
  std::vector<Ref> take_task(std::size_t size);
  void decode(std::size_t worker, Ref ref, std::unique_lock<std::mutex>& lock);
  void compute_task(std::size_t worker, std::vector<Ref> task);
  void compute_batch(std::vector<Ref> batch);
  std::span<Ref> drop_gone(std::span<Ref> batch);
  void compute_images(LoadedModel& model, Lane lane, std::span<Ref> batch);
  void compute_texts(LoadedModel& model, std::span<Ref> batch);
  void take_outputs(LoadedModel& model, Ref& ref, const ImageOutputs& outputs);
  void finish(std::span<Ref> refs);
  void unload_idle();
  static bool is_dropped(const Ref& ref);
  static void set_failure(const Ref& ref, std::string text, ErrorKind kind);
  template <typename Compute>
  static void compute_guarded(std::span<Ref> refs, BatchOutputs& outputs, const Compute& compute);

  std::span<ServedModel> models_;
  DecodePool& pool_;
  Metrics& metrics_;
  const EngineOptions options_;
  const std::size_t num_threads_, batch_limit_;
  std::function<void(const std::string&)> loaded_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable can_work_, can_compute_;
  std::deque<Ref> files_;
  std::vector<std::deque<Ref>> ready_;  // of each model
  std::size_t num_ready_ = 0, num_decoding_ = 0, num_waiting_ = 0;
  std::size_t num_tasks_ = 0, num_in_tasks_ = 0;  // that workers compute, and their images
  std::uint64_t next_number_ = 0;
  bool is_computing_ = false, is_stopped_ = false;  // all threads together

  std::atomic<std::size_t> num_loaded_{0};
  BatchOutputs outputs_;                      // of all threads together
  std::vector<BatchOutputs> worker_outputs_;  // of each worker
  std::vector<std::thread> threads_;
};

}  // namespace vit::app
