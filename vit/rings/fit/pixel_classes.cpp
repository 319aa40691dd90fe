// Applying a head to the pixels of an image, and its file. Linear functions are computed for patches and
// interpolated, which is the same as computing them for interpolated features; votes of neighbors are counted
// for patches, and their shares interpolated.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <system_error>
#include <utility>

#include "vit/api/head_file.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/io/in_quotes.h"
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

/// Of one thread.
struct TileValues {
  AttentionMemory attention;
  Tensor<float> of_pixels, of_classes;
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

  /// The values of the pixels of a tile, row by row, to `out` (K, count): logits, or probabilities.
  void tile(const MapTile& tile, TensorView<float> out, TileValues& memory) const {
    std::ranges::fill(out.flat(), 0.0f);
    for (const PatchValues& of : patches_) {
      if (of.grid->learned != nullptr) {
        add_learned(of, tile, out, memory);
        continue;
      }
      for (std::size_t r = 0; r < tile.height; ++r)
        of.grid->add_row(image_, tile.y + r, tile.x, of.values,
                         {out.data() + r * tile.width, Shape{num_classes_, tile.width}, out.row_stride()});
    }
    for (std::size_t i = 0; !color_.empty() && i < out.dim(1); ++i) {
      const Color3 color = color_at(image_, tile.x + i % tile.width, tile.y + i / tile.width);
      for (std::size_t k = 0; k < num_classes_; ++k) {
        for (std::size_t c = 0; c < 3; ++c) out.row(k)[i] += color_[k][c] * color[c];
      }
    }
  }
  /// Makes probabilities of what tile() gives.
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
  /// Adds the values of patches, those of a group after those of another.
  void add_learned(const PatchValues& of, const MapTile& tile, TensorView<float> out,
                   TileValues& memory) const {
    const std::size_t columns = of.values.dim(1);
    const TensorView<float> rows(reserve(memory.of_pixels, tile.num_pixels() * columns),
                                 Shape{tile.num_pixels(), columns});
    of.grid->learned->values_of(tile, of.values, rows, memory.attention);
    for (std::size_t i = 0; i < tile.num_pixels(); ++i) {
      for (std::size_t c = 0; c < columns; ++c) out.row(c % num_classes_)[i] += rows.row(i)[c];
    }
  }
  static std::size_t num_groups(const FeatureGrid& grid) {
    return grid.learned == nullptr ? 1 : grid.learned->num_groups();
  }

  /// Coefficient of feature c without standardization.
  static double factor(const ClassifierHead& head, std::size_t k, std::size_t c) {
    return static_cast<double>(head.coefficients.view().row(k)[c]) /
           static_cast<double>(head.scale.data()[c]);
  }

