// Reading JSON requests and writing JSON answers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/work/engine.h"
#include "vit/io/json.h"

namespace vit::app {

/// Values in the body of a request that is no array of numbers.
inline constexpr std::size_t kMaxJsonValues = 100'000;

/// The object that a request's body is, of `max_values` at most, which the parser counts as it reads. Throws
/// ApiError (400).
internal::Json read_json_body(const std::string& body, std::size_t max_bytes,
                              std::size_t max_values = kMaxJsonValues);

/// The same of a request: of lines of JSON (NDJSON) the first one, after which each line is an input.
internal::Json read_request(const HttpRequest& request, std::size_t max_bytes,
                            std::size_t max_values = kMaxJsonValues);

/// Throws ApiError (400) for a list of more inputs than a request may have.
void check_count(std::size_t count, std::string_view name, std::size_t max_inputs);

/// Throws ApiError (400) that names the first member that is none of these; what a client asks for is never
/// passed over.
void check_members(const internal::Json& body, std::span<const std::string_view> known);

/// A member of the request of one kind; nothing where it is not there or null. Throw ApiError (400) with its
/// name for another kind.
std::optional<std::string> find_text(const internal::Json& body, std::string_view name);
std::optional<bool> find_flag(const internal::Json& body, std::string_view name);
std::optional<std::size_t> find_count(const internal::Json& body, std::string_view name, std::size_t max);

/// An image of a data URI or of base64. Throws ApiError (400) whose param is `param`: for another text, and
/// for a URL, since none is fetched.
WorkItem image_item(std::string_view text, const std::string& param);
WorkItem text_item(std::string_view text);

/// What a string of `input` is.
enum class StringMeaning { text, image };

/// The inputs of a request of OpenAI's clients, in their order:
///   {"input": "..." | ["...", ...], "modality": "image" | "text"}    strings, `strings` without `modality`
///   {"input": [{"image": DATA_URI_OR_BASE64} | {"text": ...}, ...]}
///   {"messages": [{"role": ..., "content": "..." | [{"type": "image_url", "image_url": {"url": ...}} |
///                                                   {"type": "text", "text": ...}]}]}       one image or
///                                                   text
/// Throws ApiError (400) that names the place.
std::vector<WorkItem> read_openai_inputs(const internal::Json& body, StringMeaning strings,
                                         std::size_t max_inputs);
/// The inputs of a request whose members are `body`: the same, or of NDJSON the lines after the first, each
/// an element of `input`; they are counted as they are read.
std::vector<WorkItem> read_inputs(const HttpRequest& request, const internal::Json& body,
                                  StringMeaning strings, std::size_t max_inputs);
/// The texts of a member that is a string or a list of them. Throws ApiError (400).
std::vector<WorkItem> read_texts(const internal::Json& body, std::string_view name, std::size_t max_inputs);

/// A string or a list of 1 to `max` of them; nothing if the member is missing. Throws ApiError (400).
std::vector<std::string> read_strings(const internal::Json& body, std::string_view name, std::size_t max);

/// The same, or a string with commas, as on a command line; no word is empty. Throws ApiError (400).
std::vector<std::string> find_list(const internal::Json& body, std::string_view name, std::size_t max);
/// The list of `classes` or of `candidate_labels`, which exclude each other. Throws ApiError (400).
std::vector<std::string> find_words(const internal::Json& body, std::size_t max);

/// Throws ApiError (400) that names the member `labels` or template: each label has a name of its own, each
/// template {}.
void check_class_texts(const ClassTexts& texts, const std::string& labels);
/// `candidate_labels`, each with a name of its own, a list or a string with commas, and `template`, each with
/// {}, a string or a list of strings. Nothing if there are no labels. Throws ApiError (400) that names the
/// member.
std::optional<ClassTexts> read_class_texts(const internal::Json& body);

/// Of Weaviate's module: {"texts": [...], "images": [BASE64, ...]}, each of which may be missing or null: the
/// texts and then the images, added to `items`. Returns the number of texts. Throws ApiError (400) that names
/// the place.
std::size_t read_weaviate_inputs(const internal::Json& body, std::vector<WorkItem>& items,
                                 std::size_t max_inputs);

/// Appends [0.1,-2.0,...]; every number reads back as it is.
std::string json_vector(std::span<const float> values);

}  // namespace vit::app
