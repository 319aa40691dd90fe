// The inputs of OpenAI's clients, and classes in words.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/lines.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr std::size_t kMaxLabels = 10'000, kMaxTemplates = 100, kMostOfName = 200;

[[noreturn]] void fail_input(const std::string& param, const std::string& message) {
  throw ApiError(400, param + " " + message, param, "invalid_input");
}

std::string_view string_of(const Json& value, const std::string& param) {
  if (!value.is_string()) fail_input(param, "must be a string");
  return value.as_string();
}

/// {"url": ...} or the URL itself.
std::string_view url_of(const Json& value, const std::string& param) {
  if (!value.is_object()) return string_of(value, param);
  const std::optional<Json> url = value.find("url");
  if (!url) fail_input(param, "has no url");
  return string_of(*url, param);
}

/// {"image"}, {"text"}, {"image_url"}, with or without a "type".
WorkItem object_item(const Json& object, const std::string& param) {
  std::optional<WorkItem> out;
  for (const std::string_view key : {"image", "text", "image_url"}) {
    const std::optional<Json> value = object.find(key);
    if (!value) continue;
    if (out) fail_input(param, "must have one of image, image_url and text");
    out = key == "text" ? text_item(string_of(*value, param)) : image_item(url_of(*value, param), param);
  }
  if (!out) fail_input(param, "has no image, image_url or text");
  return *std::move(out);
}

/// What the strings are, and whether the request says so.
struct Meaning {
  StringMeaning strings;
  bool is_stated;
};

/// Clients that have a vocabulary of their own send ids: a list of numbers, or lists of them.
[[noreturn]] void fail_element(const Json& element, const std::string& param, bool is_listed) {
  const bool are_ids =
      element.is_array() ? element.size() > 0 && element[0].is_number() : element.is_number() && is_listed;
  fail_input(param, std::string("must be a string, {\"image\": ...} or {\"text\": ...}") +
                        (are_ids ? ", and holds token ids, which belong to another vocabulary: send texts "
                                   "(LangChain: check_embedding_ctx_length=False)"
                                 : ""));
}

/// `is_listed`: of a list.
WorkItem element_item(const Json& element, const Meaning& meaning, const std::string& param, bool is_listed) {
  if (element.is_object()) return object_item(element, param);
  if (!element.is_string()) fail_element(element, param, is_listed);
  if (meaning.strings == StringMeaning::image) return image_item(element.as_string(), param);
  if (!meaning.is_stated && starts_ignoring_case(element.as_string(), "data:image/"))
    fail_input(param, "is an image, but strings are texts unless the request has \"modality\": \"image\"");
  return text_item(element.as_string());
}

Meaning meaning_of(const Json& body, StringMeaning otherwise) {
  const std::optional<std::string> modality = find_text(body, "modality");
  if (!modality) return {otherwise, false};
  if (*modality == "image") return {StringMeaning::image, true};
  if (*modality == "text") return {StringMeaning::text, true};
  throw ApiError(400, "modality must be image or text", "modality", "invalid_value");
}

/// The one image or text of a conversation.
std::vector<WorkItem> read_messages(const Json& messages) {
  std::vector<WorkItem> out;
  if (!messages.is_array()) throw ApiError(400, "messages must be a list", "messages", "invalid_type");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string param = vit::text("messages[", i, "]");
    if (!messages[i].is_object()) fail_input(param, "must be an object");
    const std::optional<Json> content = messages[i].find("content");
    if (!content) fail_input(param, "has no content");
    if (content->is_string()) {
      out.push_back(text_item(content->as_string()));
      continue;
    }
    if (!content->is_array()) fail_input(param, "must have a string or a list as content");
    for (std::size_t j = 0; j < content->size(); ++j) {
      const std::string part = vit::text(param, ".content[", j, "]");
      if (!(*content)[j].is_object()) fail_input(part, "must be an object");
      out.push_back(object_item((*content)[j], part));
    }
  }
  if (out.size() != 1)
    throw ApiError(400,
                   vit::text("messages hold ", out.size(),
                             " images and texts; these models take one: send several as input"),
                   "messages", "invalid_input");
  return out;
}

}  // namespace

std::vector<std::string> read_strings(const Json& body, std::string_view name, std::size_t max) {
  std::vector<std::string> out;
  const std::optional<Json> list = body.find(name);
  if (!list) return out;
  const auto fail_list = [&](const std::string& wanted) {
    throw ApiError(400, std::string(name) + " must be " + wanted, std::string(name), "invalid_value");
  };
  if (list->is_string()) {
    out.emplace_back(list->as_string());
  } else if (list->is_array() && list->size() > 0 && list->size() <= max) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (!(*list)[i].is_string()) fail_list("a list of strings");
      out.emplace_back((*list)[i].as_string());
    }
  } else {
    fail_list(vit::text("a list of 1 to ", max, " strings"));
  }
  return out;
}

