// Running an image for the features of its pixels, at scales and shifts.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/base/moved.h"
#include "vit/base/parallel.h"
#include "vit/config.h"
#include "vit/rings/fit/pixel_grid.h"
#include "vit/rings/fit/pixel_options.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kPixelFeatures{"pixel features", ErrorKind::argument};
constexpr std::size_t kMostShifts = 16;

void check_upsampler(const PixelOptions& options) {
  check_choice(kPixelFeatures, "upsampling", options.upsampling, PixelUpsampling::learned);
  const bool is_learned = options.upsampling == PixelUpsampling::learned;
  VIT_CHECK(is_learned == (options.upsampler != nullptr), kPixelFeatures, "the upsampling is ",
            to_string(options.upsampling),
            is_learned ? ", but there is no upsampler" : ", not by the upsampler that is given");
}

/// Whether pixels are looked at for more than the forward pass.
bool needs_image(const PixelOptions& options) {
  return options.color || options.upsampling == PixelUpsampling::guided ||
         options.upsampling == PixelUpsampling::learned;
}

void check_options(const PixelOptions& options, const Model& model) {
  const std::size_t depth = model.config().encoder.depth;
  for (const std::size_t layer : options.layers)
    VIT_CHECK(layer < depth, kPixelFeatures, "layer ", layer, ": the model has blocks 0 to ", depth - 1);
  VIT_CHECK(!options.scales.empty(), kPixelFeatures, "no scale");
  for (const double scale : options.scales)
    VIT_CHECK(scale >= 0.01 && scale <= 16, kPixelFeatures, "scales must be 0.01 to 16, got ", scale);
  const std::size_t patch = model.config().patch.size;
  VIT_CHECK(options.upsampling != PixelUpsampling::shift ||
                (options.shifts >= 1 && options.shifts <= std::min(kMostShifts, patch)),
            kPixelFeatures, "shifts must be 1 to ", std::min(kMostShifts, patch), ", got ", options.shifts);
  check_upsampler(options);
  VIT_CHECK(model.steps_for(model.preprocess_config().num_channels()) == 1,
            kPixelFeatures.with(ErrorKind::unsupported), model.name(), " takes clips, not single images");
}

/// The planes moved: pixel (x, y) becomes (x + dx, y + dy) of those given, edges repeated.
Tensor<float> moved(const Tensor<float>& pixels, std::ptrdiff_t dy, std::ptrdiff_t dx) {
  Tensor<float> out(pixels.shape());
  const auto height = static_cast<std::ptrdiff_t>(pixels.dim(1));
  const auto width = static_cast<std::ptrdiff_t>(pixels.dim(2));
  for (std::size_t c = 0; c < pixels.dim(0); ++c) {
    for (std::ptrdiff_t y = 0; y < height; ++y) {
      const std::size_t from = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(y + dy, 0, height - 1));
      const float* const in = pixels.view()[c].row(from);
      float* const to = out.view()[c].row(static_cast<std::size_t>(y));
      for (std::ptrdiff_t x = 0; x < width; ++x) to[x] = in[std::clamp<std::ptrdiff_t>(x + dx, 0, width - 1)];
    }
  }
  return out;
}

/// How far pass `i` of `count` along an axis moves the image, so that the centers of all patches are evenly
/// distributed around those of a single pass.
std::ptrdiff_t offset_of(std::size_t i, std::size_t count, std::size_t patch) {
  const auto steps = static_cast<std::ptrdiff_t>(2 * i + 1) - static_cast<std::ptrdiff_t>(count);
  const auto numerator = steps * static_cast<std::ptrdiff_t>(patch);
  const auto denominator = static_cast<std::ptrdiff_t>(2 * count);
  return (numerator >= 0 ? numerator : numerator - denominator + 1) / denominator;  // rounded down
}

}  // namespace

