#include "apps/vit/options/features.h"

#include <algorithm>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/config/output_table.h"

namespace vit::app {
using namespace internal;
namespace {

OutputKey parse_feature(std::string_view name, const Model& model) {
  try {
    return parse_output(name, model.config(), model.dense_config());
  } catch (const Error& error) {
    fail_usage("--features: ", error.message());
  }
}

template <typename Predicate>
std::vector<std::string> names_where(const Predicate& is_wanted) {
  std::vector<std::string> names;
  for (const OutputRow& row : output_table()) {
    if (row.index == OutputIndex::none && is_wanted(row)) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> FeatureList::names() const {
  std::vector<std::string> out;
  for (const OutputKey& key : keys) out.push_back(to_string(key));
  return out;
}

std::vector<ResultArray> FeatureList::arrays(const ImageOutputs& outputs) const {
  std::vector<ResultArray> out;
  for (const OutputKey& key : keys) out.push_back(ResultArray::of(outputs[key]));
  return out;
}

FeatureList parse_features(std::string_view list, const Model& model) {
  const ModelConfig& config = model.config();
  FeatureList out;
  const std::string standard = to_string(internal::standard_output(config));
  if (list.empty()) list = standard;
  for (const std::string& name : split_at_commas(list)) {
    const OutputKey key = parse_feature(name, model);
    if (std::ranges::find(out.keys, key) == out.keys.end()) {
      out.request.add(key);
      out.keys.push_back(key);
    }
  }
  return out;
}

Output parse_vector_feature(std::string_view name, const Model& model) {
  const FeatureList list = parse_features(name, model);
  if (list.keys.size() != 1 || !is_vector(list.keys.front().output)) {
    std::string names;
    for (const std::string& vector : vector_names()) names += (names.empty() ? "" : ", ") + vector;
    fail_usage("--features: expected one of ", names, ", found '", name, "'");
  }
  return list.keys.front().output;
}

bool is_vector(Output output) {
  return row_of(output).is_vector;
}

std::vector<std::string> feature_names() {
  return names_where([](const OutputRow&) { return true; });
}

std::vector<std::string> vector_names() {
  return names_where([](const OutputRow& row) { return row.is_vector; });
}

std::string features_help() {
  constexpr std::size_t kNameColumns = 20, kShapeColumns = 18;
  const auto padded = [](std::string cell, std::size_t columns) {
    cell.resize(std::max(columns, cell.size() + 1), ' ');
    return cell;
  };
  std::string out;
  for (const OutputRow& row : output_table()) {
    out += "  " + padded(pattern_of(row), kNameColumns) + padded(std::string(row.shape), kShapeColumns) +
           std::string(row.what) + "\n";
  }
  return out;
}

}  // namespace vit::app
