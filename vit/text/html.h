// Character references of HTML, as Python's html.unescape reads them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

/// The characters of a name with its semicolon if it has one ("amp;", "amp").
std::optional<std::string_view> html_entity(std::string_view name);

/// html.unescape: names without semicolon by their longest known start, bytes 128 to 159 as windows-1252,
/// U+FFFD for 0, surrogates and numbers beyond Unicode, nothing for other controls and noncharacters.
std::string unescape_html(std::string_view text);

/// What a byte from 0x80 to 0x9F is in windows-1252; itself where it is nothing.
char32_t windows_1252(char32_t byte);

}  // namespace vit::internal
