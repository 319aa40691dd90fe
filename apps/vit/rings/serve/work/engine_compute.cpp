// The part of the engine that decodes, computes and writes; engine.cpp has the queues and whose turn it is.
#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

#include "apps/vit/rings/serve/work/engine.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"

namespace vit::app {
namespace {

constexpr const char* kGone = "client disconnected";
constexpr std::size_t kMostResultBytes = std::size_t{256} << 20;  // of a request with tasks
constexpr std::size_t kMostHeldBytes = std::size_t{1} << 30;      // of all of them

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// What the class token attends to in the last block.
OutputKey attention_key(const ModelConfig& config) {
  return {Output::attention_query, config.encoder.depth - 1, 0};
}

Request request_of(Wanted wanted, bool by_texts, const ModelConfig& config) {
  switch (wanted) {
    case Wanted::embedding:
    case Wanted::ranking: return default_output(config);
    case Wanted::classes: return by_texts ? default_output(config) : Output::logits;
    case Wanted::look: {
      Request request{Output::patches};
      if (config.tokens.class_token) request.add(attention_key(config));
      return request;
    }
    case Wanted::task:
    case Wanted::prompts: break;  // their own
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

// ----------------------------------------------------------------------------------------------- decoding

/// With the lock held before and after.
void Engine::decode(std::size_t worker, Ref ref, std::unique_lock<std::mutex>& lock) {
  ++num_decoding_;
  lock.unlock();
  WorkItem& item = ref.item();
  const bool is_asked = ref.work->wanted == Wanted::prompts;
  item.is_kept = is_asked && kept_.has(kept_key(ref));  // since it came here
  if (is_dropped(ref)) {
    set_failure(ref, kGone, ErrorKind::io);
  } else if (!item.is_kept) {
    decode_file(worker, ref);
    item.drop_file();
  }
  const bool is_ready = item.failure.empty() && !item.is_outside;
  if (!is_ready) finish(std::span(&ref, 1));
  lock.lock();
  --num_decoding_;
  if (is_ready) {
    ready_[ref.work->model].emplace(ref.turn, std::move(ref));
    ++num_ready_;
  }
}

void Engine::decode_file(std::size_t worker, Ref& ref) {
  const Work& work = *ref.work;
  WorkItem& item = ref.item();
  try {
    const Clock::time_point start = Clock::now();
    FilePixels found = pool_.decode(worker, item.file(),
                                    {.model = static_cast<std::uint32_t>(work.model),
                                     .rules = work.image_rules,
                                     .least_area = work.area.least,
                                     .most_area = work.area.most,
                                     .has_box = item.box.has_value(),
                                     .box = item.box.value_or(Box{})},
                                    work.deadline);
    item.is_outside = found.pixels.empty();
    item.image_size = found.image_size;
    ref.pixels = work.image_rules == ImageRules::thumbnail ? work.task->pixels_of(std::move(found.pixels))
                                                           : std::move(found.pixels);
    add_cost(&Cost::decode, work.model, seconds_between(start, Clock::now()), 1);
  } catch (const Error& error) {
    set_failure(ref, std::string(error.message()), error.kind());
  } catch (const std::exception& error) {
    set_failure(ref, error.what(), ErrorKind::io);
  }
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
std::span<Engine::Ref> Engine::drop_gone(std::span<Ref> batch) const {
  const auto alive =
      std::partition(batch.begin(), batch.end(), [&](const Ref& ref) { return !is_dropped(ref); });
  for (const Ref& ref : std::span(alive, batch.end())) {
    if (!ref.is_classes()) set_failure(ref, kGone, ErrorKind::io);
  }
  return {batch.begin(), alive};
}

void Engine::compute_batch(std::vector<Ref> batch) {
  if (batch.front().work->wanted == Wanted::prompts) return answer_prompts(std::move(batch.front()));
  const std::span<Ref> refs = drop_gone(batch);
  const bool are_classes = batch.front().is_classes();
  compute_guarded(refs, outputs_, [&] {
    const std::size_t index = refs.front().work->model;
    LoadedModel& model = memory_.load(index);
    if (are_classes) return compute_classes(model, *refs.front().work);
    metrics_.add_batch(refs.size());
    const Clock::time_point start = Clock::now();
    const bool are_texts = refs.front().item().is_text;
    if (are_texts) {
      compute_texts(model, refs);
    } else if (refs.front().is_task()) {
      compute_for_tasks(model, model.session(), refs);
    } else {
      compute_images(model, {&model.session(), &outputs_}, refs);
    }
    const double seconds = seconds_between(start, Clock::now());
    are_texts ? add_cost(&Cost::text, index, seconds, refs.size())
              : add_cost(&Cost::image, index, seconds * static_cast<double>(num_threads_), refs.size());
  });
  if (are_classes) return finish_classes(batch.front());
  batch.front().is_task() ? finish_tasks(batch) : finish(batch);
}

/// A part of the classes of a request: they may be many, and others have turns between the parts.
void Engine::compute_classes(LoadedModel& model, Work& work) {
  const Clock::time_point start = Clock::now();
  const std::size_t before = work.class_progress.num_texts;
  model.limit_texts({.stop = ending_.get_token(), .deadline = work.deadline});
  work.encoded =
      model.encode_classes(*work.classes, work.class_progress, kTextsAtOnce, work.wanted == Wanted::classes);
  const std::size_t num_texts = work.class_progress.num_texts - before;
  if (num_texts == 0) return;
  const double seconds = seconds_between(start, Clock::now());
  add_cost(&Cost::text, work.model, seconds, num_texts);
  if (work.encoded) return;
  const std::size_t all = work.classes->names.size() * work.classes->templates.size();
  const double left = seconds_between(Clock::now(), work.deadline);
  const double per_text = seconds / static_cast<double>(num_texts);
  const double needed = per_text * static_cast<double>(all - work.class_progress.num_texts);
  VIT_CHECK(needed <= left, (Where{"classes", ErrorKind::unsupported}),
            "candidate_labels times templates are ", all, " texts, which take about ",
            std::ceil(per_text * static_cast<double>(all)), " s here, more than --timeout allows; about ",
            num_fitting(left, per_text) + work.class_progress.num_texts, " would fit");
}

/// After a part of the classes: another turn for the next one, or turns for the images.
void Engine::finish_classes(const Ref& ref) {
  const std::shared_ptr<Work>& work = ref.work;
  if (work->items.front().failure.empty() && !is_dropped(ref)) {
    {
      const std::lock_guard lock(mutex_);
      work->encoded ? enqueue_items(work) : enqueue_classes(work);
    }
    return can_work_.notify_all();
  }
  std::vector<Ref> all(work->items.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {.work = work, .index = i, .turn = ref.turn};
    if (work->items[i].failure.empty()) set_failure(all[i], kGone, ErrorKind::io);
  }
  finish(all);
}

void Engine::compute_task(std::size_t worker, std::vector<Ref> task) {
  const std::span<Ref> refs = drop_gone(task);
  BatchOutputs& outputs = worker_outputs_[worker];
  compute_guarded(refs, outputs, [&] {
    const std::size_t index = refs.front().work->model;
    LoadedModel& model = models_[index].loaded();
    memory_.note_use(index);
    metrics_.add_batch(refs.size());
    const Clock::time_point start = Clock::now();
    if (refs.front().is_task()) {
      compute_for_tasks(model, model.session_of(worker), refs);
      for (Ref& ref : refs) {
        if (ref.outputs) write_item(ref, (*ref.outputs)[0]);
      }
    } else {
      compute_images(model, {&model.session_of(worker), &outputs}, refs);
    }
    add_cost(&Cost::image, index, seconds_between(start, Clock::now()), refs.size());
  });
  finish(task);
}

/// The answer to the prompts of an image, by all threads together.
void Engine::answer_prompts(Ref ref) {
  bool is_answered = true;
  if (is_dropped(ref)) {
    set_failure(ref, kGone, ErrorKind::io);
  } else {
    compute_guarded(std::span(&ref, 1), outputs_, [&] { is_answered = compute_prompts(ref); });
  }
  if (is_answered) return finish(std::span(&ref, 1));
  const std::lock_guard lock(mutex_);
  const Turn turn = ref.turn;
  files_.emplace(turn, std::move(ref));
}

/// A pass ends between two blocks once no one waits for it: at the last deadline of its images, or with the
/// server.
RunLimits Engine::limits_of(std::span<const Ref> batch) const {
  RunLimits out{.stop = ending_.get_token(), .deadline = Clock::time_point::min()};
  for (const Ref& ref : batch) out.deadline = std::max(out.deadline, ref.work->deadline);
  return out;
}

void Engine::compute_images(LoadedModel& model, Lane lane, std::span<Ref> batch) {
  const Work& first = *batch.front().work;
  const ModelConfig& config = model.session().model().config();
  const bool are_pages = first.wanted == Wanted::ranking && model.pages() != nullptr;
  const Request request =
      are_pages ? Output::merged : request_of(first.wanted, first.classes.has_value(), config);
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
    lane.session->set_limits(limits_of(batch));
    lane.session->run_pixels(pixels, request, *lane.outputs);
  } catch (const std::bad_alloc&) {
    if (taken.size() < 2) throw;
    *lane.outputs = {};
    for (Ref* const ref : taken) {  // one after the other: those that fit are done
      const std::span<Ref> one(ref, 1);
      compute_guarded(one, *lane.outputs, [&] { compute_images(model, lane, one); });
    }
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
  if (work.wanted == Wanted::ranking && model.pages() != nullptr) {
    try {
      const std::lock_guard lock(model.pages()->mutex);
      const ImageFrame frame{
          .image = item.image_size, .pixels = outputs.frame().pixels, .content = outputs.frame().content};
      const Tensor<float> page = model.pages()->vectors->page(outputs.of(frame));
      item.num_tokens = page.dim(0);
      item.values.assign(page.flat().begin(), page.flat().end());
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    }
    return;
  }
  if (work.classes) {
    const Classifier& classifier = *work.encoded->classifier;
    item.values.resize(classifier.size());
    classifier.values(outputs, item.values);
  } else {
    const std::span<const float> found =
        outputs[work.wanted == Wanted::classes ? Output::logits : default_output(config)].flat();
    item.values.assign(found.begin(), found.end());
  }
  if (std::string defect = defect_of(item.values, "the features are"); !defect.empty())
    set_failure(ref, std::move(defect), ErrorKind::format);
}

/// Questions to pages.
void Engine::compute_questions(SharedPages& pages, std::span<Ref> batch) {
  for (Ref& ref : batch) {
    try {
      const std::lock_guard lock(pages.mutex);
      const Tensor<float> question = pages.vectors->question(ref.item().data);
      ref.item().num_tokens = question.dim(0);
      ref.item().values.assign(question.flat().begin(), question.flat().end());
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    }
  }
}

void Engine::compute_texts(LoadedModel& model, std::span<Ref> batch) {
  if (model.pages() != nullptr) return compute_questions(*model.pages(), batch);
  model.limit_texts(limits_of(batch));
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
    if (std::string defect = defect_of(item.values, "the features are"); !defect.empty())
      set_failure(*taken[i], std::move(defect), ErrorKind::format);
  }
}

// -------------------------------------------------------------------------------------------------- tasks

/// Images of tasks, each in a pass of its own, whose outputs stay until they are written.
void Engine::compute_for_tasks(LoadedModel& model, Session& session, std::span<Ref> batch) {
  for (Ref& ref : batch) {
    Work& work = *ref.work;
    if (is_dropped(ref)) {
      set_failure(ref, kGone, ErrorKind::io);
      continue;
    }
    try {
      std::call_once(work.is_prepared, [&] {
        work.request = work.task->prepare(model.session().shared_model(),
                                          work.encoded ? &work.encoded->vectors : nullptr);
      });
      const TensorView<const float> pixels = ref.pixels.view();
      auto outputs = std::make_unique<BatchOutputs>();
      session.set_limits(limits_of(std::span(&ref, 1)));
      session.run_pixels(std::span(&pixels, 1), work.request, *outputs);
      ref.outputs = std::move(outputs);
      metrics_.add_images(1);
    } catch (const Error& error) {
      set_failure(ref, std::string(error.message()), error.kind());
    } catch (const std::bad_alloc&) {
      set_failure(ref, "not enough memory", ErrorKind::io);
    }
    ref.pixels = {};
  }
}

/// What is computed waits for a worker that writes it.
void Engine::finish_tasks(std::span<Ref> batch) {
  const auto computed =
      std::partition(batch.begin(), batch.end(), [](const Ref& ref) { return ref.outputs != nullptr; });
  {
    const std::lock_guard lock(mutex_);
    for (Ref& ref : std::span(batch.begin(), computed)) {
      const Turn turn = ref.turn;
      results_.emplace(turn, std::move(ref));
    }
  }
  finish(std::span(computed, batch.end()));
}

/// With the lock held before and after.
void Engine::write_result(Ref ref, std::unique_lock<std::mutex>& lock) {
  ++num_writing_;
  lock.unlock();
  is_dropped(ref) ? set_failure(ref, kGone, ErrorKind::io) : write_item(ref, (*ref.outputs)[0]);
  ref.outputs.reset();
  finish(std::span(&ref, 1));
  lock.lock();
  --num_writing_;
}

/// Counts the bytes of a result until the request is answered.
void Engine::hold_result(Work& work, const std::string& result) {
  const std::size_t held = work.results.add(result_bytes_, result.size());
  VIT_CHECK(held <= kMostResultBytes, (Where{"answer", ErrorKind::unsupported}),
            "the results of this request are larger than ", kMostResultBytes >> 20,
            " MiB; send fewer images, or ask for less");
  VIT_CHECK(result_bytes_->load() <= kMostHeldBytes, (Where{"answer", ErrorKind::io}),
            "too many results wait to be sent; try again");
}

/// Makes the result of an image.
void Engine::write_item(const Ref& ref, const ImageOutputs& outputs) {
  Work& work = *ref.work;
  std::string& result = ref.item().result;
  try {
    internal::JsonWriter json(result);
    work.task->write(json, outputs, ref.item(), ref.index);
    return hold_result(work, result);
  } catch (const Error& error) {
    set_failure(ref, std::string(error.message()), error.kind());
  } catch (const std::bad_alloc&) {
    set_failure(ref, "not enough memory", ErrorKind::io);
  } catch (const std::exception& error) {
    set_failure(ref, error.what(), ErrorKind::io);
  }
  std::string().swap(result);
}

}  // namespace vit::app
