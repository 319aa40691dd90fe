// multipart/form-data (RFC 7578): the bodies of HTML forms, and of immich's server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vit::app {

/// One field. The views point into the body.
struct FormPart {
  std::string name;
  std::optional<std::string> file_name;
  std::string_view content_type;  // "" where there is none
  std::string_view data;
};

/// The value of `name` in a header such as `multipart/form-data; boundary="abc"`, without quotes and escapes;
/// nothing where it is not there or not well formed.
std::optional<std::string> header_parameter(std::string_view header, std::string_view name);

/// The boundary of a Content-Type; nothing unless it is multipart/form-data with one of 1 to 70 characters.
std::optional<std::string> form_boundary(std::string_view content_type);

inline constexpr std::size_t kMaxFormParts = 64;

/// The parts of a body, at most kMaxFormParts. Throws Error (format) where it is no such body: without the
/// boundary that ends it, with a part without a name or with header lines that are none.
std::vector<FormPart> read_form(std::string_view body, std::string_view boundary);

}  // namespace vit::app
