
#include <optional>
#include <string>
#include <string_view>

#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

void add_items(const Json& body, std::string_view name, bool are_texts, std::vector<WorkItem>& items,
               std::size_t max_inputs) {
  const std::optional<Json> list = body.find(name);
  if (!list) return;
  if (!list->is_array())
    throw ApiError(400, std::string(name) + " must be a list of strings", std::string(name));
  check_count(items.size() + list->size(), name, max_inputs);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = vit::text(name, "[", i, "]");
    if (!(*list)[i].is_string()) throw ApiError(400, place + " must be a string", place);
    const std::string_view value = (*list)[i].as_string();
    items.push_back(are_texts ? text_item(value) : image_item(value, place));
  }
}

}  // namespace

std::size_t read_weaviate_inputs(const Json& body, std::vector<WorkItem>& items, std::size_t max_inputs) {
  add_items(body, "texts", true, items, max_inputs);
  const std::size_t num_texts = items.size();
  add_items(body, "images", false, items, max_inputs);
  return num_texts;
}

}  // namespace vit::app