const char* to_string(PixelUpsampling upsampling) {
  switch (upsampling) {
    case PixelUpsampling::bilinear: return "bilinear";
    case PixelUpsampling::shift: return "shift";
    case PixelUpsampling::guided: return "guided";
    case PixelUpsampling::learned: return "learned";
  }
  return "";
}

namespace {

/// What follows once all patches of a grid are computed. `covered` is shared by the scales of an image.
void complete(FeatureGrid& grid, const PixelOptions& options, const Image& image, std::size_t num_layers,
              std::shared_ptr<const CoveredImage>& covered, int threads) {
  if (options.upsampling == PixelUpsampling::guided) grid.guide(image);
  if (options.upsampling == PixelUpsampling::learned) grid.learn(image, options.upsampler, covered, threads);
  if (options.unit_length) grid.normalize(num_layers);
}

}  // namespace

PixelFeatures::PixelFeatures(std::unique_ptr<State> state) : state_(std::move(state)) {}
PixelFeatures::~PixelFeatures() = default;
PixelFeatures::PixelFeatures(PixelFeatures&&) noexcept = default;
PixelFeatures& PixelFeatures::operator=(PixelFeatures&&) noexcept = default;

PixelFeatures PixelFeatures::of(ImageView image, PixelOptions options, const PixelPatches& patches) {
  VIT_CHECK(!image.empty(), kPixelFeatures, "an image without pixels");
  VIT_CHECK(options.scales.size() == 1 && options.upsampling != PixelUpsampling::shift, kPixelFeatures,
            "patches of one pass have one scale and no shifts");
  check_upsampler(options);
  VIT_CHECK(
      !patches.ys.empty() && !patches.xs.empty() && patches.features.rank() == 2 &&
          patches.features.dim(0) == patches.ys.size() * patches.xs.size() && patches.features.dim(1) > 0,
      kPixelFeatures.with(ErrorKind::mismatch), "features of shape ", patches.features.shape().to_string(),
      " for ", patches.ys.size(), " x ", patches.xs.size(), " patches");
  for (const std::span<const double> centers : {patches.ys, patches.xs})
    VIT_CHECK(std::ranges::is_sorted(centers, std::ranges::less_equal()) || centers.size() == 1,
              kPixelFeatures, "the centers of patches must ascend");
  auto state = std::make_unique<State>();
  state->size = image.size();
  state->num_features = patches.features.dim(1) + (options.color ? 3 : 0);
  if (needs_image(options)) state->image = to_rgb(image);
  state->options = std::move(options);
  FeatureGrid& grid = state->grids.emplace_back();
  grid.ys.assign(patches.ys.begin(), patches.ys.end());
  grid.xs.assign(patches.xs.begin(), patches.xs.end());
  grid.rows = between_centers(image.height(), grid.ys);
  grid.columns = between_centers(image.width(), grid.xs);
  const auto step_of = [](const std::vector<double>& centers, std::size_t pixels) {
    return centers.size() > 1 ? centers[1] - centers[0] : static_cast<double>(pixels);
  };
  grid.step = {step_of(grid.ys, image.height()), step_of(grid.xs, image.width())};
  grid.features = Tensor<float>(patches.features.shape());
  for (std::size_t i = 0; i < patches.features.dim(0); ++i) {
    float* const to = grid.features.view().row(i);
    std::copy_n(patches.features.row(i), patches.features.dim(1), to);
    check_finite({to, patches.features.dim(1)}, kPixelFeatures, "the features are");
  }
  std::shared_ptr<const CoveredImage> covered;
  complete(grid, state->options, state->image, /*num_layers=*/1, covered, /*threads=*/0);
  return PixelFeatures(std::move(state));
}

ImageSize PixelFeatures::size() const {
  return internal::parts_of(state_, kPixelFeatures).size;
}
std::size_t PixelFeatures::num_features() const {
  return internal::parts_of(state_, kPixelFeatures).num_features;
}
const PixelOptions& PixelFeatures::options() const {
  return internal::parts_of(state_, kPixelFeatures).options;
}