  /// A constant, and the products of factors and features.
  static double function_of(std::span<const double> factors, const float* features, double constant) {
    std::array<double, 8> sums{};  // independent sums, which become a vector
    std::size_t c = 0;
    for (; c + sums.size() <= factors.size(); c += sums.size()) {
      for (std::size_t j = 0; j < sums.size(); ++j)
        sums[j] += factors[c + j] * static_cast<double>(features[c + j]);
    }
    for (; c < factors.size(); ++c) sums[0] += factors[c] * static_cast<double>(features[c]);
    for (const double sum : sums) constant += sum;
    return constant;
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
      const std::size_t groups = num_groups(grid), of_group = columns / groups;
      patches_.push_back({&grid, Tensor<float>(Shape{grid.num_patches(), groups * num_classes_})});
      const TensorView<float> values = patches_.back().values;
      parallel_for_parts(grid.num_patches(), kPatches, threads, [&](std::size_t begin, std::size_t count) {
        for (std::size_t i = begin; i < begin + count; ++i) {
          const float* const row = grid.features.view().row(i);
          for (std::size_t g = 0; g < groups; ++g) {
            for (std::size_t k = 0; k < num_classes_; ++k) {
              const double constant = first == 0 && g == 0 ? constants[k] : 0.0;
              const double* const of = factors.view().row(k) + g * of_group;
              values.row(i)[g * num_classes_ + k] =
                  static_cast<float>(function_of({of, of_group}, row + g * of_group, constant));
            }
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
    const std::size_t groups = num_groups(grid);  // each of which has its part of all votes
    patches_.push_back({&grid, Tensor<float>(Shape{grid.num_patches(), groups * num_classes_})});
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
        sum *= static_cast<float>(groups);
        for (std::size_t k = 0; k < num_classes_; ++k) values.row(i)[k] /= sum;
        for (std::size_t g = 1; g < groups; ++g)
          std::copy_n(values.row(i), num_classes_, values.row(i) + g * num_classes_);
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
  head.classifier.validate();
  VIT_CHECK(
      are_same(head.options, features.options()) && head.classifier.num_features() == features.num_features(),
      kHead.with(ErrorKind::mismatch), "the classifier was fitted on features of ", described(head.options),
      " (", head.classifier.num_features(), " numbers), not of ", described(features.options()), " (",
      features.num_features(), ")");
}

/// The parts of an image that are computed at once: of a learned network its tiles, else parts of rows.
std::vector<MapTile> parts_of(ImageSize size, const PixelOptions& options) {
  if (options.upsampling == PixelUpsampling::learned) return tiles_of({size.height, size.width});
  std::vector<MapTile> out;
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; x += kPixels)
      out.push_back({.y = y, .x = x, .height = 1, .width = std::min(kPixels, size.width - x)});
  }
  return out;
}

/// Calls use(tile, values) with the values (K, count) of all pixels, a part of the image at a time.
template <typename Use>
void for_each_part(const PixelValues& of_pixels, const PixelFeatures& features, int threads, const Use& use) {
  const std::vector<MapTile> parts = parts_of(features.size(), features.options());
  std::vector<TileValues> memories(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(parts.size(), threads, [&](std::size_t part, int thread) {
    const MapTile& tile = parts[part];
    TileValues& memory = memories[static_cast<std::size_t>(thread)];
    const std::size_t num_classes = of_pixels.num_classes();
    const TensorView<float> values(reserve(memory.of_classes, num_classes * tile.num_pixels()),
                                   Shape{num_classes, tile.num_pixels()});
    of_pixels.tile(tile, values, memory);
    use(tile, values);
  });
}

}  // namespace

Tensor<std::int32_t> PixelHead::classes(const PixelFeatures& features, int threads) const {
  check_features(*this, features);
  const PixelValues of_pixels(classifier, features, features.state_->grids, features.state_->image, threads);
  const ImageSize size = features.size();
  Tensor<std::int32_t> out(Shape{size.height, size.width});
  for_each_part(of_pixels, features, threads, [&](const MapTile& tile, TensorView<float> values) {
    for (std::size_t r = 0; r < tile.height; ++r) {
      std::int32_t* const best = out.view().row(tile.y + r) + tile.x;
      float* const largest = values.row(0) + r * tile.width;  // which those of class 0 become
      for (std::size_t k = 1; k < values.dim(0); ++k) {
        const float* const value = values.row(k) + r * tile.width;
        for (std::size_t i = 0; i < tile.width; ++i) {
          if (value[i] > largest[i]) {
            largest[i] = value[i];
            best[i] = static_cast<std::int32_t>(k);
          }
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
  for_each_part(of_pixels, features, threads, [&](const MapTile& tile, TensorView<float> values) {
    of_pixels.to_probabilities(values);
    for (std::size_t k = 0; k < values.dim(0); ++k) {
      for (std::size_t r = 0; r < tile.height; ++r)
        std::copy_n(values.row(k) + r * tile.width, tile.width, out.view()[k].row(tile.y + r) + tile.x);
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

namespace {

/// What a file says of a head besides what one of images does.
std::map<std::string, std::string> metadata_of(const PixelHead& head) {
  std::string out;
  JsonWriter json(out, JsonLayout::spaced, JsonText::ascii);
  json.begin_object().member("format", kFormat);
  write_members(json, head.options);
  if (const PixelUpsampler* const of = head.options.upsampler.get()) {
    json.key("upsampler").begin_object().member("name", of->name()).member("fingerprint", of->fingerprint());
    json.member("file", of->path().string()).end_object();
  }
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

namespace {

/// What a file says of the classes of pixels in it.
Json facts_of(const TensorFile& file, const std::filesystem::path& path) {
  const auto found = file.metadata().find(kPixelsMember);
  VIT_CHECK(found != file.metadata().end(), kHead.with(ErrorKind::mismatch), path.string(),
            ": has no classes of pixels (no ", kPixelsMember,
            " in its metadata); vit fit --truth makes such a head, and one of images is for vit classify");
  Json json = parse_json(found->second, path.string());
  const std::size_t format = json.at("format").as_size();
  VIT_CHECK(format == kFormat, kHead.with(ErrorKind::unsupported), path.string(),
            ": classes of pixels of format ", format, "; this release reads ", kFormat);
  return json;
}

/// The network that a head's features need: from where it was, or from `moved`, unless that is empty.
std::shared_ptr<const PixelUpsampler> load_upsampler(const Json& made, const std::filesystem::path& path,
                                                     const std::filesystem::path& moved) {
  const std::string name(made.at("name").as_string()), fingerprint(made.at("fingerprint").as_string());
  const std::filesystem::path file =
      moved.empty() ? std::filesystem::path(made.at("file").as_string()) : moved;
  std::error_code unknown;
  VIT_CHECK(std::filesystem::is_regular_file(file, unknown), kHead.with(ErrorKind::io), path.string(),
            ": its features are upsampled by ", in_quotes(name), " (", in_quotes(fingerprint), ") of ",
            in_quotes(file.string()),
            ", which does not exist or is no file; --upsample FILE names its new place");
  std::shared_ptr<const PixelUpsampler> out = PixelUpsampler::load(file);
  VIT_CHECK(out->name() == name && out->fingerprint() == fingerprint, kHead.with(ErrorKind::mismatch),
            path.string(), ": its features are upsampled by ", in_quotes(name), " (", in_quotes(fingerprint),
            "), and ", in_quotes(file.string()), " is ", out->name(), " (", out->fingerprint(), ")");
  return out;
}

}  // namespace

std::filesystem::path PixelHead::upsampler_file(const std::filesystem::path& path) {
  const TensorFile file = open_safetensors(path);
  const auto upsampler = facts_of(file, path).find("upsampler");
  return upsampler ? std::filesystem::path(upsampler->at("file").as_string()) : std::filesystem::path();
}

PixelHead PixelHead::load(const std::filesystem::path& path, const std::filesystem::path& upsampler) {
  const TensorFile file = open_safetensors(path);
  const Json json = facts_of(file, path);
  PixelHead head{.classifier = read_head(file), .options = parse_pixel_options(json)};
  const bool is_learned = head.options.upsampling == PixelUpsampling::learned;
  VIT_CHECK(is_learned || upsampler.empty(), kHead.with(ErrorKind::mismatch), path.string(),
            ": was fitted on features with --upsample ", to_string(head.options.upsampling), ", not by ",
            in_quotes(upsampler.string()));
  if (is_learned) head.options.upsampler = load_upsampler(json.at("upsampler"), path, upsampler);
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
