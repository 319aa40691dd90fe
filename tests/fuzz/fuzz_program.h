// What the program reads in addition to checkpoints and images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The input is a .npy file of pixels.
void run_npy(std::string_view input);
std::vector<std::string> npy_seeds();

/// The input is a map of depths or classes: .npy, .pfm, else PNG.
void run_truth_map(std::string_view input);
std::vector<std::string> truth_map_seeds();

/// The input is a file of --labels: JSON where it begins as such, else a table and a list.
void run_labels(std::string_view input);
std::vector<std::string> labels_seeds();

/// The input is a file of an index: index.json, files.jsonl, vectors.safetensors.
void run_index_facts(std::string_view input);
std::vector<std::string> index_facts_seeds();
void run_index_files(std::string_view input);
std::vector<std::string> index_files_seeds();
void run_index_vectors(std::string_view input);
std::vector<std::string> index_vectors_seeds();

/// The input is files.partial, which an interrupted run left; there are three vectors.
void run_index_partial(std::string_view input);
std::vector<std::string> index_partial_seeds();

/// The input is files.jsonl of an index of pages with three vectors, whose index.json agrees with it.
void run_page_index(std::string_view input);
std::vector<std::string> page_index_seeds();
/// The input is files.partial of an index of pages; there are three vectors.
void run_page_index_partial(std::string_view input);
std::vector<std::string> page_index_partial_seeds();

/// The input is x.jsonl.partial, which an interrupted run left.
void run_jsonl_partial(std::string_view input);
std::vector<std::string> jsonl_partial_seeds();

/// The input is a list of paths on standard input, in which a "/" that begins a line is replaced by a folder
/// of a few files.
void run_paths(std::string_view input);
std::vector<std::string> paths_seeds();

/// The input is a file of --text-file, read as lines and as JSON lines.
void run_texts(std::string_view input);
std::vector<std::string> texts_seeds();

/// The input is a file of --boxes.
void run_boxes(std::string_view input);
std::vector<std::string> boxes_seeds();
/// The input is a file of --boxes or --objects with prompts.
void run_prompts(std::string_view input);
std::vector<std::string> prompts_seeds();

/// The input is a video, of which the headers are read.
void run_video_header(std::string_view input);
std::vector<std::string> video_header_seeds();

/// The input is what an earlier run left about itself.
void run_run_facts(std::string_view input);
std::vector<std::string> run_facts_seeds();

}  // namespace vit::fuzz
