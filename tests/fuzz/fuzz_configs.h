// The JSON files beside the weights: what the model is, and how images are preprocessed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The input is timm's config.json beside the weights of a tiny model.
void run_timm_config(std::string_view input);
std::vector<std::string> timm_config_seeds();

/// The input is Hugging Face's config.json beside the weights of a tiny model.
void run_hf_config(std::string_view input);
std::vector<std::string> hf_config_seeds();

/// The input is OpenCLIP's open_clip_config.json beside the weights of a tiny model.
void run_open_clip_config(std::string_view input);
std::vector<std::string> open_clip_config_seeds();

/// The input is a layout file for the weights of a model without a library.
void run_layout(std::string_view input);
std::vector<std::string> layout_seeds();

/// The input is timm's config.json, read for its preprocessing.
void run_timm_preprocess(std::string_view input);

/// The input is Hugging Face's preprocessor_config.json.
void run_hf_preprocess(std::string_view input);
std::vector<std::string> hf_preprocess_seeds();

}  // namespace vit::fuzz
