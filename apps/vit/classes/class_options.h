// The classes for images: those of the model, of a head from `vit fit`, or texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/classes/labels.h"
#include "apps/vit/ground/command_line.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/options.h"
#include "vit/classifier.h"

namespace vit::app {

/// --labels, --classifier, --classes, --classes-file and the templates.
struct ClassOptions {
  std::filesystem::path labels;
  std::filesystem::path classifier;
  ClassNames texts;
  TemplateOptions templates;

  bool are_given() const { return !labels.empty() || !classifier.empty() || texts.are_given(); }
  /// Whether --classes-file names a file of encoded vectors.
  bool are_vectors() const { return texts.file.extension() == ".safetensors"; }
  /// All files to be read.
  std::vector<std::filesystem::path> files() const {
    return {labels, classifier, texts.file, templates.file};
  }
};
void add_class_options(std::vector<Option>& list, ClassOptions& options);

enum class ClassKind { own, head, texts };

struct Classes {
  ClassKind kind = ClassKind::own;
  Classifier classifier;
  Labels labels;  // of its classes, for looking up folders and categories
};

/// Takes from the record of the head or of the vectors of classes, if one is given, what the command line
/// does not say: the model above all. Throws Error as take_record() does.
void take_class_record(const ClassOptions& options, CommonOptions& common);

/// Loads the model and the requested classes; texts are encoded with a progress display. Returns nothing
/// after an interrupt. Throws UsageError if the model has no classifier and no classes are given, or if
/// options contradict each other, and Error for files that do not fit the model.
std::optional<Classes> load_classes(const CommonOptions& common, const ClassOptions& options);

/// P or CATEGORY=P.
struct Threshold {
  std::string category;  // "" = for all without their own threshold
  float value = 0;
};

/// --top, --threshold and --activation.
struct SelectionOptions {
  std::optional<std::size_t> top;
  std::vector<Threshold> thresholds;
  std::optional<ClassActivation> activation;  // nothing = the default of the classes
};
void add_selection_options(std::vector<Option>& list, SelectionOptions& options);

/// The selection that the options describe. Throws UsageError for options that contradict each other or the
/// classes.
ClassSelection make_selection(const SelectionOptions& options, const Classes& classes);

}  // namespace vit::app
