// Names of classes: from a file given by the user, from the checkpoint, or ImageNet's if there are 1000
// classes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vit {
struct ModelConfig;
}

namespace vit::app {

class Labels {
 public:
  /// `file` as read by internal::read_class_list(); "" = the checkpoint's own. Throws Error if the file
  /// does not name each class of the model.
  Labels(const ModelConfig& config, const std::filesystem::path& file);

  /// Names of all classes.
  explicit Labels(std::vector<std::string> names) : num_classes_(names.size()), names_(std::move(names)) {}

  std::size_t size() const noexcept { return num_classes_; }
  /// Name of class `index`; its number if there are no names.
  std::string name(std::size_t index) const;
  /// One for each class, or none.
  const std::vector<std::string>& names() const noexcept { return names_; }
  /// One for each class, or none.
  const std::vector<std::string>& categories() const noexcept { return categories_; }
  /// The class that a folder is named after: by name, by id, by one of the names in a list with commas, by
  /// index. If no name matches exactly, letter case is ignored, and blanks equal underscores.
  /// Several if they share the name, as ImageNet's two cranes and two maillots do.
  std::vector<std::size_t> find(std::string_view folder) const;

 private:
  void read_file(const std::filesystem::path& file);

  std::size_t num_classes_;
  std::vector<std::string> names_;  // one for each class, or none
  std::vector<std::string> ids_;    // one for each class, or none
  std::vector<std::string> categories_;
};

}  // namespace vit::app
