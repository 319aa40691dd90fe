// The elements of an XML file and their attributes, one after the other: as much of XML as annotation tools
// write. Text between elements, comments and CDATA are passed over.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vit::app {

struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string>> attributes;  // with their entities replaced
  std::size_t line = 1;                                              // where it begins

  /// Null if there is no such attribute.
  const std::string* find(std::string_view attribute) const;
};

struct XmlEvents {
  std::function<void(const XmlElement&)> begin;
  std::function<void(std::string_view name)> end;
};

/// Throws Error naming `file` and the line for what is no XML in UTF-8, for elements nested more than 100
/// deep, and for document types, whose entities could be larger than the file.
void read_xml(std::string_view text, const std::string& file, const XmlEvents& events);

}  // namespace vit::app
