#include "apps/vit/rings/serve/work/engine.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/config.h"

namespace vit::app {
namespace {

constexpr std::size_t kTextsAtOnce = 64;
constexpr const char* kNotFinite = "the features are not finite; damaged pixels or weights?";
constexpr const char* kGone = "client disconnected";

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// What the class token attends to in the last block.
OutputKey attention_key(const ModelConfig& config) {
  return {Output::attention_query, config.encoder.depth - 1, 0};
}

Request request_of(Wanted wanted, bool by_texts, const ModelConfig& config) {
  switch (wanted) {
    case Wanted::embedding: return default_output(config);
    case Wanted::classes: return by_texts ? default_output(config) : Output::logits;
    case Wanted::look: {
      Request request{Output::patches};
      if (config.tokens.class_token) request.add(attention_key(config));
      return request;
    }
  }
  return {};
}

/// The mean over the heads of what the class token attends to, patches only.
std::vector<float> attention_to_patches(const ImageOutputs& outputs, const ModelConfig& config) {
  const TensorView<const float> heads = outputs[attention_key(config)];
  const std::size_t prefix = outputs.num_prefix_tokens();
  std::vector<float> out(heads.dim(1) - prefix);
  for (std::size_t h = 0; h < heads.dim(0); ++h) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] += heads.row(h)[prefix + i] / static_cast<float>(heads.dim(0));
  }
  return out;
}

}  // namespace

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
      worker_outputs_(pool.size()) {}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
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
    for (ServedModel& model : models_) {
      model.load();
      ++num_loaded_;
    }
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
  const std::size_t num_images = work.items.size() - num_texts;
  const double seconds = cost.text * static_cast<double>(num_texts) + (cost.decode + cost.image) *
                                                                          static_cast<double>(num_images) /
                                                                          static_cast<double>(num_threads_);
  const double left = seconds_between(Clock::now(), work.deadline);
  constexpr double kDoubt = 0.8;  // of the estimate: what would just be done is tried
  if (kDoubt * seconds <= left) return std::nullopt;
  const auto fitting = static_cast<std::size_t>(static_cast<double>(work.items.size()) * left / seconds);
  return Refusal{true, text(work.items.size(), " inputs take about ", std::ceil(seconds), " s here, and ",
                            std::floor(left), " s are left before --timeout; about ", fitting, " would fit")};
}

/// The turn of the input at `place` among those of a request that are enqueued now. A client with several
/// requests advances in steps of as many.
Engine::Turn Engine::turn_of(const Work& work, std::uint64_t place) {
  const std::uint64_t step = clients_.at(work.client).num_requests;
  return {.is_bulk = work.is_bulk, .time = virtual_time_ + (place + 1) * step, .number = next_number_++};
}

void Engine::enqueue_items(const std::shared_ptr<Work>& work) {
  for (std::size_t i = 0; i < work->items.size(); ++i) {
    Ref ref{.work = work, .index = i, .turn = turn_of(*work, i), .pixels = {}};
    WorkItem& item = work->items[i];
    const bool is_ready = item.is_text || !item.pixels.empty();
    ref.pixels = std::move(item.pixels);
    Queue& queue = is_ready ? ready_[work->model] : files_;
    queue.emplace(ref.turn, std::move(ref));
    if (is_ready) ++num_ready_;
  }
}

/// The classes of a request come before its images.
void Engine::enqueue_classes(const std::shared_ptr<Work>& work) {
  Ref ref{.work = work, .index = Ref::kClasses, .turn = turn_of(*work, 0), .pixels = {}};
  ready_[work->model].emplace(ref.turn, std::move(ref));
  ++num_ready_;
}

std::size_t Engine::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_waiting_;
}

bool Engine::is_dropped(const Ref& ref) {
  return (ref.work->gone && ref.work->gone->load()) || Clock::now() > ref.work->deadline;
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
  return !files_.empty() && !is_computing_ && num_decoding_ + num_tasks_ < num_threads_ &&
         num_ready_ + num_decoding_ < batch_limit_;
}

