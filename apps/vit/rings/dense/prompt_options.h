// The options by which vit segment and vit detect are asked for what prompts name or show. What runs them is
// in segment_prompts.cpp, or refuses in a build without prompts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/dense/prompts_file.h"

namespace vit::app {

enum class PromptRuleChoice { library, repository };

struct PromptChoices {
  ClassNames texts;
  std::filesystem::path boxes;
  std::vector<PointLine> points;
  std::optional<Box> box;
  std::filesystem::path objects;
  bool all_masks = false;
  PromptRuleChoice rule = PromptRuleChoice::library;
  bool says_rule = false;  // on the command line

  bool name_objects() const { return !points.empty() || box || !objects.empty(); }
  bool are_given() const { return texts.are_given() || !boxes.empty() || name_objects(); }
};
/// --classes, --classes-file, --boxes, --prompt-rule, and for objects --points, --box, --objects,
/// --all-masks.
void add_prompt_options(std::vector<Option>& list, PromptChoices& choices);

/// Points that follow the first one of --points without naming it again are no inputs.
void take_points(std::vector<std::string>& inputs, PromptChoices& choices);

/// Throws UsageError that names the options: a model of prompts is asked nothing.
[[noreturn]] void fail_without_prompts();

/// The settings of a run of prompts.
struct PromptJob {
  const DenseRunOptions& run;
  const PromptChoices& choices;
  std::optional<double> threshold{}, mask_threshold{};
  bool semantic = false;
};

inline constexpr MapFormat kPromptFormats[]{{"png", ".png"}, {"color", "_color.png"}, {"coco", ".json"}};

/// vit segment with prompts. Returns the exit code.
int segment_prompts(const PromptJob& job);
/// vit detect with prompts of a model of prompts; nothing for other models.
bool is_prompt_model(const CommonOptions& common);
int detect_prompts(const PromptJob& job);

}  // namespace vit::app
