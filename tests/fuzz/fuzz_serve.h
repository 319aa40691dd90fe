// What clients of vit serve send.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_base64(std::string_view input);
std::vector<std::string> base64_seeds();
/// A Content-Type on the first line, then the body.
void run_form(std::string_view input);
std::vector<std::string> form_seeds();
void run_http_head(std::string_view input);
std::vector<std::string> http_head_seeds();
/// Bodies of /v1/embeddings and /v1/classify.
void run_openai_body(std::string_view input);
std::vector<std::string> openai_body_seeds();
void run_openai_lines(std::string_view input);
std::vector<std::string> openai_lines_seeds();
void run_accept_encoding(std::string_view input);
std::vector<std::string> accept_encoding_seeds();
/// Bodies of /vectorize, and of /page/look and /page/nearest.
void run_weaviate_body(std::string_view input);
std::vector<std::string> weaviate_body_seeds();
void run_page_body(std::string_view input);
std::vector<std::string> page_body_seeds();
/// The header of the JSON's length, a line feed, and the body.
void run_binary_tensors(std::string_view input);
std::vector<std::string> binary_tensors_seeds();
/// The same of /v2/models/NAME/infer.
void run_infer_body(std::string_view input);
std::vector<std::string> infer_body_seeds();
/// The field `entries` of /predict.
void run_immich_entries(std::string_view input);
std::vector<std::string> immich_entries_seeds();

}  // namespace vit::fuzz
