// vit evaluate --scale-consistency: the part of vit evaluate that needs no labels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"

namespace vit::app {

struct ScaleOptions {
  std::filesystem::path folder{};    // of images, in folders of any depth
  std::vector<std::size_t> sizes{};  // edges in pixels
  bool as_json = false;
};

/// "224,336". Throws UsageError.
std::vector<std::size_t> parse_sizes(const std::string& list);

/// Compares the patch features of each image at --size with those at the other sizes, and prints the means.
/// Returns the exit code.
int evaluate_scales(const ScaleOptions& options, const CommonOptions& common);

}  // namespace vit::app
