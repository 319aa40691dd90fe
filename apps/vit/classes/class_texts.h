// Classes that the caller names, --classes and --classes-file, and the templates that make texts of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/classes/text_tower.h"
#include "apps/vit/command_line.h"
#include "vit/zero_shot.h"

namespace vit::app {

struct TemplateOptions {
  std::vector<std::string> templates;  // --template, repeatable
  std::filesystem::path file;          // --template-file

  bool are_given() const { return !templates.empty() || !file.empty(); }
};
void add_template_options(std::vector<Option>& list, TemplateOptions& options);
/// Those of the command line, then those of the file, one a line; none where none is given. Throws
/// UsageError, and Error for one of the file, if a template has no {}.
std::vector<std::string> read_templates(const TemplateOptions& options);

struct ClassTextOptions {
  std::string names;           // --classes
  std::filesystem::path file;  // --classes-file
  TemplateOptions templates;
  TextTowerOptions tower;

  bool are_given() const { return !names.empty() || !file.empty(); }
  /// Whether the file holds vectors that are ready.
  bool are_vectors() const { return file.extension() == ".safetensors"; }
};
void add_class_text_options(std::vector<Option>& list, ClassTextOptions& options);
/// Throws UsageError if options contradict each other.
void check_class_texts(const ClassTextOptions& options);
/// The names, of which there is one at least and none twice. Throws UsageError, and Error for those of a
/// file.
std::vector<std::string> read_class_names(const ClassTextOptions& options);

/// A model and the classes that its images are compared with.
struct ZeroShotModel {
  std::shared_ptr<const Model> model;
  /// Nothing if an interrupt came before the classes were encoded.
  std::optional<ZeroShotClassifier> classifier;
};
/// Loads what the options ask for; classes are encoded with progress. Throws UsageError and Error.
ZeroShotModel load_zero_shot(const CommonOptions& common, const ClassTextOptions& options);

}  // namespace vit::app