std::vector<std::string> find_list(const Json& body, std::string_view name, std::size_t max) {
  const std::optional<Json> value = body.find(name);
  if (!value || !value->is_string()) return read_strings(body, name, max);
  std::vector<std::string> out;
  std::string_view rest = value->as_string();
  while (true) {
    std::string_view word = rest.substr(0, rest.find(','));
    const bool is_last = word.size() == rest.size();
    rest.remove_prefix(is_last ? rest.size() : word.size() + 1);
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string_view::npos || out.size() == max)
      throw ApiError(400, vit::text(name, " must be 1 to ", max, " words with commas, none of them empty"),
                     std::string(name), "invalid_value");
    out.emplace_back(word.substr(first, word.find_last_not_of(' ') - first + 1));
    if (is_last) return out;
  }
}

std::vector<std::string> find_words(const Json& body, std::size_t max) {
  if (body.find("classes") && body.find("candidate_labels"))
    throw ApiError(400, "classes and candidate_labels exclude each other", "candidate_labels",
                   "invalid_value");
  return find_list(body, body.find("classes") ? "classes" : "candidate_labels", max);
}

void check_class_texts(const ClassTexts& texts, const std::string& labels) {
  std::set<std::string_view> seen;
  for (const std::string& name : texts.names) {
    if (name.empty()) throw ApiError(400, labels + ": a name is empty", labels, "invalid_value");
    if (!seen.insert(name).second)
      throw ApiError(400, labels + ": '" + name.substr(0, kMostOfName) + "' is there twice", labels,
                     "invalid_value");
  }
  for (const std::string& pattern : texts.templates) {
    if (pattern.find("{}") == std::string::npos)
      throw ApiError(400, "template: no {} for the label", "template", "invalid_value");
  }
}

std::optional<ClassTexts> read_class_texts(const Json& body) {
  ClassTexts out{.names = find_list(body, "candidate_labels", kMaxLabels),
                 .templates = read_strings(body, "template", kMaxTemplates)};
  if (out.names.empty()) {
    if (!out.templates.empty())
      throw ApiError(400, "template requires candidate_labels", "template", "invalid_value");
    return std::nullopt;
  }
  check_class_texts(out, "candidate_labels");
  return out;
}

std::vector<WorkItem> read_texts(const Json& body, std::string_view name, std::size_t max_inputs) {
  const std::string param(name);
  const std::optional<Json> value = body.find(name);
  if (!value) throw ApiError(400, param + " is missing", param, "missing");
  std::vector<WorkItem> out;
  if (!value->is_array()) {
    out.push_back(text_item(string_of(*value, param)));
    return out;
  }
  if (value->size() == 0) throw ApiError(400, param + " is empty", param, "invalid_input");
  check_count(value->size(), param, max_inputs);
  for (std::size_t i = 0; i < value->size(); ++i)
    out.push_back(text_item(string_of((*value)[i], vit::text(param, "[", i, "]"))));
  return out;
}

std::vector<WorkItem> read_openai_inputs(const Json& body, StringMeaning strings, std::size_t max_inputs) {
  const Meaning meaning = meaning_of(body, strings);
  const std::optional<Json> input = body.find("input"), messages = body.find("messages");
  if (input && messages)
    throw ApiError(400, "input and messages exclude each other", "messages", "invalid_input");
  if (messages) return read_messages(*messages);
  if (!input) throw ApiError(400, "input is missing", "input", "missing");
  if (!input->is_array()) {
    std::vector<WorkItem> one;
    one.push_back(element_item(*input, meaning, "input", /*is_listed=*/false));
    return one;
  }
  if (input->size() == 0) throw ApiError(400, "input is empty", "input", "invalid_input");
  check_count(input->size(), "input", max_inputs);
  std::vector<WorkItem> out;
  for (std::size_t i = 0; i < input->size(); ++i)
    out.push_back(element_item((*input)[i], meaning, vit::text("input[", i, "]"), /*is_listed=*/true));
  return out;
}

namespace {

constexpr std::size_t kMostLineValues = 64;  // of one input

/// The lines after the first, but for empty ones.
std::vector<WorkItem> read_lines(std::string_view rest, const Meaning& meaning, std::size_t max_inputs) {
  std::vector<WorkItem> out;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (header_trimmed(line).find_first_not_of('\r') == std::string_view::npos) continue;
    const std::string param = vit::text("input[", out.size(), "]");
    if (out.size() == max_inputs)
      throw ApiError(400, vit::text("more than ", max_inputs, " inputs; a request takes ", max_inputs), param,
                     "too_many_inputs");
    try {
      out.push_back(element_item(
          internal::parse_json(line, param, {.max_bytes = line.size(), .max_values = kMostLineValues}),
          meaning, param, /*is_listed=*/false));
    } catch (const Error& error) {
      throw ApiError(400, std::string(error.message()), param, "invalid_json");
    }
  }
  if (out.empty()) throw ApiError(400, "no line after the first has an input", "input", "missing");
  return out;
}

}  // namespace

std::vector<WorkItem> read_inputs(const HttpRequest& request, const Json& body, StringMeaning strings,
                                  std::size_t max_inputs) {
  if (!has_lines(request)) return read_openai_inputs(body, strings, max_inputs);
  for (const char* const member : {"input", "messages"}) {
    if (body.find(member))
      throw ApiError(400, vit::text(member, " and lines exclude each other"), member, "invalid_input");
  }
  const std::string_view lines = request.body;
  return read_lines(lines.substr(std::min(lines.find('\n'), lines.size())), meaning_of(body, strings),
                    max_inputs);
}

}  // namespace vit::app
