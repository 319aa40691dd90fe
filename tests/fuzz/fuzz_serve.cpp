#include "tests/fuzz/fuzz_serve.h"

#include <algorithm>
#include <stdexcept>

#include "apps/vit/ground/base64.h"
#include "apps/vit/rings/serve/http/gzip.h"
#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/http/multipart.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/binary_tensors.h"
#include "apps/vit/rings/serve/routes/immich_entries.h"
#include "apps/vit/rings/serve/routes/infer_input.h"
#include "apps/vit/rings/serve/routes/json_body.h"

namespace vit::fuzz {
namespace {

constexpr std::size_t kMaxBody = std::size_t{1} << 20;

/// Refusals are what a client gets; each must be one that an answer can hold.
template <typename Work>
void run_refusing(const Work& work) {
  try {
    work();
  } catch (const app::ApiError& error) {
    if (error.status() < 400 || error.status() > 599) throw std::logic_error("no status of a refusal");
    internal::parse_json(app::error_response(app::Dialect::openai, error).body, "answer");
    throw Error("serve", "refused");
  }
}

/// The seeds that are read: a target begins with nothing else.
std::vector<std::string> only_accepted(std::vector<std::string> seeds, void (*run)(std::string_view)) {
  std::erase_if(seeds, [&](const std::string& seed) {
    try {
      run(seed);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return seeds;
}

/// A reader that answers instead of throwing refuses as well.
void refuse_unless(bool is_read) {
  if (!is_read) throw Error("serve", "refused");
}

/// Of the length of its JSON, in the first line, and its body.
app::HttpRequest infer_request(std::string_view input) {
  app::HttpRequest request;
  const std::size_t line = std::min(input.find('\n'), input.size());
  request.json_length = input.substr(0, line);
  request.body = input.substr(std::min(line + 1, input.size()));
  return request;
}

}  // namespace

void run_base64(std::string_view input) {
  static_cast<void>(app::split_data_uri(input));
  static_cast<void>(app::is_url(input));
  const std::optional<std::string> bytes = app::decode_base64(input);
  if (bytes && app::decode_base64(app::encode_base64(*bytes)) != bytes)
    throw std::logic_error("base64 does not come back");
  refuse_unless(bytes.has_value());
}

std::vector<std::string> base64_seeds() {
  return {"Zm9vYmFy", "Zm9vYg=="};
}

void run_form(std::string_view input) {
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::optional<std::string> boundary = app::form_boundary(input.substr(0, line));
  refuse_unless(boundary.has_value());
  const std::string_view body = input.substr(std::min(line + 1, input.size()));
  run_refusing([&] {
    for (const app::FormPart& part : app::read_form(body, *boundary)) {
      if (!part.data.empty() &&
          (part.data.data() < body.data() || part.data.data() + part.data.size() > body.data() + body.size()))
        throw std::logic_error("a part outside of its body");
    }
  });
}

std::vector<std::string> form_seeds() {
  const std::string type = "multipart/form-data; boundary=b\n";
  const std::string field = "--b\r\nContent-Disposition: form-data; name=\"entries\"\r\n\r\n{}\r\n";
  const std::string file =
      "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a\\\"b\"\r\nContent-Type: "
      "image/png\r\n\r\nbytes\r\n";
  return only_accepted({type + field + file + "--b--\r\n", type + "preamble\r\n" + file + "--b--",
                        type + "--b--", "multipart/form-data; charset=x; boundary=\"a b\"\n--a b\r\n"},
                       run_form);
}

void run_http_head(std::string_view input) {
  refuse_unless(app::defect_of_head(input).empty());
}

std::vector<std::string> http_head_seeds() {
  return only_accepted({"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                        "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
                        "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: a\r\n b\r\n\r\n"},
                       run_http_head);
}

void run_openai_body(std::string_view input) {
  for (const app::StringMeaning meaning : {app::StringMeaning::text, app::StringMeaning::image}) {
    run_refusing([&] {
      const internal::Json body = app::read_json_body(std::string(input), kMaxBody);
      static_cast<void>(app::find_text(body, "model"));
      static_cast<void>(app::find_count(body, "dimensions", 4096));
      static_cast<void>(app::find_flag(body, "normalized"));
      static_cast<void>(app::read_class_texts(body));
      app::read_openai_inputs(body, meaning, 2048);
    });
  }
}

std::vector<std::string> openai_body_seeds() {
  return only_accepted(
      {R"({"model": "m", "input": ["data:image/png;base64,QUJD"], "modality": "image"})",
       R"({"input": [{"image": "QUJD"}, {"text": "a"}], "dimensions": 3, "normalized": true})",
       R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "QUJD"}}]}]})",
       R"({"input": "QUJD", "modality": "image", "candidate_labels": ["a", "b"], "template": "one {}.", "top_k": 2})",
       R"({"input": [[1, 2]]})"},
      run_openai_body);
}

/// NDJSON.
void run_openai_lines(std::string_view input) {
  run_refusing([&] {
    app::HttpRequest request;
    request.content_type = "application/x-ndjson";
    request.body = input;
    constexpr std::size_t kMost = 8;
    const internal::Json body = app::read_request(request, kMaxBody);
    const std::size_t count = app::read_inputs(request, body, app::StringMeaning::text, kMost).size();
    if (count == 0 || count > kMost) throw std::logic_error("lines are counted wrongly");
  });
}