PixelPatches PixelFeatures::patches(std::size_t scale) const {
  const State& s = internal::parts_of(state_, kPixelFeatures);
  VIT_CHECK(scale < s.grids.size(), kPixelFeatures, "scale ", scale, " of ", s.grids.size());
  const FeatureGrid& grid = s.grids[scale];
  return {.ys = grid.ys, .xs = grid.xs, .features = grid.features};
}

std::size_t PixelFeatures::patch_at(std::size_t x, std::size_t y) const {
  VIT_CHECK(x < size().width && y < size().height, kPixelFeatures, "pixel ", x, ",", y, " of an image of ",
            size().width, " x ", size().height);
  return state_->grids.front().nearest(x, y);
}

void PixelFeatures::at(std::size_t x, std::size_t y, std::span<float> out) const {
  const State& s = internal::parts_of(state_, kPixelFeatures);
  VIT_CHECK(x < s.size.width && y < s.size.height, kPixelFeatures, "pixel ", x, ",", y, " of an image of ",
            s.size.width, " x ", s.size.height);
  VIT_CHECK(out.size() == s.num_features, kPixelFeatures, "a pixel has ", s.num_features, " features, not ",
            out.size());
  std::size_t first = 0;
  PatchWeights weights;
  for (const FeatureGrid& grid : s.grids) {
    const std::size_t columns = grid.features.dim(1);
    std::vector<double> sum(columns);
    if (grid.learned != nullptr) {
      AttentionMemory memory;
      grid.learned->values_of({.y = y, .x = x, .height = 1, .width = 1}, grid.features,
                              {out.data() + first, Shape{1, columns}}, memory);
      first += columns;
      continue;
    }
    grid.weigh(s.image, x, y, weights);
    for (const WeightedPatch& of : weights.all()) {
      const float* const row = grid.features.view().row(of.patch);
      for (std::size_t c = 0; c < columns; ++c) sum[c] += of.weight * static_cast<double>(row[c]);
    }
    for (std::size_t c = 0; c < columns; ++c) out[first + c] = static_cast<float>(sum[c]);
    first += columns;
  }
  if (s.options.color)
    std::ranges::copy(color_at(s.image, x, y), out.begin() + static_cast<std::ptrdiff_t>(first));
}

// ------------------------------------------------------------------------------------------------ extractor

struct PixelExtractor::State {
  PixelOptions options;
  int threads = 0;
  Session session;
  Outputs outputs;

  void run(const Tensor<float>& pixels, FeatureGrid& grid, std::size_t iy, std::size_t ix,
           std::size_t shifts);
  FeatureGrid grid_of(ImageView image, double scale);
};

/// One pass, whose patches become every shifts-th row and column of the grid, from (iy, ix).
void PixelExtractor::State::run(const Tensor<float>& pixels, FeatureGrid& grid, std::size_t iy,
                                std::size_t ix, std::size_t shifts) {
  session.forward({pixels.data(), Shape{1, pixels.dim(0), pixels.dim(1), pixels.dim(2)}},
                  pixel_request(options), outputs);
  VIT_CHECK(outputs.num_steps() == 1 && outputs.num_windows() == 1,
            kPixelFeatures.with(ErrorKind::unsupported), session.model().name(),
            " computes an image as several; its pixels cannot be classified");
  const GridSize found = outputs.grid();
  const ImageOutputs image = outputs[0];
  const std::size_t num_layers = std::max<std::size_t>(options.layers.size(), 1);
  const std::size_t width = patches_of_layer(image, options, 0).num_columns();
  if (grid.features.empty()) {
    grid.features = Tensor<float>(Shape{found.rows * shifts * found.columns * shifts, num_layers * width});
  }
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    const TensorView<const float> patches = patches_of_layer(image, options, layer);
    for (std::size_t i = 0; i < patches.dim(0); ++i) {
      const std::size_t row = i / found.columns * shifts + iy, column = i % found.columns * shifts + ix;
      float* const to = grid.features.view().row(row * found.columns * shifts + column) + layer * width;
      std::copy_n(patches.row(i), width, to);
      check_finite({to, width}, kPixelFeatures, "the features are");
    }
  }
}

