// The part of the engine that answers prompts: the features of an image are computed once and kept, and each
// prompt about it costs the rest only.
#include <utility>

#include "apps/vit/rings/serve/work/engine.h"
#include "apps/vit/rings/serve/work/loaded_prompts.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr Where kPromptWhere{"prompts", ErrorKind::io};

}  // namespace

KeptImages::Key Engine::kept_key(const Ref& ref) {
  return {.model = ref.work->model, .client = ref.work->client, .digest = ref.item().digest};
}

/// Images that were asked about before need no decoding.
void Engine::find_kept(Work& work) const {
  for (WorkItem& item : work.items)
    item.is_kept = kept_.has({.model = work.model, .client = work.client, .digest = item.digest});
}

/// False if the features that were kept are gone, or those of a model that was unloaded or read again since:
/// the file is to be decoded.
bool Engine::compute_prompts(Ref& ref) {
  const std::size_t index = ref.work->model;
  WorkItem& item = ref.item();
  LoadedModel& model = memory_.load(index);
  LoadedPrompts& prompts = *model.prompts();
  std::shared_ptr<const KeptImage> image;
  if (item.is_kept) {
    image = kept_.find(kept_key(ref));
    if (!image || image->by != &prompts) {
      kept_.drop(kept_key(ref));
      return false;
    }
    item.image_size = image->size;
  } else {
    image = encode_image(model, ref);
  }
  item.drop_file();
  metrics_.add_batch(1);
  const Clock::time_point start = Clock::now();
  internal::JsonWriter json(item.result);
  try {
    prompts.answer(json, *item.question, *image, ref.index,
                   [&] { VIT_CHECK(!is_dropped(ref), kPromptWhere, "the time for this request is over"); });
    hold_result(*ref.work, item.result);
  } catch (...) {
    std::string().swap(item.result);
    throw;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  add_cost(&Cost::prompt, index, seconds * static_cast<double>(num_threads_), item.question->count());
  return true;
}

/// Looks at an image, and keeps what further prompts need.
std::shared_ptr<const KeptImage> Engine::encode_image(LoadedModel& model, Ref& ref) {
  const Clock::time_point start = Clock::now();
  const std::size_t index = ref.work->model;
  const WorkItem& item = ref.item();
  Session& session = model.session();
  LoadedPrompts& prompts = *model.prompts();
  const TensorView<const float> pixels = ref.pixels.view();
  session.set_limits(limits_of(std::span(&ref, 1)));
  session.run_pixels(std::span(&pixels, 1), prompts.request(), outputs_);
  ref.pixels = {};
  std::shared_ptr<const KeptImage> image =
      prompts.encode(outputs_[0], *options_.preprocessors[index], item.image_size);
  outputs_ = {};
  kept_.add(kept_key(ref), image);
  metrics_.add_images(1);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  add_cost(&Cost::image, index, seconds * static_cast<double>(num_threads_), 1);
  return image;
}

}  // namespace vit::app
