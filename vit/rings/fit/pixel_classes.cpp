// Applying a head to the pixels of an image, and its file. Linear functions are computed for patches and
// interpolated, which is the same as computing them for interpolated features; votes of neighbors are counted
// for patches, and their shares interpolated.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "vit/api/head_file.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/io/safetensors.h"
#include "vit/rings/fit/pixel_grid.h"
#include "vit/rings/fit/pixel_options.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kHead{"pixel head", ErrorKind::argument};
constexpr std::size_t kFormat = 1;
constexpr std::size_t kPatches = 256;  // of a task

/// Values of the classes for the patches of a grid.
struct PatchValues {
  const FeatureGrid* grid = nullptr;
  Tensor<double> values;  // (h w, K)
};

/// Values of the classes for every pixel.
class PixelValues {
 public:
  PixelValues(const ClassifierHead& head, const PixelFeatures& features, std::span<const FeatureGrid> grids,
              const Image& image, int threads)
      : image_(image), num_classes_(head.labels.size()), is_linear_(head.method != FitMethod::knn) {
    is_linear_ ? add_functions(head, features.options().color, grids, threads)
               : add_votes(head, features, grids, threads);
  }

  /// The values of a pixel, to `out` (K): logits, or probabilities.
  void at(std::size_t x, std::size_t y, std::span<double> out) const {
    std::ranges::fill(out, 0.0);
    std::ranges::copy(constants_, out.begin());
    PatchWeights weights;
    for (const PatchValues& of : patches_) {
      of.grid->weigh(image_, x, y, weights);
      for (const WeightedPatch& patch : weights.all()) {
        const double* const values = of.values.view().row(patch.patch);
        for (std::size_t k = 0; k < out.size(); ++k) out[k] += patch.weight * values[k];
      }
    }
    if (color_.empty()) return;
    const Color3 color = color_at(image_, x, y);
    for (std::size_t k = 0; k < out.size(); ++k) {
      for (std::size_t c = 0; c < 3; ++c) out[k] += color_[k][c] * static_cast<double>(color[c]);
    }
  }
  void to_probabilities(std::span<double> values) const {
    if (!is_linear_) return;
    const double largest = *std::ranges::max_element(values);
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value - largest);
    for (double& value : values) value /= sum;
  }
  std::size_t num_classes() const noexcept { return num_classes_; }

 private:
  /// Coefficient of feature c without standardization.
  static double factor(const ClassifierHead& head, std::size_t k, std::size_t c) {
    return static_cast<double>(head.coefficients.view().row(k)[c]) /
           static_cast<double>(head.scale.data()[c]);
  }

  void add_functions(const ClassifierHead& head, bool with_color, std::span<const FeatureGrid> grids,
                     int threads) {
    for (std::size_t k = 0; k < num_classes_; ++k) {
      double constant = head.intercepts.data()[k];
      for (std::size_t c = 0; c < head.num_features(); ++c)
        constant -= factor(head, k, c) * static_cast<double>(head.mean.data()[c]);
      constants_.push_back(constant);
    }
    std::size_t first = 0;
    for (const FeatureGrid& grid : grids) {
      const std::size_t columns = grid.features.dim(1);
      Tensor<double> factors(Shape{num_classes_, columns});
      for (std::size_t k = 0; k < num_classes_; ++k) {
        for (std::size_t c = 0; c < columns; ++c) factors.view().row(k)[c] = factor(head, k, first + c);
      }
      patches_.push_back({&grid, Tensor<double>(Shape{grid.num_patches(), num_classes_})});
      const TensorView<double> values = patches_.back().values;
      parallel_for_parts(grid.num_patches(), kPatches, threads, [&](std::size_t begin, std::size_t count) {
        for (std::size_t i = begin; i < begin + count; ++i) {
          const float* const row = grid.features.view().row(i);
          for (std::size_t k = 0; k < num_classes_; ++k) {
            const double* const of = factors.view().row(k);
            std::array<double, 8> sums{};  // independent sums, which become a vector
            std::size_t c = 0;
            for (; c + sums.size() <= columns; c += sums.size()) {
              for (std::size_t j = 0; j < sums.size(); ++j)
                sums[j] += of[c + j] * static_cast<double>(row[c + j]);
            }
            for (; c < columns; ++c) sums[0] += of[c] * static_cast<double>(row[c]);
            for (const double sum : sums) values.row(i)[k] += sum;
          }
        }
      });
      first += columns;
    }
    for (std::size_t k = 0; with_color && k < num_classes_; ++k)
      color_.push_back({factor(head, k, first), factor(head, k, first + 1), factor(head, k, first + 2)});
  }

  /// For the patches of the finest grid, each with the features of the pixel at its center.
  void add_votes(const ClassifierHead& head, const PixelFeatures& features,
                 std::span<const FeatureGrid> grids, int threads) {
    const FeatureGrid& grid = *std::ranges::max_element(grids, {}, &FeatureGrid::num_patches);
    patches_.push_back({&grid, Tensor<double>(Shape{grid.num_patches(), num_classes_})});
    const TensorView<double> values = patches_.back().values;
    const ImageSize size = features.size();
    const auto pixel = [](double center, std::size_t count) {
      return static_cast<std::size_t>(std::clamp(std::floor(center), 0.0, static_cast<double>(count - 1)));
    };
    parallel_for_parts(grid.num_patches(), 16, threads, [&](std::size_t begin, std::size_t count) {
      std::vector<float> vector(features.num_features()), votes(num_classes_);
      for (std::size_t i = begin; i < begin + count; ++i) {
        features.at(pixel(grid.xs[i % grid.xs.size()], size.width),
                    pixel(grid.ys[i / grid.xs.size()], size.height), vector);
        head.apply(vector, votes);
        const float largest = *std::ranges::max_element(votes);
        double sum = 0;
        for (std::size_t k = 0; k < num_classes_; ++k)
          sum += values.row(i)[k] = std::exp(static_cast<double>(votes[k] - largest));
        for (std::size_t k = 0; k < num_classes_; ++k) values.row(i)[k] /= sum;
      }
    });
  }

  const Image& image_;
  std::size_t num_classes_;
  bool is_linear_;
  std::vector<double> constants_;             // (K) of functions
  std::vector<std::array<double, 3>> color_;  // (K) of functions on colors
  std::vector<PatchValues> patches_;
};

