// A folder with files for each image, named after it, and run.json, which says what made them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/outputs/output_file.h"
#include "apps/vit/outputs/run_facts.h"

namespace vit::app {

class MapFolder {
 public:
  /// Makes the folder and locks it. `endings` of the files of each image: ".png", "_color.png". Throws
  /// UsageError if it holds results of an earlier run and `resume` is not set, Error if they were made
  /// otherwise.
  MapFolder(std::filesystem::path folder, std::vector<std::string> endings, const RunFacts& facts,
            bool resume);

  /// Whether all files of the image are there.
  bool has(const std::filesystem::path& name) const;
  /// The file of that name and ending; its folder is made.
  std::filesystem::path path_of(const std::filesystem::path& name, const std::string& ending) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::string> endings_;
  FileHandle run_;  // run.json, which is locked
};

}  // namespace vit::app
