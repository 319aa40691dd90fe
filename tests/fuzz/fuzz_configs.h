// The JSON files next to the weights: what the model is, and how images are preprocessed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The input is timm's config.json next to the weights of a tiny model.
void run_timm_config(std::string_view input);
std::vector<std::string> timm_config_seeds();

/// The input is Hugging Face's config.json next to the weights of a tiny model.
void run_hf_config(std::string_view input);
std::vector<std::string> hf_config_seeds();

/// The input is the config.json of a model of boxes or keypoints; its words say which weights it has.
void run_box_config(std::string_view input);
std::vector<std::string> box_config_seeds();

/// The input is OpenCLIP's open_clip_config.json next to the weights of a tiny model.
void run_open_clip_config(std::string_view input);
std::vector<std::string> open_clip_config_seeds();

/// The first line of the input names a golden layout, such as "layouts/own-rope/layout.json"; the rest takes
/// its place, next to the weights that it describes.
void run_layout(std::string_view input);
std::vector<std::string> layout_seeds();

/// The input is timm's config.json, read for its preprocessing.
void run_timm_preprocess(std::string_view input);

/// The input is Hugging Face's preprocessor_config.json.
void run_hf_preprocess(std::string_view input);
std::vector<std::string> hf_preprocess_seeds();

/// The first line of the input names a configuration of a golden model, such as "models/hf-clip/config.json";
/// the rest takes its place. Both towers, preprocessing and tokenizer are read then.
void run_model_folder(std::string_view input);
std::vector<std::string> model_folder_seeds();

/// A weight file of zeros. The first line is what the caller says, "ARCHITECTURE KEY=VALUE ...", where "-" is
/// no architecture; the second the header of a .safetensors file; what follows, if anything, is
/// open_clip_config.json next to it.
void run_tensor_names(std::string_view input);
std::vector<std::string> tensor_names_seeds();

/// As run_model_folder, for golden tokenizers. After the name of the file, which may be one that the folder
/// does not have, the first line may name files that are missing ("-merges.txt"), the library whose rules
/// count, and the file that is loaded instead of the folder.
void run_tokenizer_folder(std::string_view input);
std::vector<std::string> tokenizer_folder_seeds();

/// The input is an index of two shards.
void run_shards(std::string_view input);
std::vector<std::string> shards_seeds();

}  // namespace vit::fuzz