/// Once nothing is left to decode that could be computed with what is ready.
bool Engine::may_compute() const {
  return num_ready_ > 0 && num_decoding_ == 0 && num_tasks_ == 0 &&
         (files_.empty() || num_ready_ >= batch_limit_);
}

/// How many images of the oldest queue a worker computes now; 0 where it does not.
std::size_t Engine::task_size() const {
  if (is_computing_ || num_ready_ == 0 || num_decoding_ + num_tasks_ >= num_threads_ ||
      pool_.size() < num_threads_)
    return 0;
  const Queue& queue = ready_[next_queue()];
  const Ref& oldest = queue.begin()->second;
  const ServedModel& served = models_[oldest.work->model];
  if (oldest.is_classes() || oldest.item().is_text || oldest.work->classes || !served.is_loaded()) return 0;
  const std::size_t size =
      std::min(served.images_per_task(oldest.pixels.dim(1), oldest.pixels.dim(2)), batch_limit_);
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
    can_work_.wait(lock, [&] { return is_stopped_ || (size = task_size()) > 0 || may_decode(); });
    if (is_stopped_) return;
    if (size > 0) {
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
    if (may_compute()) can_compute_.notify_one();
  }
}

/// With the lock held before and after.
void Engine::decode(std::size_t worker, Ref ref, std::unique_lock<std::mutex>& lock) {
  ++num_decoding_;
  lock.unlock();
  WorkItem& item = ref.item();
  if (is_dropped(ref)) {
    set_failure(ref, kGone, ErrorKind::io);
  } else {
    try {
      const Clock::time_point start = Clock::now();
      FilePixels found = pool_.decode(worker, item.data,
                                      {.model = static_cast<std::uint32_t>(ref.work->model),
                                       .rules = ref.work->image_rules,
                                       .least_area = ref.work->area.least,
                                       .most_area = ref.work->area.most},
                                      ref.work->deadline);
      ref.pixels = std::move(found.pixels);
      item.image_size = found.image_size;
      add_cost(&Cost::decode, ref.work->model, seconds_between(start, Clock::now()), 1);
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    } catch (const std::exception& error) {
      set_failure(ref, error.what(), ErrorKind::io);
    }
  }
  std::string().swap(item.data);  // the file is no longer needed
  const bool is_ready = item.failure.empty();
  if (!is_ready) finish(std::span(&ref, 1));
  lock.lock();
  --num_decoding_;
  if (is_ready) {
    ready_[ref.work->model].emplace(ref.turn, std::move(ref));
    ++num_ready_;
  }
}

void Engine::compute_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto reloads = [this] { return reload_done_ != nullptr && num_tasks_ == 0; };
    const auto wakes = [&] { return is_stopped_ || reloads() || (may_compute() && task_size() == 0); };
    if (options_.idle_unload_seconds == 0 || num_loaded_.load() == 0) {
      can_compute_.wait(lock, wakes);
    } else if (!can_compute_.wait_for(lock, std::chrono::seconds(options_.idle_unload_seconds), wakes)) {
      if (num_waiting_ == 0) unload_idle();
      continue;
    }
    if (is_stopped_) return;
    is_computing_ = true;
    if (reloads()) {
      const std::function<void(const std::string&)> done = std::exchange(reload_done_, nullptr);
      lock.unlock();
      reload_all(done);
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

void Engine::reload(std::function<void(const std::string&)> done) {
  {
    const std::lock_guard lock(mutex_);
    reload_done_ = std::move(done);
  }
  can_compute_.notify_one();
}

void Engine::reload_all(const std::function<void(const std::string&)>& done) {
  std::size_t num_loaded = 0;
  for (ServedModel& model : models_) {
    try {
      model.reload();
    } catch (const std::exception& error) {
      done(text("the model '", model.name(), "' stays as it was: ", error.what()));
    }
    if (model.is_loaded()) ++num_loaded;
  }
  num_loaded_ = num_loaded;
  done("models and keys are read again");
}

void Engine::unload_idle() {
  for (ServedModel& model : models_) model.unload();
  outputs_ = {};
  for (BatchOutputs& outputs : worker_outputs_) outputs = {};
  num_loaded_ = 0;
  ::malloc_trim(0);
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
  const std::size_t limit = is_classes ? 1 : is_text ? std::max(kTextsAtOnce, batch_limit_) : batch_limit_;
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
    return !ref.is_classes() && !ref.item().is_text && !ref.work->classes &&
           ref.work->wanted == task.front().work->wanted && ref.pixels.shape() == task.front().pixels.shape();
  };
  while (!queue.empty() && task.size() < size && (task.empty() || is_like_first(queue.begin()->second))) {
    give_turn(queue.begin()->first);  // that of a file was given when it was decoded
    task.push_back(std::move(queue.extract(queue.begin()).mapped()));
  }
  num_ready_ -= task.size();
  return task;
}

