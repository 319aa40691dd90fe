// One run of `vit show`: what the kinds of pictures share. The kinds are show_pca.cpp, show_attention.cpp,
// show_pairs.cpp and show_maps.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/progress.h"
#include "apps/vit/html/html_page.h"
#include "apps/vit/rings/show/show_files.h"
#include "apps/vit/rings/show/show_options.h"

namespace vit::app {

class Show {
 public:
  /// Throws UsageError for outputs that this model does not have, Error if the results
  /// cannot be written.
  Show(const ShowOptions& options, std::vector<Input> inputs, PatchRun& run, Progress& progress);

  /// Draws and writes everything; inputs that fail are reported.
  void draw();
  std::string summary() const;

 private:
  void draw_pca();
  void draw_attention();
  void draw_similarity();
  void draw_match();
  void draw_depth();
  void draw_segments();
  /// Throws UsageError for a query or a head that this model does not have.
  void check_attention() const;

  /// Calls work(input) for each input; exceptions are reported as failures of that input.
  void for_each(const std::function<void(const Input&)>& work);
  /// Runs an input for patches().
  SeenImage see_patches(const Input& input);
  /// Runs an input for the maps of a dense head.
  SeenImage see_maps(const Input& input);
  /// A picture that has its size.
  void add_picture(const Input& input, std::vector<std::string> caption, Image picture);
  /// Patches (h w, C) of the image seen last, after the final norm for the last block. Throws Error if they
  /// are not finite.
  TensorView<const float> patches() const;
  bool is_drawn() const { return sink_.is_used() || !options_.html.empty(); }
  void add_map_picture(const Input& input, MapPicture picture);
  void add_to_page(const Input& input, std::span<const std::string> caption, const Image& picture);
  void write_html();
  std::size_t query_token(const PatchLayout& layout) const;
  /// The map of one head or of their mean; weights (heads, h, w).
  PatchMap attention_map(std::size_t head, GridSize grid, std::span<const float> weights) const;

  // parts of captions
  std::string patch_text() const;
  std::string attention_text() const;
  std::string grid_text(const PatchLayout& layout) const;
  /// NAME.I of the next completed input.
  std::string array_name(const char* name) const;

  const ShowOptions& options_;
  std::vector<Input> inputs_;
  PatchRun& run_;
  Progress& progress_;
  std::size_t layer_;
  OutputKey patch_output_;
  NumberFile numbers_;
  PictureSink sink_;
  Outputs outputs_;
  std::vector<std::string> files_;  // completed inputs
  std::vector<PageItem> page_;      // of --html
};

/// The name of an input without its folders.
std::string short_name(const Input& input);

}  // namespace vit::app
