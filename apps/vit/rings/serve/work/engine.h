// The work between a request and its answer: image files are decoded by a DecodePool, what is ready is
// computed, and the last input of a request hands it back. No more than --threads threads are busy:
//
//   submit() -> files waiting -> decoded by workers -> ready, a queue for each model -> computed -> done
//            -> texts ------------------------------------^       |           ^
//                                       of tasks: outputs waiting -> written by workers
//
// Requests take turns: an input's turn comes after as many inputs of each other request as are in front of it
// in its own, and a client with several requests has one turn for all of them; bulk requests come after all
// others. Classes in words are encoded in parts, each of which is a turn.
//
// Few inputs are computed by all threads together once everything that waits is decoded, so that a single
// request is answered soonest. Where enough images wait to keep all threads busy, each worker decodes and
// computes images of its own, and none of them waits for another one.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "apps/vit/rings/serve/work/decode_pool.h"
#include "apps/vit/rings/serve/work/kept_images.h"
#include "apps/vit/rings/serve/work/metrics.h"
#include "apps/vit/rings/serve/work/model_memory.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "apps/vit/rings/serve/work/work.h"
#include "vit/session.h"

namespace vit::app {

/// Why a request is not taken.
struct Refusal {
  bool is_too_long = false;  // it cannot be done before its deadline; otherwise too much waits
  std::string why;
};

struct EngineOptions {
  int threads = 0;                   // 0 = all cores
  std::size_t batch = 0;             // inputs computed together; 0 = chosen
  std::size_t max_waiting = 1024;    // inputs of a client
  unsigned idle_unload_seconds = 0;  // 0 = never
  std::size_t memory_budget = 0;     // bytes of models in memory; 0 = any
  std::size_t kept_bytes = 0;        // of features of images that prompts asked about
  std::span<const std::optional<Preprocessor>> preprocessors{};  // of the models
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
  /// Nothing if the work is taken. A request of more inputs than may wait is taken while its client has
  /// nothing else.
  std::optional<Refusal> submit(std::shared_ptr<Work> work);
  /// Reads the files of all models again after what is computed now, before all that waits; `done` is called
  /// with what happened, in the thread that computes.
  void reload(ModelMemory::ReloadNote done);
  /// Ends after the block that is being computed; what is computed, decoded or waits is not handed back.
  void stop();
  std::size_t num_waiting() const;
  const ModelMemory& memory() const noexcept { return memory_; }
  const KeptImages& kept_images() const noexcept { return kept_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kTextsAtOnce = 64;
  /// How many that take `each` seconds fit in `left` seconds, which may be none.
  static std::size_t num_fitting(double left, double each) noexcept {
    return left > 0 && each > 0 ? static_cast<std::size_t>(left / each) : 0;
  }
  /// Order of inputs: bulk ones last, then by virtual time, which grows with the turns that were given.
  struct Turn {
    bool is_bulk = false;
    std::uint64_t time = 0, number = 0;  // number: in the order of arrival
    auto operator<=>(const Turn&) const = default;
  };
  /// An input of a request, or the classes of it.
  struct Ref {
    static constexpr std::size_t kClasses = static_cast<std::size_t>(-1);

    std::shared_ptr<Work> work;
    std::size_t index = 0;
    Turn turn;
    Tensor<float> pixels{};                   // of an image that is decoded
    std::unique_ptr<BatchOutputs> outputs{};  // of a task that is computed

    bool is_classes() const { return index == kClasses; }
    bool is_task() const { return work->wanted == Wanted::task; }
    WorkItem& item() const { return work->items[index]; }
  };
  using Queue = std::map<Turn, Ref>;
  /// A client that has requests here.
  struct ClientLoad {
    std::size_t num_requests = 0, num_inputs = 0;
  };
  /// Seconds of one thread for an input of a model, measured; 0 = not yet.
  struct Cost {
    double decode = 0, image = 0, text = 0, prompt = 0;
  };

  /// What images are computed with.
  struct Lane {
    Session* session = nullptr;
    BatchOutputs* outputs = nullptr;
  };

  void work_loop(std::size_t worker);
  void compute_loop();
  bool load_all();
  std::size_t num_busy() const { return num_decoding_ + num_tasks_ + num_writing_; }
  bool may_decode() const;
  bool is_file_next() const;
  bool may_compute() const;
  bool may_write() const;
  bool may_reload() const;
  std::size_t task_size() const;
  std::size_t next_queue() const;
  std::optional<Refusal> refusal_of(const Work& work) const;
  void enqueue_items(const std::shared_ptr<Work>& work);
  void enqueue_classes(const std::shared_ptr<Work>& work);
  Turn turn_of(const Work& work, std::uint64_t place);
  void give_turn(const Turn& turn) { virtual_time_ = std::max(virtual_time_, turn.time); }
  void add_cost(double Cost::*of, std::size_t model, double thread_seconds, std::size_t count);
  std::vector<Ref> take_batch();
  std::vector<Ref> take_task(std::size_t size);
  void decode(std::size_t worker, Ref ref, std::unique_lock<std::mutex>& lock);
  void decode_file(std::size_t worker, Ref& ref);
  void write_result(Ref ref, std::unique_lock<std::mutex>& lock);
  void write_item(const Ref& ref, const ImageOutputs& outputs);
  void hold_result(Work& work, const std::string& result);
  void compute_task(std::size_t worker, std::vector<Ref> task);
  void compute_batch(std::vector<Ref> batch);
  void compute_classes(LoadedModel& model, Work& work);
  void finish_classes(const Ref& ref);
  std::span<Ref> drop_gone(std::span<Ref> batch) const;
  RunLimits limits_of(std::span<const Ref> batch) const;
  void compute_images(LoadedModel& model, Lane lane, std::span<Ref> batch);
  void compute_texts(LoadedModel& model, std::span<Ref> batch);
  static void compute_questions(SharedPages& pages, std::span<Ref> batch);
  void compute_for_tasks(LoadedModel& model, Session& session, std::span<Ref> batch);
  void finish_tasks(std::span<Ref> batch);
  void take_outputs(LoadedModel& model, Ref& ref, const ImageOutputs& outputs);
  static KeptImages::Key kept_key(const Ref& ref);
  void find_kept(Work& work) const;
  void answer_prompts(Ref ref);
  bool compute_prompts(Ref& ref);
  std::shared_ptr<const KeptImage> encode_image(LoadedModel& model, Ref& ref);
  void finish(std::span<Ref> refs);
  void unload_idle();
  bool is_dropped(const Ref& ref) const;
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
  Queue files_, results_;
  std::vector<Queue> ready_;  // of each model
  std::map<std::string, ClientLoad> clients_;
  std::vector<Cost> costs_;  // of each model
  std::size_t num_ready_ = 0, num_decoding_ = 0, num_waiting_ = 0, num_writing_ = 0;
  std::size_t num_tasks_ = 0, num_in_tasks_ = 0;  // that workers compute, and their images
  std::uint64_t next_number_ = 0, virtual_time_ = 0;
  bool is_computing_ = false, is_stopped_ = false;  // all threads together
  ModelMemory::ReloadNote reload_done_;             // null: no reload is wanted

  ModelMemory memory_;
  KeptImages kept_;
  std::stop_source ending_;  // what is computed is cut short
  std::shared_ptr<std::atomic<std::size_t>> result_bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
  BatchOutputs outputs_;                      // of all threads together
  std::vector<BatchOutputs> worker_outputs_;  // of each worker
  std::vector<std::thread> threads_;
};

}  // namespace vit::app
