// The files of a run that writes a folder with some for each input: FOLDER/NAME + ENDING.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "apps/vit/inputs/inputs.h"

namespace vit::app {

/// A name for the results of each input, without extension: its path below the folder that all inputs share.
/// Where two inputs would have the same name, their extensions stay. Frames of a video end in their number.
/// To be taken from the inputs of the whole run, of which `--shard` keeps some: parts then share a folder.
std::vector<std::filesystem::path> result_names(std::span<const Input> inputs);

/// Throws UsageError, which begins with the option that names the folder, if a file would replace that of an
/// input, or be the file of two inputs: "a" with "_color.png" and "a_color" with ".png".
void check_result_files(const char* option, const std::filesystem::path& folder,
                        std::span<const std::filesystem::path> names,
                        std::span<const std::string_view> endings, std::span<const Input> inputs);

/// Makes a folder and those above it, unless it is there. Throws Error if that fails.
void make_folder(const std::filesystem::path& folder);
/// The path of a file; its folder is made.
std::filesystem::path result_path(const std::filesystem::path& folder, const std::filesystem::path& name,
                                  std::string_view ending);

}  // namespace vit::app
