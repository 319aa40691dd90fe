#include "apps/vit/rings/serve/http/multipart.h"

#include <algorithm>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"form", ErrorKind::format};
constexpr std::size_t kMaxPartHeader = 4096, kMaxBoundary = 70;
constexpr std::string_view kLineEnd = "\r\n";

/// Takes a token or a quoted string off the front of `text`. In a quoted string a backslash hides a quote or
/// itself only: file names of some clients have it as it is.
std::optional<std::string> take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    const std::size_t end = std::min(text.find(';'), text.size());
    value = header_trimmed(text.substr(0, end));
    text.remove_prefix(end);
    return value;
  }
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
    value += text[i];
  }
  return std::nullopt;  // the quote that ends it is missing
}

/// One header of a part, "Name: value".
struct Header {
  std::string_view name;
  std::string_view value;
};

Header split_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  VIT_CHECK(colon != std::string_view::npos && colon > 0 && line.front() != ' ' && line.front() != '\t',
            kWhere, "a header line of a part has no name");
  return {line.substr(0, colon), header_trimmed(line.substr(colon + 1))};
}

/// What the header lines of a part say of it.
FormPart read_part_header(std::string_view lines) {
  FormPart part;
  bool is_named = false;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find(kLineEnd), lines.size());
    const Header header = split_header(lines.substr(0, end));
    lines.remove_prefix(std::min(end + kLineEnd.size(), lines.size()));
    if (equal_ignoring_case(header.name, "content-type")) part.content_type = header.value;
    if (!equal_ignoring_case(header.name, "content-disposition")) continue;
    const std::string_view kind = header.value.substr(0, header.value.find(';'));
    VIT_CHECK(equal_ignoring_case(header_trimmed(kind), "form-data") && !is_named, kWhere,
              "a part is no form-data");
    std::optional<std::string> name = header_parameter(header.value, "name");
    VIT_CHECK(name.has_value(), kWhere, "a part has no name");
    part.name = *std::move(name);
    part.file_name = header_parameter(header.value, "filename");
    is_named = true;
  }
  VIT_CHECK(is_named, kWhere, "a part has no Content-Disposition");
  return part;
}

}  // namespace

std::optional<std::string> header_parameter(std::string_view header, std::string_view name) {
  std::size_t semicolon = header.find(';');
  while (semicolon != std::string_view::npos) {
    header = header_trimmed(header.substr(semicolon + 1));
    const std::size_t equals = header.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view found = header_trimmed(header.substr(0, equals));
    header = header_trimmed(header.substr(equals + 1));
    std::optional<std::string> value = take_value(header);
    if (!value) return std::nullopt;
    if (equal_ignoring_case(found, name)) return value;
    semicolon = header.find(';');
  }
  return std::nullopt;
}

std::optional<std::string> form_boundary(std::string_view content_type) {
  const std::string_view kind = header_trimmed(content_type.substr(0, content_type.find(';')));
  if (!equal_ignoring_case(kind, "multipart/form-data")) return std::nullopt;
  std::optional<std::string> boundary = header_parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kMaxBoundary) return std::nullopt;
  const bool is_printable = std::ranges::all_of(*boundary, [](char c) { return c >= 0x20 && c < 0x7F; });
  return is_printable ? std::move(boundary) : std::nullopt;
}

std::vector<FormPart> read_form(std::string_view body, std::string_view boundary) {
  const std::string first = "--" + std::string(boundary), next = "\r\n" + first;
  std::size_t at = 0;  // after a boundary
  if (body.starts_with(first)) {
    at = first.size();
  } else {  // a preamble, which RFC 2046 allows
    at = body.find(next);
    VIT_CHECK(at != std::string_view::npos, kWhere, "the body does not begin with its boundary");
    at += next.size();
  }
  std::vector<FormPart> parts;
  while (!body.substr(at).starts_with("--")) {
    const std::size_t line_end = body.find(kLineEnd, at);
    VIT_CHECK(line_end != std::string_view::npos && header_trimmed(body.substr(at, line_end - at)).empty(),
              kWhere, "a boundary does not end its line");
    VIT_CHECK(parts.size() < kMaxFormParts, kWhere, "more than ", kMaxFormParts, " parts");
    const std::size_t header = line_end + kLineEnd.size();
    const std::size_t header_end = body.substr(0, header + kMaxPartHeader).find("\r\n\r\n", header);
    VIT_CHECK(header_end != std::string_view::npos, kWhere, "a part has no end of its header within ",
              kMaxPartHeader, " bytes");
    FormPart part = read_part_header(body.substr(header, header_end - header));
    const std::size_t data = header_end + 4;
    // the line end in front of a boundary may be that of the header, where there are no data
    const std::size_t end = body.find(next, data - kLineEnd.size());
    VIT_CHECK(end != std::string_view::npos, kWhere, "the boundary that ends the body is missing");
    part.data = end < data ? std::string_view() : body.substr(data, end - data);
    parts.push_back(std::move(part));
    at = end + next.size();
  }
  return parts;
}

}  // namespace vit::app
