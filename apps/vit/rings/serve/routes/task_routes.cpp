#include "apps/vit/rings/serve/routes/task_routes.h"

#include <algorithm>
#include <utility>

#include "apps/vit/rings/serve/routes/lines.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

constexpr std::string_view kInputMembers[]{"model", "input", "messages", "modality", "user"};

}  // namespace

TaskCall begin_task(Service& service, const std::shared_ptr<Call>& call, std::string_view object,
                    std::span<const std::string_view> options, bool (*takes)(const ServedModel& model),
                    std::string_view lack) {
  TaskCall out{.service = service,
               .call = call,
               .body = read_request(call->request, service.options().max_body),
               .object = object};
  std::vector<std::string_view> members(std::begin(kInputMembers), std::end(kInputMembers));
  members.insert(members.end(), options.begin(), options.end());
  check_members(out.body, members);
  out.model = service.find_model(*call, find_text(out.body, "model"), takes);
  if (!takes(out.served()))
    throw ApiError(400, vit::text("the model '", out.served().name(), "' has no ", lack), "model",
                   "unsupported_input");
  return out;
}

std::vector<WorkItem> read_images(const TaskCall& task) {
  std::vector<WorkItem> items =
      read_inputs(task.call->request, task.body, StringMeaning::image, task.service.options().max_inputs);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_text)
      throw ApiError(400, vit::text(task.object, " is of images"), vit::text("input[", i, "]"),
                     "unsupported_input");
  }
  task.service.check_takes(task.model, items);
  return items;
}

std::shared_ptr<Work> task_work(const TaskCall& task, std::shared_ptr<OutputTask> output_task) {
  auto work = std::make_shared<Work>();
  work->model = task.model;
  work->wanted = Wanted::task;
  work->task = std::move(output_task);
  work->items = read_images(task);
  return work;
}

void run_task(const TaskCall& task, const std::shared_ptr<Work>& work) {
  task.call->request.body = {};
  const bool as_lines = wants_lines(task.call->request);
  task.service.run(
      task.call, work,
      [as_lines, object = std::string(task.object), model = task.served().name()](const Work& done) {
        check_classes(done);
        if (as_lines)
          return lines_of(
              done, [](JsonWriter& json, const WorkItem& item, std::size_t) { json.json(item.result); });
        check_items(done, "input");
        return data_response(object, model, done.items.size(),
                             [&](JsonWriter& json, std::size_t i) { json.json(done.items[i].result); });
      });
}

std::optional<double> find_number(const Json& body, std::string_view name, double least, double most) {
  const std::optional<Json> value = body.find(name);
  if (!value) return std::nullopt;
  if (value->is_number()) {
    const double number = value->as_double();
    if (number >= least && number <= most) return number;
  }
  throw ApiError(400, vit::text(name, " must be a number from ", least, " to ", most), std::string(name),
                 "invalid_value");
}

void refuse_without_effect(const Json& body, std::string_view name, std::string_view what) {
  if (body.find(name))
    throw ApiError(400, vit::text(name, " ", what), std::string(name), "unsupported_input");
}

std::optional<std::size_t> find_word(const Json& body, std::string_view name,
                                     std::span<const std::string_view> words) {
  const std::optional<std::string> word = find_text(body, name);
  if (!word) return std::nullopt;
  const auto found = std::ranges::find(words, *word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string names;
  for (const std::string_view one : words) names += (names.empty() ? "" : ", ") + std::string(one);
  throw ApiError(400, vit::text(name, " must be one of ", names), std::string(name), "invalid_value");
}

MapForm read_map_form(const Json& body) {
  constexpr std::string_view kWords[]{"json", "png", "png16", "color", "npy"};
  constexpr MapForm kForms[]{MapForm::none, MapForm::png, MapForm::png, MapForm::color, MapForm::npy};
  return kForms[find_word(body, "format", kWords).value_or(1)];
}

}  // namespace vit::app