FeatureGrid PixelExtractor::State::grid_of(ImageView image, double scale) {
  const Model& model = session.model();
  const Preprocessor preprocessor(
      pixel_preprocessing(options, model.preprocess_config(), model.config(), image.size(), scale));
  const Tensor<float> pixels = preprocessor.run(image, threads);
  const SourceMap map = preprocessor.source_map(image.size());
  const std::size_t shifts = options.upsampling == PixelUpsampling::shift ? options.shifts : 1;
  const std::size_t patch = model.config().patch.size;
  const GridSize patches = model.grid_for(pixels.dim(1), pixels.dim(2));
  FeatureGrid grid;
  const auto centers = [&](std::size_t count, double start, double step, std::vector<double>& out) {
    for (std::size_t i = 0; i < count * shifts; ++i) {
      const double at = (static_cast<double>(i / shifts) + 0.5) * static_cast<double>(patch) +
                        static_cast<double>(offset_of(i % shifts, shifts, patch));
      out.push_back(start + at * step);
    }
  };
  centers(patches.rows, map.top, map.y_step, grid.ys);
  centers(patches.columns, map.left, map.x_step, grid.xs);
  grid.rows = between_centers(image.height(), grid.ys);
  grid.columns = between_centers(image.width(), grid.xs);
  grid.step = {static_cast<double>(patch) * map.y_step, static_cast<double>(patch) * map.x_step};
  for (std::size_t iy = 0; iy < shifts; ++iy) {
    for (std::size_t ix = 0; ix < shifts; ++ix) {
      if (shifts == 1) {
        run(pixels, grid, 0, 0, 1);
      } else {
        run(moved(pixels, offset_of(iy, shifts, patch), offset_of(ix, shifts, patch)), grid, iy, ix, shifts);
      }
    }
  }
  return grid;
}

PixelExtractor::PixelExtractor(std::shared_ptr<const Model> model, PixelOptions options, int threads) {
  VIT_CHECK(model != nullptr, kPixelFeatures, "no model");
  model->require_preprocess_config();
  check_options(options, *model);
  Session session(std::move(model), {.threads = threads});
  state_.reset(new State{
      .options = std::move(options), .threads = threads, .session = std::move(session), .outputs = {}});
}
PixelExtractor::~PixelExtractor() = default;
PixelExtractor::PixelExtractor(PixelExtractor&&) noexcept = default;
PixelExtractor& PixelExtractor::operator=(PixelExtractor&&) noexcept = default;

const std::shared_ptr<const Model>& PixelExtractor::model() const {
  return internal::parts_of(state_, kPixelFeatures).session.shared_model();
}
const PixelOptions& PixelExtractor::options() const {
  return internal::parts_of(state_, kPixelFeatures).options;
}

PixelFeatures PixelExtractor::extract(ImageView image) {
  VIT_CHECK(!image.empty(), kPixelFeatures, "an image without pixels");
  State& s = internal::parts_of(state_, kPixelFeatures);
  auto out = std::make_unique<PixelFeatures::State>();
  out->options = s.options;
  out->size = image.size();
  if (needs_image(s.options)) out->image = to_rgb(image);
  std::shared_ptr<const CoveredImage> covered;
  const std::size_t num_layers = std::max<std::size_t>(s.options.layers.size(), 1);
  for (const double scale : s.options.scales) {
    out->grids.push_back(s.grid_of(image, scale));
    complete(out->grids.back(), s.options, out->image, num_layers, covered, s.threads);
    out->num_features += out->grids.back().features.dim(1);
  }
  if (s.options.color) out->num_features += 3;
  return PixelFeatures(std::move(out));
}

}  // namespace vit
