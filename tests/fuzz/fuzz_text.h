// Files of tokenizers, and cleaning of texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_tokenizer_json(std::string_view input);
std::vector<std::string> tokenizer_json_seeds();
void run_sentencepiece(std::string_view input);
std::vector<std::string> sentencepiece_seeds();
void run_merges(std::string_view input);
std::vector<std::string> merges_seeds();
/// The input is vocab.json, a zero byte and merges.txt.
void run_vocabulary(std::string_view input);
std::vector<std::string> vocabulary_seeds();
void run_token_list(std::string_view input);
std::vector<std::string> token_list_seeds();
void run_clean(std::string_view input);
std::vector<std::string> clean_seeds();

/// The input is what --rope-scaling takes.
void run_rope_scaling(std::string_view input);
std::vector<std::string> rope_scaling_seeds();

}  // namespace vit::fuzz