std::vector<std::string> openai_lines_seeds() {
  return only_accepted(
      {"{\"model\": \"m\"}\n\"a cat\"\n{\"image\": \"QUJD\"}\n", "{\"modality\": \"image\"}\r\n\r\n\"QUJD\""},
      run_openai_lines);
}

void run_accept_encoding(std::string_view input) {
  const bool takes = app::accepts_gzip(input);
  if (takes && input.find_first_of("gG*xX") == std::string_view::npos)
    throw std::logic_error("gzip is not in the header");
  if (!takes) throw Error("serve", "refused");
}

std::vector<std::string> accept_encoding_seeds() {
  return {"gzip, deflate, br", "identity;q=1, *;q=0.3", "GZIP;q=0.5"};
}

void run_weaviate_body(std::string_view input) {
  run_refusing([&] {
    const internal::Json body = app::read_json_body(std::string(input), kMaxBody);
    std::vector<app::WorkItem> items;
    const std::size_t num_texts = app::read_weaviate_inputs(body, items, 2048);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].is_text != (i < num_texts)) throw std::logic_error("texts and images are mixed");
  });
}

std::vector<std::string> weaviate_body_seeds() {
  return {R"({"texts": ["a", "b"], "images": ["QUJD"]})", R"({"texts": null, "images": ["QUI="]})"};
}

void run_page_body(std::string_view input) {
  run_refusing([&] {
    const internal::Json body = app::read_json_body(std::string(input), kMaxBody);
    static_cast<void>(app::find_text(body, "model"));
    static_cast<void>(app::find_count(body, "top", 1000));
    app::image_item(app::find_text(body, "image").value_or(""), "image");
  });
}

std::vector<std::string> page_body_seeds() {
  return {R"({"model": "m", "image": "data:image/png;base64,QUJD", "top": 3})"};
}

void run_immich_entries(std::string_view input) {
  run_refusing([&] {
    const internal::Json json = app::read_entries_json(input);
    app::read_entries(json);
    internal::parse_json(app::other_entries(json), "entries");
  });
}

std::vector<std::string> immich_entries_seeds() {
  return {
      R"({"clip": {"visual": {"modelName": "ViT-B-32__openai", "options": {}}}})",
      R"({"clip": {"textual": {"modelName": "m"}}, "ocr": {"detection": {"modelName": "x", "options": {"a": [1, 0.5, null, "b\n"]}}}})"};
}

void run_binary_tensors(std::string_view input) {
  run_refusing([&] {
    const app::HttpRequest request = infer_request(input);
    app::InferBody body(request, kMaxBody, 1000);
    static_cast<void>(app::wants_binary(body.json()));
    const internal::Json inputs = body.json().at("inputs");
    std::size_t sum = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::optional<std::string_view> bytes = body.take(inputs[i], "inputs");
      if (!bytes) continue;
      sum += bytes->size();
      if (i % 2 == 0) {
        app::floats_of(*bytes, bytes->size() / sizeof(float), "inputs");
        continue;
      }
      std::size_t of_strings = 0;
      for (const std::string_view one : app::split_strings(*bytes, 100, "inputs"))
        of_strings += 4 + one.size();
      if (of_strings != bytes->size()) throw std::logic_error("bytes of no string");
    }
    body.check_end();
    if (sum > request.body.size()) throw std::logic_error("more bytes than the body has");
  });
}

std::vector<std::string> binary_tensors_seeds() {
  const std::string json =
      R"({"inputs": [{"parameters": {"binary_data_size": 8}}, {"parameters": {"binary_data_size": 5}}, {}],)"
      R"( "outputs": [{"parameters": {"binary_data": true}}], "parameters": {"binary_data_output": true}})";
  return {std::to_string(json.size()) + "\n" + json + std::string("\0\0\x80?\0\0\0@\1\0\0\0a", 13),
          "\n"
          R"({"inputs": [{"data": [1]}]})"};
}

void run_infer_body(std::string_view input) {
  run_refusing([&] {
    const app::HttpRequest request = infer_request(input);
    app::InferBody body(request, kMaxBody, 1000);
    constexpr std::size_t kMost = 8;
    const std::size_t count = app::read_infer_input(body, {.num_channels = 1, .max_inputs = kMost}).size();
    if (count == 0 || count > kMost) throw std::logic_error("inputs are counted wrongly");
  });
}

std::vector<std::string> infer_body_seeds() {
  const std::string pixels =
      R"({"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [2, 1, 1, 1], "parameters": )"
      R"({"binary_data_size": 8}}]})";
  return only_accepted(
      {"\n"
       R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}]})",
       "\n"
       R"({"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1], "data": ["QUJD"]}]})",
       "\n"
       R"({"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 1, 2, 1], "data": [[1, 2]]}]})",
       std::to_string(pixels.size()) + "\n" + pixels + std::string("\0\0\x80?\0\0\0@", 8)},
      run_infer_body);
}

}  // namespace vit::fuzz
