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
constexpr std::size_t kPixels = 512;   // of a row at a time

/// Values of the classes for the patches of a grid.
struct PatchValues {
  const FeatureGrid* grid = nullptr;
  Tensor<float> values;  // (h w, K)
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

  /// The values of pixels from (x, y) on to the right, to `out` (K, count): logits, or probabilities.
  void row(std::size_t y, std::size_t x, TensorView<float> out) const {
    std::ranges::fill(out.flat(), 0.0f);
    for (const PatchValues& of : patches_) of.grid->add_row(image_, y, x, of.values, out);
    for (std::size_t i = 0; !color_.empty() && i < out.dim(1); ++i) {
      const Color3 color = color_at(image_, x + i, y);
      for (std::size_t k = 0; k < num_classes_; ++k) {
        for (std::size_t c = 0; c < 3; ++c) out.row(k)[i] += color_[k][c] * color[c];
      }
    }
  }
  /// Makes probabilities of what row() gives.
  void to_probabilities(TensorView<float> values) const {
    for (std::size_t i = 0; is_linear_ && i < values.dim(1); ++i) {
      float largest = values.row(0)[i], sum = 0;
      for (std::size_t k = 1; k < num_classes_; ++k) largest = std::max(largest, values.row(k)[i]);
      for (std::size_t k = 0; k < num_classes_; ++k)
        sum += values.row(k)[i] = std::exp(values.row(k)[i] - largest);
      for (std::size_t k = 0; k < num_classes_; ++k) values.row(k)[i] /= sum;
    }
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
    std::vector<double> constants;  // of the functions; weights of patches have the sum 1
    for (std::size_t k = 0; k < num_classes_; ++k) {
      constants.push_back(static_cast<double>(head.intercepts.data()[k]));
      for (std::size_t c = 0; c < head.num_features(); ++c)
        constants.back() -= factor(head, k, c) * static_cast<double>(head.mean.data()[c]);
    }
    std::size_t first = 0;
    for (const FeatureGrid& grid : grids) {
      const std::size_t columns = grid.features.dim(1);
      Tensor<double> factors(Shape{num_classes_, columns});
      for (std::size_t k = 0; k < num_classes_; ++k) {
        for (std::size_t c = 0; c < columns; ++c) factors.view().row(k)[c] = factor(head, k, first + c);
      }
      patches_.push_back({&grid, Tensor<float>(Shape{grid.num_patches(), num_classes_})});
      const TensorView<float> values = patches_.back().values;
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
            double value = first == 0 ? constants[k] : 0.0;
            for (const double sum : sums) value += sum;
            values.row(i)[k] = static_cast<float>(value);
          }
        }
      });
      first += columns;
    }
    for (std::size_t k = 0; with_color && k < num_classes_; ++k)
      color_.push_back({static_cast<float>(factor(head, k, first)),
                        static_cast<float>(factor(head, k, first + 1)),
                        static_cast<float>(factor(head, k, first + 2))});
  }

  /// For the patches of the finest grid, each with the features of the pixel at its center.
  void add_votes(const ClassifierHead& head, const PixelFeatures& features,
                 std::span<const FeatureGrid> grids, int threads) {
    const FeatureGrid& grid = *std::ranges::max_element(grids, {}, &FeatureGrid::num_patches);
    patches_.push_back({&grid, Tensor<float>(Shape{grid.num_patches(), num_classes_})});
    const TensorView<float> values = patches_.back().values;
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
        float sum = 0;
        for (std::size_t k = 0; k < num_classes_; ++k) sum += values.row(i)[k] = std::exp(votes[k] - largest);
        for (std::size_t k = 0; k < num_classes_; ++k) values.row(i)[k] /= sum;
      }
    });
  }

  const Image& image_;
  std::size_t num_classes_;
  bool is_linear_;
  std::vector<std::array<float, 3>> color_;  // (K) of functions on colors
  std::vector<PatchValues> patches_;
};