void check_features(const PixelHead& head, const PixelFeatures& features) {
  VIT_CHECK(
      are_same(head.options, features.options()) && head.classifier.num_features() == features.num_features(),
      kHead.with(ErrorKind::mismatch), "the classifier was fitted on features of ", described(head.options),
      " (", head.classifier.num_features(), " numbers), not of ", described(features.options()), " (",
      features.num_features(), ")");
}

}  // namespace

Tensor<std::int32_t> PixelHead::classes(const PixelFeatures& features, int threads) const {
  check_features(*this, features);
  const PixelValues of_pixels(classifier, features, features.state_->grids, features.state_->image, threads);
  const ImageSize size = features.size();
  Tensor<std::int32_t> out(Shape{size.height, size.width});
  parallel_for(size.height, threads, [&](std::size_t y, int) {
    std::vector<double> of_pixel(of_pixels.num_classes());
    for (std::size_t x = 0; x < size.width; ++x) {
      of_pixels.at(x, y, of_pixel);
      out.view().row(y)[x] = static_cast<std::int32_t>(std::ranges::max_element(of_pixel) - of_pixel.begin());
    }
  });
  return out;
}

Tensor<float> PixelHead::probabilities(const PixelFeatures& features, int threads) const {
  check_features(*this, features);
  const PixelValues of_pixels(classifier, features, features.state_->grids, features.state_->image, threads);
  const ImageSize size = features.size();
  Tensor<float> out(Shape{of_pixels.num_classes(), size.height, size.width});
  parallel_for(size.height, threads, [&](std::size_t y, int) {
    std::vector<double> of_pixel(of_pixels.num_classes());
    for (std::size_t x = 0; x < size.width; ++x) {
      of_pixels.at(x, y, of_pixel);
      of_pixels.to_probabilities(of_pixel);
      for (std::size_t k = 0; k < of_pixel.size(); ++k)
        out.view()[k].row(y)[x] = static_cast<float>(of_pixel[k]);
    }
  });
  return out;
}

// ----------------------------------------------------------------------------------------------------- files

void PixelHead::attach(const Model& from) {
  classifier.features = features_name(options);
  classifier.model = from.name();
  classifier.fingerprint = from.report().fingerprint;
}

void PixelHead::check(const Model& from) const {
  check_model(classifier, from);
}

void PixelHead::save(const std::filesystem::path& path) const {
  std::string out;
  JsonWriter json(out, JsonLayout::spaced, JsonText::ascii);
  json.begin_object().member("format", kFormat);
  write_members(json, options);
  json.array("sources", sources)
      .member("background", has_background)
      .member("images", num_images)
      .member("pixels", num_pixels);
  json.member("held_out", to_string(held_out)).member("cross_validated_iou", cross_validated_iou);
  json.end_object();
  write_head(path, classifier, {{kPixelsMember, out}});
}

namespace {

HeldOut parse_held_out(const Json& json) {
  for (const HeldOut known : {HeldOut::nothing, HeldOut::strokes, HeldOut::images}) {
    if (json.as_string() == to_string(known)) return known;
  }
  fail(kHead.with(ErrorKind::format), json.where(), " must be nothing, strokes or images");
}

}  // namespace

PixelHead PixelHead::load(const std::filesystem::path& path) {
  const TensorFile file = open_safetensors(path);
  const auto found = file.metadata().find(kPixelsMember);
  VIT_CHECK(found != file.metadata().end(), kHead.with(ErrorKind::mismatch), path.string(),
            ": has no classes of pixels (no ", kPixelsMember,
            " in its metadata); vit fit --truth makes such a head, and one of images is for vit classify");
  const Json json = parse_json(found->second, path.string());
  const std::size_t format = json.at("format").as_size();
  VIT_CHECK(format == kFormat, kHead.with(ErrorKind::unsupported), path.string(),
            ": classes of pixels of format ", format, "; this release reads ", kFormat);
  PixelHead head{.classifier = read_head(file), .options = parse_pixel_options(json)};
  const Json sources = json.at("sources");
  for (std::size_t k = 0; k < sources.size(); ++k) head.sources.emplace_back(sources[k].as_string());
  VIT_CHECK(head.sources.empty() || head.sources.size() == head.classifier.labels.size(),
            kHead.with(ErrorKind::format), sources.where(), " must have a name for each of ",
            head.classifier.labels.size(), " classes");
  head.has_background = json.at("background").as_bool();
  head.num_images = json.at("images").as_size();
  head.num_pixels = json.at("pixels").as_size();
  head.held_out = parse_held_out(json.at("held_out"));
  head.cross_validated_iou = json.find_double("cross_validated_iou");
  return head;
}

}  // namespace vit
