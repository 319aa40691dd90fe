#include "vit/position/normal_form.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/identify.h"
#include "vit/position/rope.h"

namespace vit::position {
namespace {

constexpr const char* kForm = "normal_form";
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A coordinate as scale * index + start.
struct AffineAxis {
  double scale = 1.0, start = 0.0;
};

AffineAxis affine(const RopeConvention& c, std::size_t length, std::size_t reference) {
  const auto count = static_cast<double>(length), wanted = static_cast<double>(reference);
  switch (c.coordinates) {
    case PatchCoordinates::index: return {1.0, c.offset};
    case PatchCoordinates::scaled_to_reference: return {wanted / count, c.offset / count * wanted};
    case PatchCoordinates::centered: return {2.0 / count, 2.0 * ((0.5 + c.offset) / count) - 1.0};
    case PatchCoordinates::corners: return {length < 2 ? 0.0 : (wanted - 1.0) / (count - 1.0), 0.0};
    case PatchCoordinates::linspace: return {2.0 / (count - 1.0), -1.0};
    case PatchCoordinates::fraction: return {1.0 / count, 0.5 / count};
  }
  fail(kForm, "unknown coordinate rule ", static_cast<int>(c.coordinates));
}

void check_generators(std::span<const Tensor<double>> generators) {
  VIT_CHECK(!generators.empty() && generators.size() <= 3, kForm, generators.size(),
            " generators, expected those of x, y and time");
  const Shape& shape = generators.front().shape();
  VIT_CHECK(shape.rank() == 2 && shape[0] == shape[1] && shape[0] > 0 && shape[0] <= 4096, kForm,
            "a generator has shape ", shape.to_string(), ", expected (d, d)");
  for (const Tensor<double>& generator : generators) {
    VIT_CHECK(generator.shape() == shape, kForm, "generators have shapes ", shape.to_string(), " and ",
              generator.shape().to_string());
    for (std::size_t i = 0; i < shape[0]; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double a = generator.data()[i * shape[0] + j], b = generator.data()[j * shape[0] + i];
        VIT_CHECK(std::isfinite(a) && std::abs(a + b) <= 1e-12 * (1.0 + std::abs(a)), kForm, "element (", i,
                  ", ", j, ") of a generator is ", a, ", element (", j, ", ", i, ") ", b,
                  "; it must be skew-symmetric");
      }
    }
  }
}

void check_form(const RopeNormalForm& form) {
  const std::size_t count = form.frequencies.num_angles(), heads = form.frequencies.num_heads();
  const bool per_channel = form.angles == RopeAngles::per_channel;
  VIT_CHECK(count == (per_channel ? 2 : 1) * form.pairs.size(), kForm, count, " angles for ",
            form.pairs.size(), " pairs of channels");
  for (const ChannelPair& pair : form.pairs)
    VIT_CHECK(pair.p < form.head_dim && pair.q < form.head_dim, kForm, "a pair of channels ", pair.p, " and ",
              pair.q, " of ", form.head_dim);
  VIT_CHECK(form.phases.size() == count || form.phases.size() == heads * count, kForm, form.phases.size(),
            " phases for ", count, " angles of ", heads, " heads");
  VIT_CHECK(form.basis.empty() || form.basis.shape() == Shape({form.head_dim, form.head_dim}), kForm,
            "a basis ", form.basis.shape().to_string(), " for heads of ", form.head_dim, " channels");
}

double& component(FrequencyVector& w, std::size_t axis) {
  return axis == 0 ? w.x : axis == 1 ? w.y : w.t;
}

}  // namespace

