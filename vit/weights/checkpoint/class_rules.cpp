#include "vit/weights/checkpoint/loading_steps.h"

#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/class_names.h"
#include "vit/io/file_status.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

/// As in transformers' ImageClassificationPipeline: a sigmoid for problem_type "multi_label_classification",
/// and for a single class regardless of it. TimmWrapper's config.json has the key as well.
bool is_multi_label(const SourceFiles& files, std::size_t num_classes) {
  if (!files.config) return false;
  if (files.config->find_string("problem_type") == "multi_label_classification") return true;
  return num_classes == 1 && !hf_model_type(files).empty();
}

/// How id2label differs from the classes of the model; "" if they are the same.
std::string label_note(const SourceFiles& files, std::size_t num_classes) {
  const auto names = files.config ? find_hf_labels(*files.config) : std::nullopt;
  if (!names || num_classes == 0) return "";
  if (names->size() > num_classes)
    return text("id2label names ", names->size(), " classes, but the model has ", num_classes,
                ": the names are those of another model and not used; --labels gives them");
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < num_classes; ++i) fitting += names->find(std::to_string(i)) ? 1 : 0;
  if (fitting == num_classes && names->size() == num_classes) return "";
  return text("id2label names ", fitting, " of the ", num_classes, " classes and ", names->size() - fitting,
              " that the model does not have; classes without a name are shown by their index");
}

bool is_regression(const SourceFiles& files) {
  return files.config && files.config->find_string("problem_type") == "regression";
}

}  // namespace

void read_class_rules(const SourceFiles& files, const std::filesystem::path& folder, ParsedModel& reading) {
  ModelConfig& config = reading.config;
  const auto set_logits = [&config](LogitKind kind) {
    if (config.head.logits != LogitKind::joint_space) config.head.logits = kind;
  };
  if (is_regression(files)) {
    set_logits(LogitKind::values);
  } else if (is_multi_label(files, config.head.num_classes)) {
    set_logits(LogitKind::tags);
  }
  if (std::string note = label_note(files, config.head.num_classes); !note.empty())
    reading.notes.push_back(std::move(note));
  if (!config.head.labels.empty()) return;
  const std::filesystem::path path = folder / kTagFile;
  if (!std::filesystem::exists(load_status(path, {"load_checkpoint", ErrorKind::io}))) return;
  std::optional<ClassList> table = read_class_table(path);
  if (!table || table->names.size() != config.head.num_classes) {
    reading.notes.push_back(text(kTagFile, " is ignored: it names ", table ? table->names.size() : 0,
                                 " classes of ", config.head.num_classes));
    return;
  }
  config.head.labels = std::move(table->names);
  config.head.label_categories = std::move(table->categories);
  set_logits(LogitKind::tags);  // which timm's configuration cannot express
  reading.notes.push_back(std::string("the classes are the tags of ") + kTagFile + ", each with a sigmoid");
}

}  // namespace vit::internal
