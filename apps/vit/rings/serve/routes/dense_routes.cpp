// Maps, boxes and keypoints: the commands depth, segment, detect and pose for images that a request brings.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/dense/boxes_file.h"
#include "apps/vit/rings/serve/routes/lines.h"
#include "apps/vit/rings/serve/routes/prompt_routes.h"
#include "apps/vit/rings/serve/routes/task_routes.h"
#include "apps/vit/rings/serve/work/dense_tasks.h"
#include "apps/vit/rings/serve/work/member_names.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

constexpr std::size_t kMostClasses = 10'000, kMostTemplates = 100;

/// Whether the head of a model gives this.
template <Output... kOutputs>
bool gives(const ServedModel& model) {
  const std::optional<DenseConfig>& dense = model.facts().dense;
  return dense && ((dense->find(kOutputs) != nullptr) || ...);
}

/// What the head gives, which only arrays can hold.
bool read_raw(const Json& body, MapForm form) {
  const bool raw = find_flag(body, "raw").value_or(false);
  if (raw && form != MapForm::npy)
    throw ApiError(400, "raw requires \"format\": \"npy\"", "raw", "invalid_value");
  return raw;
}

// ---------------------------------------------------------------------------------------------------- depth

void answer_depth(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOptions[]{"format", "raw", "colormap", "png_scale"};
  const TaskCall task =
      begin_task(service, call, "depth", kOptions, gives<Output::depth>, "head that gives depth");
  DepthAsked asked{.form = read_map_form(task.body),
                   .png_scale = find_number(task.body, "png_scale", 1e-3, 1e6).value_or(1000.0)};
  if (asked.form != MapForm::png) refuse_without_effect(task.body, "png_scale", "is of \"format\": \"png\"");
  if (asked.form != MapForm::color)
    refuse_without_effect(task.body, "colormap", "is of \"format\": \"color\"");
  asked.raw = read_raw(task.body, asked.form);
  if (const std::optional<std::string> name = find_text(task.body, "colormap")) {
    try {
      asked.colors = color_map(*name);
    } catch (const UsageError& error) {
      throw ApiError(400, of_members(error.what()), "colormap", "invalid_value");
    }
  }
  run_task(task, task_work(task, depth_task(task.preprocessor(), asked)));
}

// ------------------------------------------------------------------------------------------------- segments

bool gives_segments(const ServedModel& model) {
  return gives<Output::classes, Output::masks>(model) || takes_prompts(model);
}

void answer_segment(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOwn[]{"format",         "raw",     "task", "threshold",
                                    "mask_threshold", "overlap", "stuff"};
  constexpr std::string_view kTasks[]{"semantic", "instance", "panoptic", "auto"};
  const TaskCall task = begin_task(service, call, "segment", with_prompt_members(kOwn), gives_segments,
                                   "head that gives segments");
  if (takes_prompts(task.served())) return answer_prompts(task);
  refuse_prompt_members(task);
  SegmentAsked asked{.form = read_map_form(task.body)};
  asked.raw = read_raw(task.body, asked.form);
  constexpr SegmentTask kMeant[]{SegmentTask::semantic, SegmentTask::instance, SegmentTask::panoptic};
  const std::size_t word = find_word(task.body, "task", kTasks).value_or(std::size(kMeant));
  if (word < std::size(kMeant)) asked.choices.task = kMeant[word];
  asked.choices.threshold = find_number(task.body, "threshold", 0.0, 1.0);
  asked.choices.mask_threshold = find_number(task.body, "mask_threshold", 0.0, 1.0);
  asked.choices.overlap = find_number(task.body, "overlap", 0.0, 1.0);
  asked.choices.stuff = find_list(task.body, "stuff", kMostClasses);
  run_task(task, task_work(task, segment_task(task.preprocessor(), asked)));
}

// ---------------------------------------------------------------------------------------------------- boxes

/// Words to look for, under either of their names; nothing without them.
std::optional<ClassTexts> read_words(const TaskCall& task) {
  ClassTexts out{.names = find_words(task.body, kMostClasses),
                 .templates = read_strings(task.body, "template", kMostTemplates)};
  const bool takes_words = gives<Output::box_vectors>(task.served());
  if (out.names.empty()) {
    if (!out.templates.empty()) throw ApiError(400, "template requires classes", "template", "invalid_value");
    if (takes_words)
      throw ApiError(400, "this model finds what words say; name them with classes", "classes", "missing");
    return std::nullopt;
  }
  if (!takes_words)
    throw ApiError(400, "this model has classes of its own; words are for OWL-ViT and OWLv2", "classes",
                   "unsupported_input");
  if (!task.served().facts().no_texts.empty())
    throw ApiError(400, task.served().facts().no_texts, "classes", "unsupported_input");
  check_class_texts(out, "classes");
  if (out.templates.empty()) out.templates.emplace_back(kPlainTemplate);
  return out;
}

bool gives_boxes(const ServedModel& model) {
  return gives<Output::boxes>(model) || model.facts().takes_phrases;
}

void answer_detect(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOptions[]{"classes",   "candidate_labels", "template",   "boxes",
                                        "threshold", "format",           "prompt_rule"};
  constexpr std::string_view kForms[]{"json"};
  const TaskCall task = begin_task(service, call, "detect", kOptions, gives_boxes, "head that gives boxes");
  if (takes_prompts(task.served())) return answer_prompted_boxes(task);
  for (const char* const member : {"boxes", "prompt_rule"}) refuse_member(task, member);
  find_word(task.body, "format", kForms);
  std::optional<float> threshold;
  if (const std::optional<double> given = find_number(task.body, "threshold", 0.0, 1.0))
    threshold = static_cast<float>(*given);
  std::optional<ClassTexts> words = read_words(task);
  const auto work = task_work(task, detect_task(task.preprocessor(), threshold));
  work->classes = std::move(words);
  run_task(task, work);
}