// ---------------------------------------------------------------------------------------------- computing

/// Makes what `compute` throws the failure of all of them.
template <typename Compute>
void Engine::compute_guarded(std::span<Ref> refs, BatchOutputs& outputs, const Compute& compute) {
  try {
    if (!refs.empty()) compute();
  } catch (const Error& error) {
    for (const Ref& ref : refs) set_failure(ref, std::string(error.message()), error.kind());
  } catch (const std::bad_alloc&) {
    outputs = {};
    for (const Ref& ref : refs) set_failure(ref, "not enough memory", ErrorKind::io);
  } catch (const std::exception& error) {
    for (const Ref& ref : refs) set_failure(ref, error.what(), ErrorKind::io);
  }
}

/// Those that a client waits for, in front of the others, which have failed.
std::span<Engine::Ref> Engine::drop_gone(std::span<Ref> batch) {
  const auto alive =
      std::partition(batch.begin(), batch.end(), [](const Ref& ref) { return !is_dropped(ref); });
  for (const Ref& ref : std::span(alive, batch.end())) {
    if (!ref.is_classes()) set_failure(ref, kGone, ErrorKind::io);
  }
  return {batch.begin(), alive};
}

void Engine::compute_batch(std::vector<Ref> batch) {
  const std::span<Ref> refs = drop_gone(batch);
  const bool are_classes = batch.front().is_classes();
  compute_guarded(refs, outputs_, [&] {
    const std::size_t index = refs.front().work->model;
    ServedModel& served = models_[index];
    const bool is_reloaded = !served.is_loaded();
    LoadedModel& model = served.load();
    if (is_reloaded) ++num_loaded_;
    if (are_classes) return compute_classes(model, *refs.front().work);
    metrics_.add_batch(refs.size());
    const Clock::time_point start = Clock::now();
    const bool are_texts = refs.front().item().is_text;
    are_texts ? compute_texts(model, refs) : compute_images(model, {&model.session(), &outputs_}, refs);
    const double seconds = seconds_between(start, Clock::now());
    are_texts ? add_cost(&Cost::text, index, seconds, refs.size())
              : add_cost(&Cost::image, index, seconds * static_cast<double>(num_threads_), refs.size());
  });
  are_classes ? finish_classes(batch.front()) : finish(batch);
}

/// A part of the classes of a request: they may be many, and others have turns between the parts.
void Engine::compute_classes(LoadedModel& model, Work& work) {
  const Clock::time_point start = Clock::now();
  const std::size_t before = work.class_progress.num_texts;
  work.classifier = model.encode_classes(*work.classes, work.class_progress, kTextsAtOnce);
  const std::size_t num_texts = work.class_progress.num_texts - before;
  if (num_texts == 0) return;
  const double seconds = seconds_between(start, Clock::now());
  add_cost(&Cost::text, work.model, seconds, num_texts);
  if (work.classifier) return;
  const std::size_t all = work.classes->names.size() * work.classes->templates.size();
  const double left = seconds_between(Clock::now(), work.deadline);
  const double per_text = seconds / static_cast<double>(num_texts);
  const double needed = per_text * static_cast<double>(all - work.class_progress.num_texts);
  VIT_CHECK(needed <= left, (Where{"classes", ErrorKind::unsupported}),
            "candidate_labels times templates are ", all, " texts, which take about ",
            std::ceil(per_text * static_cast<double>(all)), " s here, more than --timeout allows; about ",
            static_cast<std::size_t>(left / per_text) + work.class_progress.num_texts, " would fit");
}

