// The dialects in which clients of OpenAI's interface send images and texts.
#pragma once

#include <optional>
#include <vector>

#include "apps/vit/rings/serve/work/engine.h"
#include "vit/io/json.h"

namespace vit::app {

/// What a string of `input` is.
enum class StringMeaning { text, image };

/// The inputs of a request, in their order:
///   {"input": "..." | ["...", ...], "modality": "image" | "text"}    strings, `strings` without `modality`
///   {"input": [{"image": DATA_URI_OR_BASE64} | {"text": ...}, ...]}
///   {"messages": [{"role": ..., "content": "..." | [{"type": "image_url", "image_url": {"url": ...}} |
///                                                   {"type": "text", "text": ...}]}]}       one image or
///                                                   text
/// Throws ApiError (400) that names the place.
std::vector<WorkItem> read_openai_inputs(const internal::Json& body, StringMeaning strings);

/// `candidate_labels`, each with a name of its own, and `template`, each with {}: a string or a list of
/// strings. Nothing where there are no labels. Throws ApiError (400) that names the member.
std::optional<ClassTexts> read_class_texts(const internal::Json& body);

}  // namespace vit::app
