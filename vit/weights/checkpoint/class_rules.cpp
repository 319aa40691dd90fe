#include "vit/weights/checkpoint/class_rules.h"

#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/label_table.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

/// Of transformers' ImageClassificationPipeline: a sigmoid for problem_type "multi_label_classification", and
/// for a single class whatever it says. TimmWrapper's config.json has the key as well.
bool is_multi_label(const SourceFiles& files, std::size_t num_classes) {
  if (!files.config) return false;
  if (files.config->find_string("problem_type") == "multi_label_classification") return true;
  return num_classes == 1 && !hf_model_type(files).empty();
}

bool is_regression(const SourceFiles& files) {
  return files.config && files.config->find_string("problem_type") == "regression";
}

}  // namespace

void read_class_rules(const SourceFiles& files, const std::filesystem::path& folder, ParsedModel& reading) {
  ModelConfig& config = reading.config;
  config.regression = is_regression(files);
  config.multi_label =
      !config.regression && (config.multi_label || is_multi_label(files, config.num_classes));
  if (!config.labels.empty()) return;
  const std::filesystem::path path = folder / kTagFile;
  if (!std::filesystem::exists(load_status(path, {"load_checkpoint", ErrorKind::io}))) return;
  std::optional<LabelTable> table = read_label_table(path);
  if (!table || table->names.size() != config.num_classes) {
    reading.notes.push_back(text(kTagFile, " is ignored: it names ", table ? table->names.size() : 0,
                                 " classes of ", config.num_classes));
    return;
  }
  config.labels = std::move(table->names);
  config.label_categories = std::move(table->categories);
  config.multi_label = true;  // tags do not exclude each other, which timm's configuration cannot say
  reading.notes.push_back(std::string("the classes are the tags of ") + kTagFile + ", each with a sigmoid");
}

}  // namespace vit::internal
