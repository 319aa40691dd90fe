// The work between a request and its answer: image files are decoded by a DecodePool, what is ready is
// computed together, and the last input of a request hands it back. Decoding and computing take turns, so
// that no more than --threads of them are busy; nothing waits while there is nothing else to do.
//
//   submit() -> files waiting -> decode threads -> ready, a queue for each model -> one compute thread ->
//   done
//            -> texts ---------------------------------^
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

#include "apps/vit/serve/decode_pool.h"
#include "apps/vit/serve/http.h"
#include "apps/vit/serve/metrics.h"
#include "apps/vit/serve/served_model.h"
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

  void decode_loop(std::size_t process);
  void compute_loop();
  bool load_all();
  bool may_decode() const;
  bool may_compute() const;
  std::vector<Ref> take_batch();
  void compute(std::vector<Ref> batch);
  void compute_images(LoadedModel& model, std::span<Ref> batch);
  void compute_texts(LoadedModel& model, std::span<Ref> batch);
  void take_outputs(LoadedModel& model, Ref& ref, const ImageOutputs& outputs);
  void finish(std::span<Ref> refs);
  void unload_idle();
  static bool is_dropped(const Ref& ref);
  static void set_failure(const Ref& ref, std::string text, ErrorKind kind);

  std::span<ServedModel> models_;
  DecodePool& pool_;
  Metrics& metrics_;
  const EngineOptions options_;
  const std::size_t batch_limit_;
  std::function<void(const std::string&)> loaded_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable can_decode_, can_compute_;
  std::deque<Ref> files_;
  std::vector<std::deque<Ref>> ready_;  // of each model
  std::size_t num_ready_ = 0, num_decoding_ = 0, num_waiting_ = 0;
  std::uint64_t next_number_ = 0;
  bool is_computing_ = false, is_stopped_ = false;

  std::atomic<std::size_t> num_loaded_{0};
  BatchOutputs results_;
  std::vector<std::thread> threads_;
};

}  // namespace vit::app
