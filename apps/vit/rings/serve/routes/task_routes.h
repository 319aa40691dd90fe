// What the routes of maps, boxes, keypoints and scores share: inputs of /v1/classify, options of the command
// of the same name, an object for each image.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "apps/vit/rings/serve/work/map_form.h"
#include "vit/io/json_writer.h"

namespace vit::app {

/// A request whose body is read, with the model that it is for.
struct TaskCall {
  Service& service;
  std::shared_ptr<Call> call;
  internal::Json body;
  std::string_view object;  // "depth": what the answer says it is
  std::size_t model = 0;

  const ServedModel& served() const { return service.models()[model]; }
  const Preprocessor& preprocessor() const { return *service.options().preprocessors[model]; }
};
/// Reads the body, which may have the members of inputs and `options`. Without "model" it is the only one
/// that `takes`; `lack`: what a model that does not take lacks. Throws ApiError.
TaskCall begin_task(Service& service, const std::shared_ptr<Call>& call, std::string_view object,
                    std::span<const std::string_view> options, bool (*takes)(const ServedModel& model),
                    std::string_view lack);
/// The images of `input`. Throws ApiError for texts, and for a model that has no preprocessing.
std::vector<WorkItem> read_images(const TaskCall& task);
/// Work of the task for all images.
std::shared_ptr<Work> task_work(const TaskCall& task, std::shared_ptr<OutputTask> output_task);
/// Computes, and answers {"object", "model", "data": [the objects of the images]}, or with the objects as
/// lines.
void run_task(const TaskCall& task, const std::shared_ptr<Work>& work);

/// A member that is a number from `least` to `most`. Throws ApiError (400).
std::optional<double> find_number(const internal::Json& body, std::string_view name, double least,
                                  double most);
/// Throws ApiError (400) for a member that changes nothing here; `what`: "is for ...".
void refuse_without_effect(const internal::Json& body, std::string_view name, std::string_view what);
/// One of these words. Throws ApiError (400).
std::optional<std::size_t> find_word(const internal::Json& body, std::string_view name,
                                     std::span<const std::string_view> words);
/// The member "format" of answers with maps: png (default), color, npy, or json for none.
MapForm read_map_form(const internal::Json& body);

/// {"object", "model", "data": [...]} with what `write` makes of each item.
template <typename Write>
HttpResponse data_response(std::string_view object, const std::string& model, std::size_t count,
                           const Write& write) {
  HttpResponse out;
  internal::JsonWriter json(out.body);
  json.begin_object().member("object", object).member("model", model).key("data").begin_array();
  for (std::size_t i = 0; i < count; ++i) write(json, i);
  json.end_array().end_object();
  return out;
}

}  // namespace vit::app