RopeNormalForm normal_form(const RopeConvention& convention, GridSize grid, std::size_t head_dim,
                           std::size_t num_heads) {
  VIT_CHECK(convention.window == 0 || convention.coordinates == PatchCoordinates::index, kForm,
            "coordinates in windows are counted, not ", to_string(convention.coordinates));
  num_patches(grid);
  axis_coordinates(convention, grid);  // throws if there are none
  AffineAxis x = affine(convention, grid.columns, convention.reference.columns);
  AffineAxis y = affine(convention, grid.rows, convention.reference.rows);
  if (convention.keeps_aspect) {
    const double aspect = std::sqrt(static_cast<double>(grid.columns) / static_cast<double>(grid.rows));
    x = {x.scale * aspect, x.start * aspect};
    y = {y.scale / aspect, y.start / aspect};
  }
  const FrequencyVectors given = frequency_vectors(convention, head_dim, num_heads);
  std::vector<FrequencyVector> vectors;
  std::vector<double> phases;
  for (std::size_t head = 0; head < given.num_heads(); ++head) {
    for (const FrequencyVector& w : given.of(0, head)) {
      vectors.push_back({.x = w.x * x.scale, .y = w.y * y.scale, .t = w.t});
      phases.push_back(w.x * x.start + w.y * y.start);
    }
  }
  return {.head_dim = head_dim,
          .pairs = channel_pairs(convention, head_dim),
          .frequencies = FrequencyVectors(1, given.num_heads(), std::move(vectors)),
          .phases = std::move(phases),
          .angles = convention.angles,
          .window = convention.window,
          .basis = example_basis(convention, head_dim)};
}

RopeNormalForm normal_form_of(std::span<const Tensor<double>> generators) {
  check_generators(generators);
  const auto d = static_cast<Eigen::Index>(generators.front().dim(0));
  std::vector<Matrix> axes;
  // Planes of a combination without rational relations are planes of all.
  Matrix sum = Matrix::Zero(d, d);
  double factor = 1.0, largest = 0.0;
  for (const Tensor<double>& generator : generators) {
    axes.push_back(Eigen::Map<const Matrix>(generator.data(), d, d));
    sum += factor * axes.back();
    largest = std::max(largest, axes.back().cwiseAbs().maxCoeff());
    factor /= std::numbers::phi;
  }
  const Eigen::RealSchur<Matrix> schur(sum);
  VIT_CHECK(schur.info() == Eigen::Success, kForm, "the planes of the generators were not found");
  const Matrix planes = schur.matrixU();
  const double tolerance = 1e-9 * (largest + 1e-300) * static_cast<double>(d);
  std::vector<ChannelPair> pairs;
  for (Eigen::Index i = 0; i + 1 < d; ++i) {
    if (std::abs(schur.matrixT()(i + 1, i)) <= tolerance) continue;
    pairs.push_back({static_cast<std::size_t>(i), static_cast<std::size_t>(i) + 1});
    ++i;
  }
  VIT_CHECK(!pairs.empty(), kForm, "the generators rotate nothing");
  std::vector<FrequencyVector> vectors(pairs.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    Matrix rest = planes.transpose() * axes[axis] * planes;
    for (std::size_t j = 0; j < pairs.size(); ++j) {
      const auto p = static_cast<Eigen::Index>(pairs[j].p), q = p + 1;
      component(vectors[j], axis) = rest(q, p);
      rest(q, p) = rest(p, q) = 0.0;
    }
    VIT_CHECK(rest.cwiseAbs().maxCoeff() <= tolerance, kForm,
              "the generators do not commute: there are no planes that all of them rotate, so scores are no "
              "function of distances");
  }
  RopeNormalForm out{.head_dim = static_cast<std::size_t>(d),
                     .pairs = std::move(pairs),
                     .frequencies = FrequencyVectors(std::move(vectors)),
                     .phases = {},
                     .basis = Tensor<double>(generators.front().shape())};
  out.phases.assign(out.pairs.size(), 0.0);
  Eigen::Map<Matrix>(out.basis.data(), d, d) = planes.transpose();
  return out;
}

