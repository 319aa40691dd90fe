#include "apps/vit/rings/serve/work/model_memory.h"

#include <algorithm>
#include <exception>
#include <map>

#include "apps/vit/ground/heap.h"
#include "vit/base/check.h"

namespace vit::app {

ModelMemory::ModelMemory(std::span<ServedModel> models, std::size_t budget)
    : models_(models), budget_(budget), needed_(models.size()), last_use_(models.size()) {}

/// What models share counts once.
std::size_t ModelMemory::count_bytes() const {
  std::map<const void*, std::size_t> parts;
  for (const ServedModel& model : models_) {
    if (model.is_loaded()) parts.merge(model.loaded().parts());
  }
  std::size_t sum = 0;
  for (const auto& [part, bytes] : parts) sum += bytes;
  return sum;
}

void ModelMemory::update() {
  num_loaded_ = static_cast<std::size_t>(
      std::ranges::count_if(models_, [](const ServedModel& model) { return model.is_loaded(); }));
  bytes_ = count_bytes();
}

/// Unloads other models until `needed` more bytes fit.
void ModelMemory::make_room(std::size_t model, std::size_t needed) {
  bool is_freed = false;
  while (budget_ > 0 && count_bytes() + needed > budget_) {
    std::size_t oldest = models_.size();
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (i == model || !models_[i].is_loaded()) continue;
      if (oldest == models_.size() || last_use_[i] < last_use_[oldest]) oldest = i;
    }
    if (oldest == models_.size()) break;
    models_[oldest].unload();
    is_freed = true;
  }
  if (is_freed) return_free_memory();
}

LoadedModel& ModelMemory::load(std::size_t model) {
  note_use(model);
  ServedModel& served = models_[model];
  if (served.is_loaded()) return served.loaded();
  make_room(model, needed_[model]);
  LoadedModel& loaded = served.load();
  make_room(model, 0);
  needed_[model] = 0;
  for (const auto& [part, bytes] : loaded.parts()) needed_[model] += bytes;
  update();
  return loaded;
}

void ModelMemory::load_all() {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    load(i);
    constexpr std::size_t kMebibyte = std::size_t{1} << 20;
    VIT_CHECK(budget_ == 0 || needed_[i] <= budget_, (Where{"serve", ErrorKind::argument}),
              "--memory-budget: the model '", models_[i].name(), "' by itself takes ",
              needed_[i] / kMebibyte + 1, " MiB, more than ", budget_ / kMebibyte);
  }
}

void ModelMemory::reload_all(const ReloadNote& note) {
  std::size_t num_read = 0;
  forget_shared_towers();
  for (std::size_t i = 0; i < models_.size(); ++i) {
    try {
      make_room(i, needed_[i]);
      models_[i].reload();
      ++num_read;
    } catch (const std::exception& error) {
      note(true, text("the model '", models_[i].name(), "' stays as it was: ", error.what()));
    }
  }
  make_room(models_.size(), 0);
  update();
  note(num_read < models_.size(), num_read == models_.size()
                                      ? std::string("the models are read again")
                                      : text(num_read, " of ", models_.size(), " models are read again"));
}

void ModelMemory::unload_all() {
  for (ServedModel& model : models_) model.unload();
  update();
  return_free_memory();
}

}  // namespace vit::app
