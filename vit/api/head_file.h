// The file of a head on features, which heads of pixels share.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "vit/classifier_head.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Member of the metadata that heads of pixels have, and heads of images have not.
inline constexpr const char* kPixelsMember = "vit_pixels";

/// The file of a head with further metadata, in memory.
std::string head_bytes(const ClassifierHead& head, std::map<std::string, std::string> metadata);
/// save_head() with further metadata.
void write_head(const std::filesystem::path& path, const ClassifierHead& head,
                std::map<std::string, std::string> metadata);
/// The head in a file, whatever its further metadata. Throws Error naming the file and its defect.
ClassifierHead read_head(const TensorFile& file);
/// Throws Error naming both models if a head belongs to another one than `from`.
void check_model(const ClassifierHead& head, const Model& from);

}  // namespace vit::internal
