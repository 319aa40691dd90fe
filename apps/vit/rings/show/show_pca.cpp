// The first principal components of patches as colors.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/rings/show/show_run.h"
#include "vit/analysis/features.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

/// The components of one image and its index among the inputs.
struct PcaImage {
  const Input* input;
  GridSize grid;
  Tensor<float> values;  // (h w, 3)
};

/// The range of the middle 98 % of a component; hidden patches do not count.
std::pair<float, float> range_of(std::span<const PcaImage> images, std::size_t component,
                                 const std::vector<std::vector<std::uint8_t>>& is_shown) {
  std::vector<float> all;
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (std::size_t row = 0; row < images[i].values.dim(0); ++row) {
      if (is_shown[i].empty() || is_shown[i][row] != 0)
        all.push_back(images[i].values.view().row(row)[component]);
    }
  }
  if (all.empty()) return {0.0f, 1.0f};
  std::ranges::sort(all);
  const std::size_t cut = all.size() / 100;
  return {all[cut], all[all.size() - 1 - cut]};
}

/// For each image, 1 if a patch is on the foreground side of zero of component 1: the side with fewer of
/// the patches on the borders of the images.
std::vector<std::vector<std::uint8_t>> foreground_of(std::span<const PcaImage> images) {
  std::size_t border = 0, positive_border = 0;
  for (const PcaImage& image : images) {
    for (std::size_t i = 0; i < image.values.dim(0); ++i) {
      const std::size_t row = i / image.grid.columns, column = i % image.grid.columns;
      if (row != 0 && column != 0 && row + 1 != image.grid.rows && column + 1 != image.grid.columns) continue;
      ++border;
      if (image.values.view().row(i)[0] > 0) ++positive_border;
    }
  }
  const bool is_positive = 2 * positive_border <= border;
  std::vector<std::vector<std::uint8_t>> out;
  for (const PcaImage& image : images) {
    std::vector<std::uint8_t>& is_shown = out.emplace_back();
    for (std::size_t i = 0; i < image.values.dim(0); ++i)
      is_shown.push_back((image.values.view().row(i)[0] > 0) == is_positive ? 1 : 0);
  }
  return out;
}

}  // namespace

void Show::draw_pca() {
  PcaAccumulator accumulator;
  const std::filesystem::path& beside = !options_.data.empty() ? options_.data
                                        : sink_.is_used()      ? options_.output
                                                               : options_.html;
  Spool spool(beside);  // (h w, C) of each image
  std::vector<PcaImage> images;
  std::size_t width = 0;
  for_each([&](const Input& input) {
    const SeenImage seen = see_patches(input);
    const TensorView<const float> patches = this->patches();
    width = patches.num_columns();
    accumulator.add(patches);
    spool.append(std::as_bytes(patches.flat()));
    images.push_back({&input, seen.layout.grid, {}});
  });
  if (images.empty()) return;
  const PrincipalComponents pca = accumulator.fit(3);
  numbers_.add("mean", {width}, pca.mean.flat());
  numbers_.add("components", {3, width}, pca.components.flat());
  const auto* features = reinterpret_cast<const float*>(spool.view().data());
  for (PcaImage& image : images) {
    const std::size_t count = image.grid.rows * image.grid.columns;
    image.values = pca.transform({features, Shape{count, width}});
    features += count * width;
  }
  const std::vector<std::vector<std::uint8_t>> is_shown =
      options_.foreground ? foreground_of(images) : std::vector<std::vector<std::uint8_t>>(images.size());
  std::array<std::pair<float, float>, 3> ranges;
  for (std::size_t k = 0; k < 3; ++k) ranges[k] = range_of(images, k, is_shown);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const PcaImage& image = images[i];
    numbers_.add(array_name("values"), {image.grid.rows, image.grid.columns, 3}, image.values.flat());
    if (options_.foreground)
      numbers_.add(array_name("foreground"), {image.grid.rows, image.grid.columns}, is_shown[i]);
    files_.push_back(image.input->name);
    if (!is_drawn()) continue;
    PatchMap map{.title = "", .values = {}, .is_shown = is_shown[i]};
    for (std::size_t k = 0; k < image.values.num_elements(); ++k) {
      const auto [low, high] = ranges[k % 3];
      map.values.push_back(high > low ? std::clamp((image.values.data()[k] - low) / (high - low), 0.0f, 1.0f)
                                      : 0.5f);
    }
    const SeenImage seen = run_.preprocess_only(*image.input);
    add_map_picture(*image.input,
                    {.image = seen,
                     .maps = {std::move(map)},
                     .caption = {short_name(*image.input),
                                 text("red, green, blue: components 1, 2, 3 of ", patch_text(), " of ",
                                      images.size(), images.size() == 1 ? " image" : " images",
                                      options_.foreground ? ", background hidden" : ""),
                                 grid_text(seen.layout)}});
  }
}

}  // namespace vit::app