/// After a part of the classes: another turn for the next one, or turns for the images.
void Engine::finish_classes(const Ref& ref) {
  const std::shared_ptr<Work>& work = ref.work;
  if (work->items.front().failure.empty() && !is_dropped(ref)) {
    {
      const std::lock_guard lock(mutex_);
      work->classifier ? enqueue_items(work) : enqueue_classes(work);
    }
    return can_work_.notify_all();
  }
  std::vector<Ref> all(work->items.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {.work = work, .index = i, .turn = ref.turn, .pixels = {}};
    if (work->items[i].failure.empty()) set_failure(all[i], kGone, ErrorKind::io);
  }
  finish(all);
}

void Engine::compute_task(std::size_t worker, std::vector<Ref> task) {
  const std::span<Ref> refs = drop_gone(task);
  BatchOutputs& outputs = worker_outputs_[worker];
  compute_guarded(refs, outputs, [&] {
    LoadedModel& model = models_[refs.front().work->model].loaded();
    metrics_.add_batch(refs.size());
    const Clock::time_point start = Clock::now();
    compute_images(model, {&model.session_of(worker), &outputs}, refs);
    add_cost(&Cost::image, refs.front().work->model, seconds_between(start, Clock::now()), refs.size());
  });
  finish(task);
}

void Engine::compute_images(LoadedModel& model, Lane lane, std::span<Ref> batch) {
  const Work& first = *batch.front().work;
  const ModelConfig& config = model.session().model().config();
  const Request request = request_of(first.wanted, first.classes.has_value(), config);
  std::vector<TensorView<const float>> pixels;
  std::vector<Ref*> taken;
  for (Ref& ref : batch) {
    try {
      model.session().model().require_grid(ref.pixels.dim(1), ref.pixels.dim(2));
      pixels.push_back(ref.pixels.view());
      taken.push_back(&ref);
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    }
  }
  try {
    lane.session->run_pixels(pixels, request, *lane.outputs);
  } catch (const std::bad_alloc&) {
    if (taken.size() < 2) throw;
    *lane.outputs = {};
    for (Ref* const ref : taken) compute_images(model, lane, std::span(ref, 1));  // one after the other
    return;
  }
  for (std::size_t i = 0; i < taken.size(); ++i) take_outputs(model, *taken[i], (*lane.outputs)[i]);
  metrics_.add_images(taken.size());
}

void Engine::take_outputs(LoadedModel& model, Ref& ref, const ImageOutputs& outputs) {
  const ModelConfig& config = model.session().model().config();
  WorkItem& item = ref.item();
  const Work& work = *ref.work;
  item.num_tokens = outputs.grid().rows * outputs.grid().columns + outputs.num_prefix_tokens();
  if (work.wanted == Wanted::look) {
    const TensorView<const float> patches = outputs.patches();
    item.grid = outputs.grid();
    item.patches.assign(patches.data(), patches.data() + patches.num_elements());
    if (config.tokens.class_token) item.attention = attention_to_patches(outputs, config);
    return;
  }
  if (work.classes) {
    item.values.resize(work.classifier->size());
    work.classifier->values(outputs, item.values);
  } else {
    const std::span<const float> found =
        outputs[work.wanted == Wanted::classes ? Output::logits : default_output(config)].flat();
    item.values.assign(found.begin(), found.end());
  }
  if (!are_finite(item.values)) set_failure(ref, kNotFinite, ErrorKind::format);
}

void Engine::compute_texts(LoadedModel& model, std::span<Ref> batch) {
  std::vector<TokenRow> rows;
  std::vector<Ref*> taken;
  for (Ref& ref : batch) {
    try {
      rows.push_back(model.tokens(ref.item().data, ref.work->text_rules));
      taken.push_back(&ref);
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    }
  }
  const Tensor<float> vectors = model.encode(rows);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    WorkItem& item = taken[i]->item();
    item.num_tokens = rows[i].count;
    item.is_cut = rows[i].cut;
    item.values.assign(vectors.view().row(i), vectors.view().row(i) + vectors.dim(1));
    if (!are_finite(item.values)) set_failure(*taken[i], kNotFinite, ErrorKind::format);
  }
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
