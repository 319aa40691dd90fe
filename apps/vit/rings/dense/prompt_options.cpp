#include "apps/vit/rings/dense/prompt_options.h"

#include <system_error>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/usage_error.h"

namespace vit::app {
namespace {

constexpr const char* kPromptGroup = "Prompts (SAM 3)";
constexpr Named<PromptRuleChoice> kPromptRules[]{{"library", PromptRuleChoice::library},
                                                 {"repository", PromptRuleChoice::repository}};

}  // namespace

void add_prompt_options(std::vector<Option>& list, PromptChoices& choices) {
  list.push_back({.name = "--classes",
                  .type_name = "LIST",
                  .help = "Noun phrases of what to cut out, separated by commas: \"yellow bus, person\"",
                  .target = text_target(choices.texts.list),
                  .group = kPromptGroup});
  list.push_back({.name = "--classes-file",
                  .type_name = "FILE",
                  .help = "The same in the forms of --labels",
                  .target = text_target(choices.texts.file),
                  .group = kPromptGroup});
  list.push_back(
      {.name = "--boxes",
       .type_name = "FILE",
       .help = "Boxes that show what is meant, or is not, JSON lines: {\"file\", \"boxes\": [{\"box\": [x0, "
               "y0, x1, y1], \"positive\": true, \"label\": PHRASE}]}",
       .target = text_target(choices.boxes),
       .group = kPromptGroup});
  list.push_back(
      {.name = "--points",
       .type_name = "X,Y[,-]",
       .help = "Points of one object, in pixels of the image; with ,- points that are not part of it",
       .target = {[&to = choices.points](const std::vector<std::string>& values) {
         to.clear();
         for (const std::string& value : values) to.push_back(parse_point(value));
       }},
       .occurs = Occurs::repeated,
       .group = kPromptGroup});
  list.push_back({.name = "--box",
                  .type_name = "X0,Y0,X1,Y1",
                  .help = "A box around one object",
                  .target = parsed_target(choices.box, parse_box),
                  .group = kPromptGroup});
  list.push_back(
      {.name = "--objects",
       .type_name = "FILE",
       .help = "Objects of images, JSON lines: {\"file\", \"objects\": [{\"points\": [[x, y, 1 or 0]], "
               "\"box\": [...], \"mask\": \"FILE.npy\", \"multimask\": true}]}",
       .target = text_target(choices.objects),
       .group = kPromptGroup});
  list.push_back({.name = "--all-masks",
                  .type_name = "",
                  .help = "All masks of an object, not the best one",
                  .flag = &choices.all_masks,
                  .group = kPromptGroup});
  list.push_back(
      {.name = "--prompt-rule",
       .type_name = "RULE",
       .help = "Whose program is reproduced: library (transformers) or repository (the publisher's)",
       .target = noting(choice_target(choices.rule, kPromptRules), choices.says_rule),
       .group = kPromptGroup});
}

void fail_without_prompts() {
  fail_usage(
      "this model cuts out what prompts say: name phrases with --classes \"yellow bus, person\", show boxes "
      "with --boxes FILE, or mark one object with --points X,Y or --box X0,Y0,X1,Y1");
}

void take_points(std::vector<std::string>& inputs, PromptChoices& choices) {
  if (choices.points.empty()) return;
  std::erase_if(inputs, [&](const std::string& input) {
    std::error_code ignored;
    const bool is_point = input.find_first_not_of("0123456789.,+-eE") == std::string::npos &&
                          input.find(',') != std::string::npos && !std::filesystem::exists(input, ignored);
    if (is_point) choices.points.push_back(parse_point(input));
    return is_point;
  });
}

}  // namespace vit::app
