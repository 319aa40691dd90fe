#include "apps/vit/rings/serve/work/engine.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

#include "apps/vit/rings/serve/work/loaded_prompts.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/config.h"

namespace vit::app {
Engine::Engine(std::span<ServedModel> models, DecodePool& pool, Metrics& metrics,
               const EngineOptions& options)
    : models_(models),
      pool_(pool),
      metrics_(metrics),
      options_(options),
      num_threads_(static_cast<std::size_t>(internal::resolve_threads(options.threads))),
      batch_limit_(options.batch != 0 ? options.batch
                                      : Session::most_images_per_group({.threads = options.threads})),
      ready_(models.size()),
      costs_(models.size()),
      memory_(models, options.memory_budget),
      kept_(options.kept_bytes),
      worker_outputs_(pool.size()) {}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  ending_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  can_work_.notify_all();
  can_compute_.notify_all();
  if (!threads_.empty()) pool_.end();  // a worker may wait for a file
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Engine::start(std::function<void(const std::string&)> loaded) {
  loaded_ = std::move(loaded);
  threads_.emplace_back([this] {
    if (load_all()) compute_loop();
  });
  for (std::size_t i = 0; i < pool_.size(); ++i) threads_.emplace_back([this, i] { work_loop(i); });
}

bool Engine::load_all() {
  std::string failure;
  try {
    memory_.load_all();
  } catch (const std::bad_alloc&) {
    failure = "out of memory while the models are loaded";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  loaded_(failure);
  return failure.empty();
}

std::optional<Refusal> Engine::submit(std::shared_ptr<Work> work) {
  work->num_left = work->items.size();
  if (work->items.empty()) {
    work->done(*work);
    return std::nullopt;
  }
  if (work->wanted == Wanted::prompts) find_kept(*work);
  {
    const std::lock_guard lock(mutex_);
    if (std::optional<Refusal> refusal = refusal_of(*work)) return refusal;
    num_waiting_ += work->items.size();
    ClientLoad& client = clients_[work->client];
    ++client.num_requests;
    client.num_inputs += work->items.size();
    work->classes ? enqueue_classes(work) : enqueue_items(work);
  }
  can_work_.notify_all();
  can_compute_.notify_one();
  return std::nullopt;
}

std::optional<Refusal> Engine::refusal_of(const Work& work) const {
  const auto found = clients_.find(work.client);
  const std::size_t waiting = found == clients_.end() ? 0 : found->second.num_inputs;
  if (waiting > 0 && waiting + work.items.size() > options_.max_waiting)
    return Refusal{false, text("too many inputs wait (", waiting, " of this client); try again")};
  const Cost& cost = costs_[work.model];
  const auto num_texts = static_cast<std::size_t>(
      std::ranges::count_if(work.items, [](const WorkItem& item) { return item.is_text; }));
  std::size_t num_prompts = 0, num_kept = 0;
  for (const WorkItem& item : work.items) {
    if (item.question) num_prompts += item.question->count();
    if (item.is_kept) ++num_kept;
  }
  const std::size_t num_images = work.items.size() - num_texts - num_kept;
  const double thread_seconds = (cost.decode + cost.image) * static_cast<double>(num_images) +
                                cost.prompt * static_cast<double>(num_prompts);
  const double seconds =
      cost.text * static_cast<double>(num_texts) + thread_seconds / static_cast<double>(num_threads_);
  const double left = std::chrono::duration<double>(work.deadline - Clock::now()).count();
  constexpr double kDoubt = 0.8;  // of the estimate: what would just be done is tried
  if (kDoubt * seconds <= left) return std::nullopt;
  const std::size_t fitting = num_fitting(left, seconds / static_cast<double>(work.items.size()));
  return Refusal{true, text(work.items.size(), " inputs take about ", std::ceil(seconds), " s here, and ",
                            std::floor(std::max(left, 0.0)), " s are left before --timeout; about ", fitting,
                            " would fit")};
}

/// The turn of the input at `place` among those of a request that are enqueued now. A client with several
/// requests advances in steps of as many.
Engine::Turn Engine::turn_of(const Work& work, std::uint64_t place) {
  const std::uint64_t step = clients_.at(work.client).num_requests;
  return {.is_bulk = work.is_bulk, .time = virtual_time_ + (place + 1) * step, .number = next_number_++};
}

void Engine::enqueue_items(const std::shared_ptr<Work>& work) {
  for (std::size_t i = 0; i < work->items.size(); ++i) {
    Ref ref{.work = work, .index = i, .turn = turn_of(*work, i)};
    WorkItem& item = work->items[i];
    const bool is_ready = item.is_text || !item.pixels.empty() || item.is_kept;
    ref.pixels = std::move(item.pixels);
    Queue& queue = is_ready ? ready_[work->model] : files_;
    queue.emplace(ref.turn, std::move(ref));
    if (is_ready) ++num_ready_;
  }
}

/// The classes of a request come before its images.
void Engine::enqueue_classes(const std::shared_ptr<Work>& work) {
  Ref ref{.work = work, .index = Ref::kClasses, .turn = turn_of(*work, 0)};
  ready_[work->model].emplace(ref.turn, std::move(ref));
  ++num_ready_;
}

std::size_t Engine::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_waiting_;
}

bool Engine::is_dropped(const Ref& ref) const {
  return ending_.stop_requested() || (ref.work->gone && ref.work->gone->load()) ||
         Clock::now() > ref.work->deadline;
}

/// Smoothed over the last inputs.
void Engine::add_cost(double Cost::*of, std::size_t model, double thread_seconds, std::size_t count) {
  constexpr double kWeight = 0.2;
  const double seconds = thread_seconds / static_cast<double>(count);
  const std::lock_guard lock(mutex_);
  double& cost = costs_[model].*of;
  cost = cost == 0 ? seconds : cost + kWeight * (seconds - cost);
}

/// A failure of classes is that of all inputs.
void Engine::set_failure(const Ref& ref, std::string text, ErrorKind kind) {
  const std::span<WorkItem> items = ref.work->items;
  for (WorkItem& item : ref.is_classes() ? items : items.subspan(ref.index, 1)) {
    item.failure = text;
    item.kind = kind;
  }
}

// ------------------------------------------------------------------------------------------- taking turns

bool Engine::may_decode() const {
  const std::size_t limit = is_file_next() ? 2 * batch_limit_ : batch_limit_;
  return !files_.empty() && !is_computing_ && num_busy() < num_threads_ && num_ready_ + num_decoding_ < limit;
}

/// Whether the turn of a file comes before that of all that is decoded.
bool Engine::is_file_next() const {
  return !files_.empty() && (num_ready_ == 0 || files_.begin()->first < ready_[next_queue()].begin()->first);
}

/// Once nothing is left to decode that could be computed with what is ready, and nothing to write: what is
/// computed does not pile up.
bool Engine::may_compute() const {
  return num_ready_ > 0 && num_busy() == 0 && results_.empty() &&
         (files_.empty() || num_ready_ >= batch_limit_);
}

bool Engine::may_write() const {
  return !results_.empty() && !is_computing_ && num_busy() < num_threads_;
}

/// A reload waits for what workers compute and write, and they begin nothing more to compute.
bool Engine::may_reload() const {
  return reload_done_ != nullptr && num_tasks_ + num_writing_ == 0;
}

/// How many images of the oldest queue a worker computes now; 0 where it does not.
std::size_t Engine::task_size() const {
  if (is_computing_ || reload_done_ != nullptr || num_ready_ == 0 || num_busy() >= num_threads_ ||
      pool_.size() < num_threads_)
    return 0;
  const Queue& queue = ready_[next_queue()];
  const Ref& oldest = queue.begin()->second;
  const ServedModel& served = models_[oldest.work->model];
  if (oldest.is_classes() || oldest.item().is_text || oldest.work->classes || !served.is_loaded() ||
      oldest.work->wanted == Wanted::prompts)
    return 0;
  const std::size_t size =
      oldest.is_task() || clients_.size() > 1  // others wait for no more than one
          ? 1
          : std::min(served.images_per_task(oldest.pixels.dim(1), oldest.pixels.dim(2)), batch_limit_);
  const bool more_come = !files_.empty() || num_decoding_ > 0;
  if (queue.size() < size && more_come) return 0;
  const std::size_t num_inputs = files_.size() + num_ready_ + num_decoding_ + num_in_tasks_;
  // two tasks for each thread to begin with, and no fewer than keep all of them busy
  const std::size_t tasks_of_each = num_tasks_ == 0 ? 2 : 1;
  return num_inputs >= tasks_of_each * num_threads_ * size ? size : 0;
}

void Engine::work_loop(std::size_t worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    std::size_t size = 0;
    can_work_.wait(lock,
                   [&] { return is_stopped_ || may_write() || (size = task_size()) > 0 || may_decode(); });
    if (is_stopped_) return;
    if (may_write()) {
      write_result(std::move(results_.extract(results_.begin()).mapped()), lock);
    } else if (size > 0 && !(is_file_next() && may_decode())) {
      std::vector<Ref> task = take_task(size);
      const std::size_t num_images = task.size();
      ++num_tasks_;
      num_in_tasks_ += num_images;
      lock.unlock();
      compute_task(worker, std::move(task));
      lock.lock();
      --num_tasks_;
      num_in_tasks_ -= num_images;
    } else {
      Ref ref = std::move(files_.extract(files_.begin()).mapped());
      give_turn(ref.turn);
      decode(worker, std::move(ref), lock);
    }
    can_work_.notify_all();
    if (may_compute() || may_reload()) can_compute_.notify_one();
  }
}