Tensor<double> normal_angles(const RopeNormalForm& form, GridSize grid, std::size_t num_frames,
                             std::size_t layer) {
  check_form(form);
  const std::size_t window = form.window;
  GridCoords coords = clip_coords(num_frames, grid);
  for (std::size_t i = 0; window != 0 && i < coords.size(); ++i) {
    coords.t_x[i] = std::fmod(coords.t_x[i], static_cast<double>(window));
    coords.t_y[i] = std::fmod(coords.t_y[i], static_cast<double>(window));
  }
  Tensor<double> angles = rope_angles(coords, form.frequencies, layer);
  const std::size_t count = form.frequencies.num_angles(), heads = form.frequencies.num_heads();
  for (std::size_t i = 0; i < angles.num_elements(); ++i) {
    const std::size_t head = heads == 1 ? 0 : i / (coords.size() * count);
    angles.data()[i] += form.phases[(head * count + i % count) % form.phases.size()];
  }
  return angles;
}

void rotate(TensorView<double> x, const RopeNormalForm& form, GridSize grid, std::size_t num_prefix,
            std::size_t num_frames, std::size_t layer) {
  VIT_CHECK(x.rank() == 4 && x.num_columns() == form.head_dim, kForm, "vectors ", x.shape().to_string(),
            " do not fit heads of ", form.head_dim, " channels");
  const Tensor<double> angles = normal_angles(form, grid, num_frames, layer);
  const std::size_t patches = angles.dim(angles.shape().rank() - 2), heads = form.frequencies.num_heads();
  VIT_CHECK(num_prefix <= x.dim(1) && x.dim(1) - num_prefix == patches && (heads == 1 || heads == x.dim(2)),
            kForm, "vectors ", x.shape().to_string(), " with a prefix of ", num_prefix, " do not fit ",
            patches, " patches and ", heads, " heads");
  if (!form.basis.empty()) change_basis(x, form.basis, BasisChange::into, num_prefix);
  rotate_pairs(x, angles, form.pairs, form.angles, num_prefix);
  if (!form.basis.empty()) change_basis(x, form.basis, BasisChange::back, num_prefix);
}

std::optional<RopeConvention> read_back(const RopeNormalForm& form, GridSize grid) {
  if (grid.columns < 2) return std::nullopt;
  bool has_frames = false;
  for (std::size_t head = 0; head < form.frequencies.num_heads(); ++head)
    for (const FrequencyVector& w : form.frequencies.of(0, head)) has_frames = has_frames || w.t != 0.0;
  const std::size_t frames = has_frames ? 3 : 1;
  const Tensor<double> angles = normal_angles(form, grid, frames);
  internal::RopeReading reading{.head_dim = form.head_dim,
                                .num_heads = form.frequencies.num_heads(),
                                .num_tokens = frames * grid.rows * grid.columns,
                                .num_columns = form.frequencies.num_angles(),
                                .factors = {}};
  for (const double angle : angles.flat()) reading.factors.push_back(std::polar(1.0, angle));
  if (form.angles == RopeAngles::per_channel) {
    reading.partition = internal::Partition::none;
  } else {
    constexpr PairLayout kLayouts[] = {PairLayout::neighbors, PairLayout::halves, PairLayout::halves_by_axis};
    const auto layout = std::ranges::find_if(kLayouts, [&](PairLayout each) {
      const std::size_t rotated = each == PairLayout::halves ? 2 * form.pairs.size() : form.head_dim;
      return rotated % (each == PairLayout::halves_by_axis ? 4 : 2) == 0 &&
             channel_pairs(each, rotated) == form.pairs;
    });
    if (layout == std::end(kLayouts)) return std::nullopt;
    reading.partition = internal::partition_of(*layout);
  }
  const internal::RopeIdentity found = internal::identify_rope(
      {&reading, 1}, {}, {.grid = grid, .num_prefix = 0, .has_basis = !form.basis.empty()});
  if (!found.choices) return std::nullopt;
  RopeConvention out = *found.choices;
  const RopeConvention unpublished;
  const RopeConvention& named = found.convention != nullptr ? *found.convention : unpublished;
  out.name = named.name;
  out.families = named.families;
  return out;
}

}  // namespace vit::position
