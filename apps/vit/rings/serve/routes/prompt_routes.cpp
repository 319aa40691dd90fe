#include "apps/vit/rings/serve/routes/prompt_routes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/rings/dense/prompts_file.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr std::size_t kMostPhrases = 1000;
constexpr std::string_view kPromptMembers[]{"classes", "candidate_labels", "boxes",     "points",
                                            "box",     "objects",          "all_masks", "prompt_rule"};
constexpr std::string_view kObjectMembers[]{"points", "box", "objects", "all_masks"};
constexpr std::string_view kPhraseMembers[]{"classes", "candidate_labels", "boxes"};

[[noreturn]] void refuse(std::string_view member, std::string why) {
  throw ApiError(400, std::move(why), std::string(member), "unsupported_input");
}

/// What `read` makes of a member; what it throws names the member.
template <typename Read>
auto read_member(std::string_view member, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw ApiError(400, std::string(error.message()), std::string(member), "invalid_value");
  }
}

/// The member `name` for each of `count` images: a list of lists, or the list of the only one. An element of
/// it that is an object with `name`, or a list of no numbers, is an image.
template <typename Item>
std::vector<std::vector<Item>> read_lists(const Json& body, std::string_view name, std::size_t count,
                                          std::vector<Item> (*read)(const Json&)) {
  std::vector<std::vector<Item>> out(count);
  const std::optional<Json> all = body.find(name);
  if (!all) return out;
  return read_member(name, [&] {
    all->expect(Json::Kind::array);
    const auto is_image = [&](const Json& one) {
      return one.is_object() ? one.find(name).has_value()
                             : one.is_array() && (one.size() == 0 || !one[0].is_number());
    };
    if (all->size() == 0 || !is_image((*all)[0])) {
      if (count != 1)
        throw ApiError(400, vit::text(name, " of one image, and there are ", count, ": a list for each"),
                       std::string(name), "invalid_value");
      out.front() = read(*all);
      return std::move(out);
    }
    if (all->size() != count)
      throw ApiError(400, vit::text(name, " of ", all->size(), " images, and there are ", count),
                     std::string(name), "invalid_value");
    for (std::size_t i = 0; i < count; ++i) {
      const Json one = (*all)[i];
      out[i] = read(one.is_object() ? one.at(name) : one);
    }
    return std::move(out);
  });
}

AskedObject asked_object(const ObjectLine& line) {
  AskedObject out{.multimask = line.multimask};
  for (const PointLine& point : line.points)
    out.points.push_back({.x = point.x, .y = point.y, .positive = point.positive});
  if (!line.box.empty()) out.box = line.box.front();
  if (line.mask.empty()) return out;
  const std::optional<std::string> file = decode_base64(line.mask);
  if (!file) throw ApiError(400, "a mask must be a .npy file in base64", "objects", "invalid_value");
  const Tensor<float> mask = read_member("objects", [&] { return npy_floats(*file); });
  const std::size_t rank = mask.shape().rank();
  if (rank < 2 || mask.num_elements() != mask.dim(rank - 2) * mask.dim(rank - 1))
    throw ApiError(400, "a mask must be (h, w) logits, found " + mask.shape().to_string(), "objects",
                   "invalid_value");
  out.mask = Tensor<float>(Shape{mask.dim(rank - 2), mask.dim(rank - 1)});
  std::ranges::copy(mask.flat(), out.mask.data());
  return out;
}

/// The object of `points` and `box`, which are of one image.
std::optional<AskedObject> read_one_object(const Json& body, std::size_t count) {
  ObjectLine line;
  if (const std::optional<Json> points = body.find("points"))
    read_member("points", [&] {
      points->expect(Json::Kind::array);
      for (std::size_t i = 0; i < points->size(); ++i) line.points.push_back(read_point((*points)[i]));
      return 0;
    });
  if (const std::optional<Json> box = body.find("box"))
    line.box.push_back(read_member("box", [&] { return read_box(*box); }));
  if (line.points.empty() && line.box.empty()) return std::nullopt;
  const char* const member = line.points.empty() ? "box" : "points";
  if (count != 1)
    throw ApiError(400, vit::text(member, " mean an object of one image, and there are ", count), member,
                   "invalid_value");
  return asked_object(line);
}