void check_features(const PixelHead& head, const PixelFeatures& features) {
  VIT_CHECK(
      are_same(head.options, features.options()) && head.classifier.num_features() == features.num_features(),
      kHead.with(ErrorKind::mismatch), "the classifier was fitted on features of ", described(head.options),
      " (", head.classifier.num_features(), " numbers), not of ", described(features.options()), " (",
      features.num_features(), ")");
}

/// Calls use(y, x, values) with the values (K, count) of all pixels, a part of a row at a time.
template <typename Use>
void for_each_part(const PixelValues& of_pixels, ImageSize size, int threads, const Use& use) {
  parallel_for(size.height, threads, [&](std::size_t y, int) {
    Tensor<float> memory(Shape{of_pixels.num_classes(), std::min(kPixels, size.width)});
    for (std::size_t x = 0; x < size.width; x += kPixels) {
      const TensorView<float> values(memory.data(),
                                     Shape{of_pixels.num_classes(), std::min(kPixels, size.width - x)});
      of_pixels.row(y, x, values);
      use(y, x, values);
    }
  });
}

}  // namespace

Tensor<std::int32_t> PixelHead::classes(const PixelFeatures& features, int threads) const {
  check_features(*this, features);
  const PixelValues of_pixels(classifier, features, features.state_->grids, features.state_->image, threads);
  const ImageSize size = features.size();
  Tensor<std::int32_t> out(Shape{size.height, size.width});
  for_each_part(of_pixels, size, threads, [&](std::size_t y, std::size_t x, TensorView<float> values) {
    std::int32_t* const best = out.view().row(y) + x;
    for (std::size_t k = 1; k < values.dim(0); ++k) {  // row 0 becomes that of the largest values
      float *const largest = values.row(0), *const value = values.row(k);
      for (std::size_t i = 0; i < values.dim(1); ++i) {
        if (value[i] > largest[i]) {
          largest[i] = value[i];
          best[i] = static_cast<std::int32_t>(k);
        }
      }
    }
  });
  return out;
}

Tensor<float> PixelHead::probabilities(const PixelFeatures& features, int threads) const {
  check_features(*this, features);
  const PixelValues of_pixels(classifier, features, features.state_->grids, features.state_->image, threads);
  const ImageSize size = features.size();
  Tensor<float> out(Shape{of_pixels.num_classes(), size.height, size.width});
  for_each_part(of_pixels, size, threads, [&](std::size_t y, std::size_t x, TensorView<float> values) {
    of_pixels.to_probabilities(values);
    for (std::size_t k = 0; k < values.dim(0); ++k)
      std::copy_n(values.row(k), values.dim(1), out.view()[k].row(y) + x);
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

namespace {

/// What a file says of a head besides what one of images does.
std::map<std::string, std::string> metadata_of(const PixelHead& head) {
  std::string out;
  JsonWriter json(out, JsonLayout::spaced, JsonText::ascii);
  json.begin_object().member("format", kFormat);
  write_members(json, head.options);
  json.array("sources", head.sources)
      .member("background", head.has_background)
      .member("images", head.num_images)
      .member("pixels", head.num_pixels);
  json.member("held_out", to_string(head.held_out)).member("cross_validated_iou", head.cross_validated_iou);
  json.end_object();
  return {{kPixelsMember, out}};
}

HeldOut parse_held_out(const Json& json) {
  for (const HeldOut known : {HeldOut::nothing, HeldOut::strokes, HeldOut::images}) {
    if (json.as_string() == to_string(known)) return known;
  }
  fail(kHead.with(ErrorKind::format), json.where(), " must be nothing, strokes or images");
}

}  // namespace

void PixelHead::save(const std::filesystem::path& path) const {
  write_head(path, classifier, metadata_of(*this));
}

std::string PixelHead::bytes() const {
  return head_bytes(classifier, metadata_of(*this));
}

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
