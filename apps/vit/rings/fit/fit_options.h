// The options of vit fit, and its two kinds of classes: of images and of pixels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/options/options.h"
#include "vit/pixels.h"

namespace vit::app {

inline constexpr std::size_t kFitFolds = 5;

/// What --truth takes: labels of pixels, and what their features are.
struct PixelFitOptions {
  std::filesystem::path truth;
  std::filesystem::path paint;  // a page to paint on
  std::string names;
  std::string background;
  std::vector<std::size_t> unlabeled;
  std::vector<int> layers;
  std::vector<double> scales;
  PixelUpsampling upsampling = PixelUpsampling::bilinear;
  std::filesystem::path upsampler;  // the network of PixelUpsampling::learned
  std::optional<std::size_t> shifts;
  bool color = false;
  std::vector<std::string> said;  // names of those that are given

  bool are_given() const { return !truth.empty() || !paint.empty(); }
};

struct FitCommandOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  FitMethod method = FitMethod::logistic;
  std::string features;
  std::optional<std::size_t> neighbors;
  std::optional<double> strength;
  PrintFormat format = PrintFormat::text;
  PixelFitOptions pixels;

  /// Of the methods, in the library's form.
  FitOptions library_options() const {
    return {.strength = strength,
            .neighbors = neighbors.value_or(FitOptions().neighbors),
            .num_folds = kFitFolds,
            .threads = common.session.threads};
  }
};

void add_pixel_fit_options(std::vector<Option>& list, PixelFitOptions& options);
/// Throws UsageError for options that are given without --truth.
void check_pixel_fit_options(const PixelFitOptions& options);
/// The features of pixels that the options ask for. Throws UsageError.
PixelOptions pixel_options(const FitCommandOptions& options, const Model& model);
/// vit fit --truth. Returns the exit code.
int fit_pixels(const FitCommandOptions& options);
/// vit fit --paint. Returns the exit code.
int paint_pixels(const FitCommandOptions& options);

}  // namespace vit::app
