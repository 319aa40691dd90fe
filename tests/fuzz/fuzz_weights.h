// Weight files: whole ones, and the part of each that a mutation of the whole rarely reaches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_safetensors(std::string_view input);
std::vector<std::string> safetensors_seeds();

/// The input is the header; length and data are put around it.
void run_safetensors_header(std::string_view input);
std::vector<std::string> safetensors_header_seeds();

void run_pickle(std::string_view input);
std::vector<std::string> pickle_seeds();

void run_npz(std::string_view input);
std::vector<std::string> npz_seeds();

/// The input is the pickle; the archive is put around it.
void run_pickle_program(std::string_view input);
std::vector<std::string> pickle_program_seeds();

/// The input is a head that `vit fit` made, or its facts, around which a file is put.
void run_head(std::string_view input);
std::vector<std::string> head_seeds();
void run_head_facts(std::string_view input);
std::vector<std::string> head_facts_seeds();

/// The input is a bank of good patches that `vit anomaly fit` made, or its facts, around which a file is put.
void run_bank(std::string_view input);
std::vector<std::string> bank_seeds();
void run_bank_facts(std::string_view input);
std::vector<std::string> bank_facts_seeds();

/// The input is a file of class vectors.
void run_class_vectors(std::string_view input);
std::vector<std::string> class_vectors_seeds();

}  // namespace vit::fuzz
