#include "apps/vit/classes/class_selection.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/error.h"

namespace vit::app {
namespace {

constexpr std::size_t kDefaultTop = 5;
constexpr std::size_t kMaxTop = std::size_t{1} << 20;

std::optional<ClassActivation> parse_activation(const std::string& name) {
  if (name == "auto") return std::nullopt;
  if (name == "softmax") return ClassActivation::softmax;
  if (name == "sigmoid") return ClassActivation::sigmoid;
  if (name == "none") return ClassActivation::none;
  fail_value("one of auto, softmax, sigmoid, none", name);
}

Threshold parse_threshold(const std::string& entry) {
  const std::size_t equals = entry.rfind('=');
  if (equals == 0) fail_value("P or CATEGORY=P", entry);
  const bool has_category = equals != entry.npos;
  const double value = parse_real(has_category ? entry.substr(equals + 1) : entry, 0.0, 1.0);
  return {.category = has_category ? entry.substr(0, equals) : "", .value = static_cast<float>(value)};
}

std::string listed(const std::vector<std::string>& categories) {
  std::map<std::string_view, bool> seen;
  std::string out;
  for (const std::string& category : categories) {
    if (seen.emplace(category, true).second) out += (out.empty() ? "" : ", ") + printable(category);
  }
  return out;
}

void check_threshold(const Threshold& threshold, const std::vector<std::string>& categories) {
  if (threshold.category.empty()) return;
  const std::string name = printable(threshold.category);
  if (categories.empty()) fail_usage("--threshold ", name, "=P: the labels have no categories; give only P");
  if (std::ranges::find(categories, threshold.category) == categories.end())
    fail_usage("--threshold ", name, "=P: no class has this category; categories: ", listed(categories));
}

/// A threshold for each class. Categories without a threshold are left out unless there is a general P.
std::vector<float> thresholds_of(const std::vector<Threshold>& given, const Labels& labels) {
  const std::vector<std::string>& categories = labels.categories();
  std::map<std::string_view, float> by_category;
  for (const Threshold& threshold : given) {
    check_threshold(threshold, categories);
    if (!by_category.emplace(threshold.category, threshold.value).second)
      fail_usage("--threshold: given twice", threshold.category.empty() ? "" : " for the category ",
                 printable(threshold.category));
  }
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const auto find = [&](std::string_view category, float otherwise) {
    const auto found = by_category.find(category);
    return found == by_category.end() ? otherwise : found->second;
  };
  std::vector<float> out(labels.size(), find("", kNever));
  for (std::size_t i = 0; i < categories.size(); ++i) out[i] = find(categories[i], out[i]);
  return out;
}

}  // namespace

void add_selection_options(std::vector<Option>& list, SelectionOptions& options) {
  list.push_back({.name = "--top",
                  .type_name = "K",
                  .help = "Classes for each image, best first",
                  .target = parsed_target(
                      options.top, [](const std::string& value) { return parse_integer(value, 1, kMaxTop); },
                      std::to_string(kDefaultTop))});
  list.push_back({.name = "--threshold",
                  .type_name = "P",
                  .help = "All classes of probability P or more instead of the best K; CATEGORY=P for one "
                          "category of --labels",
                  .target = list_target(options.thresholds, parse_threshold),
                  .occurs = Occurs::repeated});
  list.push_back(
      {.name = "--activation",
       .type_name = "NAME",
       .help = "Probabilities: softmax over all classes, sigmoid of each, none (regression values), or "
               "auto (as the model was trained)",
       .target = offering(parsed_target(options.activation, parse_activation, "auto"),
                          {"auto", "softmax", "sigmoid", "none"})});
}

Selection make_selection(const SelectionOptions& options, const Classes& classes) {
  Selection selection(options.top.value_or(kDefaultTop));
  selection.activation = options.activation.value_or(classes.classifier.activation());
  if (classes.kind == ClassKind::head && selection.activation != ClassActivation::softmax)
    fail_usage("--activation: the classes of --classifier are mutually exclusive and use a softmax");
  if (options.thresholds.empty()) return selection;
  if (selection.activation == ClassActivation::none)
    fail_usage("--threshold P is a probability; this model outputs regression values");
  if (options.top) fail_usage("--top and --threshold: give only one of them");
  selection.thresholds = thresholds_of(options.thresholds, classes.labels);
  return selection;
}

}  // namespace vit::app
