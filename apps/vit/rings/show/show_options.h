// The options of `vit show`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"
#include "apps/vit/outputs/drawing.h"

namespace vit::app {

enum class What { pca, attention, similarity, match, depth, segments };
enum class HeadChoice { mean, all, one };

/// A pixel of the source image.
struct QueryPixel {
  std::size_t x = 0;
  std::size_t y = 0;
};

struct ShowOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::optional<What> what;
  std::filesystem::path output;
  std::filesystem::path data;
  std::filesystem::path html;
  long long layer = -1;  // negative from the end
  HeadChoice heads = HeadChoice::mean;
  std::size_t head = 0;  // of HeadChoice::one
  bool has_query = false;
  std::optional<QueryPixel> pixel;  // the query, if it is not the class token
  bool rollout = false;
  bool foreground = false;
  DrawStyle style = DrawStyle::overlay;
};

/// Options as data; `options` must outlive the list.
std::vector<Option> show_option_list(ShowOptions& options);

/// Throws UsageError for options that contradict each other.
void check_show_options(const ShowOptions& options);

/// The block that --layer names. Throws UsageError if the model has no such block.
std::size_t resolve_layer(const ShowOptions& options, const ModelConfig& config);

}  // namespace vit::app
