// Parts of the program in files of their own, which are loaded when they are first needed: each links
// libraries that most commands do without.
#pragma once

#include <string_view>

namespace vit::app {

/// A module, for messages: its file is NAME.so, next to the program as in a build tree, or in the library
/// folder of an installed one.
struct ModuleFile {
  std::string_view name;
  std::string_view symbol;   // the one that it exports; its number changes with the structure
  std::string_view purpose;  // "reads videos"
  std::string_view package;  // of Debian: what it is built with
  std::string_view without;  // what works if it is missing
};

/// Whether the file is there: a build without its libraries has none.
bool has_module(const ModuleFile& module);

/// Loads the module and returns the address of its symbol. Throws Error of kind unsupported if it is missing
/// or cannot be loaded.
const void* load_module(const ModuleFile& module);

}  // namespace vit::app
