// /v1/segment and /v1/detect of a model of prompts: phrases, boxes and points of a request.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/routes/task_routes.h"

namespace vit::app {

/// Whether a model answers phrases, boxes or points.
inline bool takes_prompts(const ServedModel& model) {
  return model.facts().takes_phrases || model.facts().takes_objects;
}

/// `own` and the members of prompts.
std::vector<std::string_view> with_prompt_members(std::span<const std::string_view> own);
/// Throws ApiError (400) for a member of prompts: the model takes none.
void refuse_prompt_members(const TaskCall& task);
/// The same for one member.
void refuse_member(const TaskCall& task, std::string_view member);

/// Segments of classes, or of objects.
void answer_prompts(const TaskCall& task);
/// Boxes of classes.
void answer_prompted_boxes(const TaskCall& task);

}  // namespace vit::app