MaskForm read_mask_form(const Json& body) {
  constexpr std::string_view kWords[]{"json", "png", "color", "npy", "coco", "rle"};
  constexpr MaskForm kForms[]{MaskForm::none, MaskForm::png,  MaskForm::color,
                              MaskForm::npy,  MaskForm::runs, MaskForm::runs};
  return kForms[find_word(body, "format", kWords).value_or(1)];
}

PromptOptions read_options(const Json& body) {
  constexpr std::string_view kRules[]{"library", "repository"};
  PromptOptions out;
  out.threshold = find_number(body, "threshold", 0.0, 1.0).value_or(out.threshold);
  out.mask_threshold = find_number(body, "mask_threshold", 0.0, 1.0).value_or(out.mask_threshold);
  if (find_word(body, "prompt_rule", kRules).value_or(0) == 1) out.rule = PromptRule::repository;
  return out;
}

/// The prompts of an image from its boxes. Throws ApiError for boxes of no class.
std::vector<Prompt> prompts_of(const std::vector<std::string>& phrases, const std::vector<ExampleLine>& boxes,
                               std::size_t image) {
  const auto fail_box = [&](std::string why) {
    throw ApiError(400, std::move(why), "boxes", "invalid_value");
  };
  if (phrases.empty() && boxes.empty())
    throw ApiError(400, vit::text("input[", image, "] has neither classes nor boxes: what is to be found?"),
                   "classes", "missing");
  for (const ExampleLine& line : boxes) {
    if (line.label.empty() && phrases.size() > 1)
      fail_box("a box has no label, and there are several classes: which of them does it show?");
    if (!line.label.empty() && !phrases.empty() && std::ranges::find(phrases, line.label) == phrases.end())
      fail_box("a box has the label '" + line.label.substr(0, 80) + "', which is none of the classes");
  }
  std::vector<Prompt> out;
  for (const std::string& phrase : phrases.empty() ? std::vector<std::string>{""} : phrases) {
    Prompt& prompt = out.emplace_back(Prompt{.text = phrase});
    for (const ExampleLine& line : boxes) {
      if (phrase.empty() || line.label.empty() || line.label == phrase)
        prompt.boxes.push_back({.box = line.box, .positive = line.positive});
    }
  }
  return out;
}

std::vector<std::string> read_phrases(const Json& body) {
  std::vector<std::string> out = find_words(body, kMostPhrases);
  if (std::ranges::find(out, "") != out.end())
    throw ApiError(400, "classes: a phrase is empty", "classes", "invalid_value");
  return out;
}

bool has_any(const Json& body, std::span<const std::string_view> members) {
  return std::ranges::any_of(members, [&](std::string_view name) { return body.find(name).has_value(); });
}

/// `question` about each image, with what is asked of it.
std::vector<PromptQuestion> questions_of(const TaskCall& task, std::size_t count,
                                         const PromptQuestion& about) {
  const Json& body = task.body;
  std::vector<PromptQuestion> out;
  const auto begin = [&] {
    return PromptQuestion{.options = about.options,
                          .is_semantic = about.is_semantic,
                          .only_boxes = about.only_boxes,
                          .all_masks = about.all_masks,
                          .raw = about.raw,
                          .form = about.form};
  };
  if (has_any(body, kObjectMembers)) {
    std::vector<std::vector<ObjectLine>> objects =
        read_lists<ObjectLine>(body, "objects", count, read_objects);
    std::optional<AskedObject> one = read_one_object(body, count);
    for (std::size_t i = 0; i < count; ++i) {
      PromptQuestion& question = out.emplace_back(begin());
      for (const ObjectLine& line : objects[i]) question.objects.push_back(asked_object(line));
      if (one) question.objects.push_back(*std::move(one));
      if (question.objects.empty())
        throw ApiError(400, vit::text("input[", i, "] has no objects"), "objects", "missing");
    }
    return out;
  }
  const std::vector<std::string> phrases = read_phrases(body);
  const auto boxes = read_lists<ExampleLine>(body, "boxes", count, read_example_boxes);
  for (std::size_t i = 0; i < count; ++i) {
    PromptQuestion& question = out.emplace_back(begin());
    question.prompts = prompts_of(phrases, boxes[i], i);
    question.labels = phrases.empty() ? std::vector<std::string>{"visual"} : phrases;
  }
  return out;
}