void Engine::compute_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto wakes = [&] { return is_stopped_ || may_reload() || (may_compute() && task_size() == 0); };
    if (options_.idle_unload_seconds == 0 || memory_.num_loaded() == 0) {
      can_compute_.wait(lock, wakes);
    } else if (!can_compute_.wait_for(lock, std::chrono::seconds(options_.idle_unload_seconds), wakes)) {
      if (num_waiting_ == 0) unload_idle();
      continue;
    }
    if (is_stopped_) return;
    is_computing_ = true;
    if (may_reload()) {
      const ModelMemory::ReloadNote done = std::exchange(reload_done_, nullptr);
      lock.unlock();
      kept_.clear();
      memory_.reload_all(done);
    } else {
      std::vector<Ref> batch = take_batch();
      lock.unlock();
      compute_batch(std::move(batch));
    }
    lock.lock();
    is_computing_ = false;
    can_work_.notify_all();
  }
}

void Engine::reload(ModelMemory::ReloadNote done) {
  {
    const std::lock_guard lock(mutex_);
    reload_done_ = std::move(done);
  }
  can_compute_.notify_one();
}

void Engine::unload_idle() {
  outputs_ = {};
  for (BatchOutputs& outputs : worker_outputs_) outputs = {};
  kept_.clear();
  memory_.unload_all();
}