// ------------------------------------------------------------------------------------------------ keypoints

/// The boxes of each of `count` inputs; nothing without them, which means whole images.
std::optional<std::vector<std::vector<Box>>> read_all_boxes(const Json& body, std::size_t count) {
  const std::vector<std::string> labels = read_strings(body, "label", kMostClasses);
  const std::optional<Json> boxes = body.find("boxes");
  if (!boxes) {
    if (!labels.empty()) throw ApiError(400, "label requires boxes", "label", "invalid_value");
    return std::nullopt;
  }
  try {
    boxes->expect(Json::Kind::array);
    const auto is_of_image = [&](std::size_t i) {  // a list of boxes, or an object with one
      const Json one = (*boxes)[i];
      return one.is_object() ? one.find("boxes") || one.find("poses")
                             : one.is_array() && (one.size() == 0 || !one[0].is_number());
    };
    std::vector<std::vector<Box>> out;
    if (boxes->size() > 0 && !is_of_image(0)) {
      out.push_back(read_boxes(*boxes, labels));
    } else {
      for (std::size_t i = 0; i < boxes->size(); ++i) out.push_back(read_boxes((*boxes)[i], labels));
      if (out.empty() && count == 1) out.emplace_back();
    }
    if (out.size() != count)
      throw ApiError(400, vit::text("boxes of ", out.size(), " images, and there are ", count), "boxes",
                     "invalid_value");
    return out;
  } catch (const Error& error) {
    throw ApiError(400, std::string(error.message()), "boxes", "invalid_value");
  }
}

/// An item for each box, with the file of its image.
std::vector<WorkItem> items_of_boxes(std::vector<WorkItem> images,
                                     const std::vector<std::vector<Box>>& boxes) {
  std::vector<WorkItem> out;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto file = std::make_shared<const std::string>(std::move(images[i].data));
    for (const Box& box : boxes[i]) {
      WorkItem& item = out.emplace_back();
      item.shared_file = file;
      item.box = box;
    }
  }
  return out;
}

/// {"index", "poses": [{"box", "keypoints"}]}; keypoints of a box outside of the image are none.
void write_poses(JsonWriter& json, std::size_t index, std::span<const WorkItem> boxes) {
  json.begin_object().member("index", index).key("poses").begin_array();
  for (const WorkItem& item : boxes)
    item.is_outside ? write_pose(json, *item.box, {}) : static_cast<void>(json.json(item.result));
  json.end_array().end_object();
}

/// The results of boxes as those of their images.
HttpResponse poses_response(const Work& work, const std::vector<std::size_t>& counts,
                            const std::string& model, bool as_lines) {
  std::vector<std::span<const WorkItem>> images;
  std::size_t first = 0;
  for (const std::size_t count : counts) {
    images.push_back(std::span(work.items).subspan(first, count));
    first += count;
  }
  const auto failure_of_image = [&](std::size_t i) {
    const auto failed =
        std::ranges::find_if(images[i], [](const WorkItem& item) { return !item.failure.empty(); });
    return failed == images[i].end() ? nullptr : &*failed;
  };
  if (!as_lines) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      if (const WorkItem* const failed = failure_of_image(i))
        throw failure_of_item(*failed, vit::text("input[", i, "]"));
    }
    return data_response("pose", model, images.size(),
                         [&](JsonWriter& json, std::size_t i) { write_poses(json, i, images[i]); });
  }
  HttpResponse out{.content_type = kLinesType};
  for (std::size_t i = 0; i < images.size(); ++i) {
    JsonWriter json(out.body);
    const WorkItem* const failed = failure_of_image(i);
    failed != nullptr ? write_failure(json, i, failed->failure) : write_poses(json, i, images[i]);
    out.body += "\n";
  }
  return out;
}

void answer_pose(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOptions[]{"boxes", "label", "format"};
  constexpr std::string_view kForms[]{"json"};
  const TaskCall task =
      begin_task(service, call, "pose", kOptions, gives<Output::heatmaps>, "head that gives keypoints");
  find_word(task.body, "format", kForms);
  const auto work = task_work(task, pose_task());
  std::vector<std::size_t> counts(work->items.size(), 1);
  if (const auto boxes = read_all_boxes(task.body, work->items.size())) {
    std::ranges::transform(*boxes, counts.begin(), [](const std::vector<Box>& list) { return list.size(); });
    work->items = items_of_boxes(std::move(work->items), *boxes);
    check_count(work->items.size(), "boxes", service.options().max_inputs);
  }
  call->request.body = {};
  service.run(
      call, work,
      [counts = std::move(counts), model = task.served().name(), as_lines = wants_lines(call->request)](
          const Work& done) { return poses_response(done, counts, model, as_lines); });
}

constexpr Route kRoutes[]{
    {.method = "POST",
     .path = "/v1/depth",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_depth,
     .summary = "Depth of every pixel: vit depth"},
    {.method = "POST",
     .path = "/v1/segment",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_segment,
     .summary = "What every pixel shows: vit segment"},
    {.method = "POST",
     .path = "/v1/detect",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_detect,
     .summary = "Boxes of classes or words: vit detect"},
    {.method = "POST",
     .path = "/v1/pose",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_pose,
     .summary = "Keypoints in boxes: vit pose"},
};

}  // namespace

std::span<const Route> dense_routes() {
  return kRoutes;
}

}  // namespace vit::app