void check_parts(const TaskCall& task) {
  const ModelFacts& facts = task.served().facts();
  const bool asks_objects = has_any(task.body, kObjectMembers),
             asks_phrases = has_any(task.body, kPhraseMembers);
  if (asks_objects && asks_phrases)
    throw ApiError(400,
                   "points, box and objects mean one object each; classes and boxes find every instance: "
                   "take one of both",
                   "classes", "invalid_value");
  if (!asks_objects && !asks_phrases)
    throw ApiError(400,
                   "what is to be found? classes are phrases, boxes show it, points and box mean one object",
                   "classes", "missing");
  if (asks_objects && !facts.takes_objects)
    refuse("points", "this model has no part for points; the whole model (sam3_video) has");
  if (asks_phrases && !facts.takes_phrases) refuse("classes", "this model has only the part for points");
}

void run_prompts(const TaskCall& task, const PromptQuestion& about) {
  check_parts(task);
  const auto work = std::make_shared<Work>();
  work->model = task.model;
  work->wanted = Wanted::prompts;
  work->items = read_images(task);
  std::vector<PromptQuestion> questions = questions_of(task, work->items.size(), about);
  for (std::size_t i = 0; i < work->items.size(); ++i) {
    WorkItem& item = work->items[i];
    item.digest = sha256(std::as_bytes(std::span(item.file())));
    item.question = std::make_shared<const PromptQuestion>(std::move(questions[i]));
  }
  run_task(task, work);
}

}  // namespace

std::vector<std::string_view> with_prompt_members(std::span<const std::string_view> own) {
  std::vector<std::string_view> out(own.begin(), own.end());
  out.insert(out.end(), std::begin(kPromptMembers), std::end(kPromptMembers));
  return out;
}

void refuse_member(const TaskCall& task, std::string_view member) {
  if (!task.body.find(member)) return;
  refuse(member, vit::text("the model '", task.served().name(), "' takes no ", member,
                           ": phrases, boxes and points are for SAM 3"));
}

void refuse_prompt_members(const TaskCall& task) {
  for (const std::string_view member : kPromptMembers) refuse_member(task, member);
}

void answer_prompts(const TaskCall& task) {
  constexpr std::string_view kTasks[]{"instance", "semantic", "auto"};
  for (const std::string_view member : {"overlap", "stuff"}) {
    if (task.body.find(member)) refuse(member, vit::text(member, " is for models with classes of their own"));
  }
  PromptQuestion about{.options = read_options(task.body), .form = read_mask_form(task.body)};
  about.is_semantic = find_word(task.body, "task", kTasks).value_or(0) == 1;
  about.all_masks = find_flag(task.body, "all_masks").value_or(false);
  about.raw = find_flag(task.body, "raw").value_or(false);
  if (about.raw && about.form != MaskForm::npy)
    throw ApiError(400, "raw requires \"format\": \"npy\"", "raw", "invalid_value");
  if (about.is_semantic && about.form == MaskForm::runs)
    throw ApiError(400, "run lengths are of instances; take png or npy", "format", "invalid_value");
  if (has_any(task.body, kObjectMembers)) {
    if (about.is_semantic)
      throw ApiError(400, "the task semantic is for classes and boxes", "task", "invalid_value");
    for (const char* const member : {"threshold", "mask_threshold"})
      refuse_without_effect(task.body, member, "is for classes and boxes");
  }
  if (about.is_semantic) refuse_without_effect(task.body, "threshold", "is for the task instance");
  run_prompts(task, about);
}

void answer_prompted_boxes(const TaskCall& task) {
  constexpr std::string_view kForms[]{"json"};
  refuse_member(task, "template");
  find_word(task.body, "format", kForms);
  run_prompts(task, {.options = read_options(task.body), .only_boxes = true});
}

}  // namespace vit::app