/// Of the queues that are not empty, the one whose turn is next.
std::size_t Engine::next_queue() const {
  std::size_t next = ready_.size();
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i].empty()) continue;
    if (next == ready_.size() || ready_[i].begin()->first < ready_[next].begin()->first) next = i;
  }
  return next;
}

/// Whose turn is next, and what can be computed together with it.
std::vector<Engine::Ref> Engine::take_batch() {
  Queue& queue = ready_[next_queue()];
  const Ref& next = queue.begin()->second;
  const std::shared_ptr<Work> first = next.work;
  const bool is_classes = next.is_classes(), is_text = !is_classes && next.item().is_text;
  const bool is_single = is_classes || first->wanted == Wanted::prompts;  // long by itself
  const bool is_short = next.is_task() || clients_.size() > 1;  // another client may come at any time
  const std::size_t limit = is_single  ? 1
                            : is_text  ? std::max(kTextsAtOnce, batch_limit_)
                            : is_short ? std::min(num_threads_, batch_limit_)
                                       : batch_limit_;
  std::vector<Ref> batch;
  for (auto at = queue.begin(); at != queue.end() && batch.size() < limit;) {
    const Ref& ref = at->second;
    const bool fits = ref.is_classes() == is_classes &&
                      (is_classes || (ref.item().is_text == is_text && ref.work->wanted == first->wanted &&
                                      ref.work->classes == first->classes));
    if (fits) {
      give_turn(ref.turn);
      batch.push_back(std::move(at->second));
      at = queue.erase(at);
    } else {
      ++at;
    }
  }
  num_ready_ -= batch.size();
  return batch;
}

/// The image whose turn is next, and up to `size` in all that follow it and are like it.
std::vector<Engine::Ref> Engine::take_task(std::size_t size) {
  Queue& queue = ready_[next_queue()];
  std::vector<Ref> task;
  const auto is_like_first = [&](const Ref& ref) {
    return !ref.is_classes() && !ref.item().is_text && !ref.work->classes && !ref.is_task() &&
           ref.work->wanted == task.front().work->wanted && ref.pixels.shape() == task.front().pixels.shape();
  };
  while (!queue.empty() && task.size() < size && (task.empty() || is_like_first(queue.begin()->second))) {
    give_turn(queue.begin()->first);  // that of a file was given when it was decoded
    task.push_back(std::move(queue.extract(queue.begin()).mapped()));
  }
  num_ready_ -= task.size();
  return task;
}

/// Hands back the requests whose last inputs these are.
void Engine::finish(std::span<Ref> refs) {
  std::vector<std::shared_ptr<Work>> done;
  {
    const std::lock_guard lock(mutex_);
    num_waiting_ -= refs.size();
    for (Ref& ref : refs) {
      const auto client = clients_.find(ref.work->client);
      --client->second.num_inputs;
      if (--ref.work->num_left > 0) continue;
      done.push_back(ref.work);
      if (--client->second.num_requests == 0) clients_.erase(client);
    }
  }
  for (const std::shared_ptr<Work>& work : done) work->done(*work);
}

}  // namespace vit::app
