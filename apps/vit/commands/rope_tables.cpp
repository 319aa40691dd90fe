// vit rope --output and --png: the tables of a convention, and a picture of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/rope.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/outputs/zip_writer.h"
#include "vit/base/check.h"
#include "vit/io/safetensors.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope.h"

namespace vit::app {
using namespace internal;
using namespace position;
namespace {

constexpr std::size_t kMaxNumbers = std::size_t{1} << 26;  // of one table
constexpr std::size_t kMaxScored = 8192;                   // tokens
constexpr std::size_t kHeads = 2;                          // of vectors, and of tables if heads differ

struct NamedArray {
  std::string name;
  Tensor<double> values;
};

void refuse_with_family(const RopeOptions& o) {
  const std::pair<const char*, bool> given[] = {{"--coordinates", o.coordinates.has_value()},
                                                {"--offset", o.offset.has_value()},
                                                {"--order", o.order.has_value()},
                                                {"--pairing", o.channels.has_value()},
                                                {"--frequencies", o.rule.has_value()},
                                                {"--theta", o.theta.has_value()},
                                                {"--periods", o.periods.has_value()},
                                                {"--max-frequency", o.max_frequency.has_value()},
                                                {"--factor", o.factor.has_value()}};
  for (const auto& [name, is_given] : given)
    if (is_given) fail_usage(name, " is a choice in place of --family");
}

/// The family, or the choices in its place.
RopeConvention convention_of(const RopeOptions& o) {
  RopeConvention c;
  if (!o.family.empty()) {
    refuse_with_family(o);
    c = known_convention("--family", o.family);
    if (o.reference && !c.is_reference_native)
      fail_usage(
          "--reference: only Perception Encoder of timm and V-JEPA 2.1 have one for each model; give the "
          "choices in place of --family");
    if (o.reference) c.reference = *o.reference;
    return c;
  }
  c.coordinates = o.coordinates.value_or(PatchCoordinates::index);
  c.offset = o.offset.value_or(0.0);
  c.order = o.order.value_or(AxisOrder::x_then_y);
  c.channels = o.channels.value_or(PairLayout::neighbors);
  c.rule = o.rule.value_or(FrequencyRule::theta);
  c.theta = o.theta.value_or(10000.0);
  c.factor = o.factor.value_or(1.0);
  const bool scaled =
      c.coordinates == PatchCoordinates::scaled_to_reference || c.coordinates == PatchCoordinates::corners;
  if (scaled != o.reference.has_value())
    fail_usage("--coordinates scaled or corners and --reference HxW require each other");
  const bool is_counted = c.coordinates == PatchCoordinates::index ||
                          c.coordinates == PatchCoordinates::centered ||
                          c.coordinates == PatchCoordinates::scaled_to_reference;
  if (!is_counted && c.offset != 0.0)
    fail_usage("--offset: coordinates by ", to_string(c.coordinates), " have none");
  if (scaled) c.reference = *o.reference;
  if ((c.rule == FrequencyRule::periods) != o.periods.has_value())
    fail_usage("--frequencies periods and --periods SHORTEST,LONGEST require each other");
  if (o.periods) c.periods = *o.periods;
  if ((c.rule == FrequencyRule::pixel) != o.max_frequency.has_value())
    fail_usage("--frequencies pixel and --max-frequency M require each other");
  if (o.max_frequency) c.max_frequency = *o.max_frequency;
  if (o.theta && c.rule != FrequencyRule::theta) fail_usage("--theta is for --frequencies theta");
  return c;
}

/// Multiples of 1/1024 in [-2, 2), which every precision of 11 bits holds: the same on all machines.
Tensor<double> random_vectors(const Shape& shape, std::uint64_t seed) {
  Tensor<double> out(shape);
  for (double& value : out.flat()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<double>(static_cast<std::int64_t>(seed >> 52) - 2048) / 1024.0;
  }
  return out;
}

Tensor<double> copy_of(TensorView<const double> values) {
  Tensor<double> out(values.shape());
  std::ranges::copy(values.flat(), out.data());
  return out;
}

/// (H, T, T) products of all queries and keys (1, T, H, d).
Tensor<double> scores_of(TensorView<const double> q, TensorView<const double> k) {
  const std::size_t tokens = q.dim(1), heads = q.dim(2), d = q.num_columns();
  Tensor<double> out(Shape{heads, tokens, tokens});
  double* score = out.data();
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t i = 0; i < tokens; ++i) {
      for (std::size_t j = 0; j < tokens; ++j, ++score) {
        const double *const a = q.row(i * heads + head), *const b = k.row(j * heads + head);
        for (std::size_t c = 0; c < d; ++c) *score += a[c] * b[c];
      }
    }
  }
  return out;
}

void add_vectors(std::vector<NamedArray>& out, const RopeConvention& c, const RopeOptions& o,
                 TensorView<const double> angles, const Tensor<double>& basis) {
  const std::size_t head_dim = o.head_dim, prefix = o.num_prefix.value_or(0);
  const std::size_t heads = o.num_heads.value_or(kHeads);
  const std::size_t patches = angles.dim(angles.rank() - 2), tokens = prefix + patches;
  if (tokens > kMaxScored)
    fail_usage("--vectors: at most ", kMaxScored, " tokens have scores, found ", tokens);
  const std::vector<ChannelPair> pairs = channel_pairs(c, head_dim);
  Tensor<double> class_angles;
  if (c.class_angles && prefix > 0) {  // in place of learned ones
    class_angles = random_vectors(Shape{1, head_dim / 2}, 3);
  }
  std::vector<Tensor<double>> rotated;
  for (const std::uint64_t seed : {1u, 2u}) {
    Tensor<double> before = random_vectors(Shape{1, tokens, heads, head_dim}, seed);
    Tensor<double> after = copy_of(before);
    if (!basis.empty()) change_basis(after, basis, BasisChange::into, prefix);
    rotate_pairs(after, angles, pairs, c.angles, prefix);
    if (!basis.empty()) change_basis(after, basis, BasisChange::back, prefix);
    if (!class_angles.empty()) {
      const TensorView<double> first(after.data(), Shape{1, 1, heads, head_dim});
      rotate_pairs(first, class_angles, pairs, RopeAngles::per_pair);
    }
    out.push_back({seed == 1 ? "q" : "k", std::move(before)});
    rotated.push_back(std::move(after));
  }
  Tensor<double> scores = scores_of(rotated[0], rotated[1]);
  out.push_back({"q_rotated", std::move(rotated[0])});
  out.push_back({"k_rotated", std::move(rotated[1])});
  out.push_back({"scores", std::move(scores)});
  if (!class_angles.empty()) out.push_back({"class_angles", std::move(class_angles)});
}

Tensor<double> coordinate_rows(const GridCoords& coords, bool has_time) {
  Tensor<double> out(Shape{coords.size(), has_time ? 3u : 2u});
  double* row = out.data();
  for (std::size_t i = 0; i < coords.size(); ++i) {
    *row++ = coords.t_x[i];
    *row++ = coords.t_y[i];
    if (has_time) *row++ = coords.t_t[i];
  }
  return out;
}

std::vector<NamedArray> tables_of(const RopeConvention& c, const RopeOptions& o) {
  const GridCoords coords = coordinates(c, *o.grid, o.num_frames);
  const FrequencyVectors frequencies = frequency_vectors(c, o.head_dim, o.num_heads.value_or(kHeads));
  Tensor<double> angles = rope_angles(coords, frequencies);
  Tensor<double> basis = example_basis(c, o.head_dim);
  Tensor<double> cos = copy_of(angles), sin = copy_of(angles);
  for (double& value : cos.flat()) value = std::cos(value);
  for (double& value : sin.flat()) value = std::sin(value);
  std::vector<NamedArray> out;
  out.push_back({"coords", coordinate_rows(coords, o.num_frames > 1)});
  if (o.vectors) add_vectors(out, c, o, angles, basis);
  if (!basis.empty()) out.push_back({"basis", std::move(basis)});
  out.push_back({"angles", std::move(angles)});
  out.push_back({"cos", std::move(cos)});
  out.push_back({"sin", std::move(sin)});
  return out;
}

std::vector<std::size_t> sizes_of(const Shape& shape) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

void write_arrays(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                  const RopeConvention& c) {
  if (path.extension() == ".safetensors") {
    std::vector<TensorToWrite> tensors;
    for (const NamedArray& array : arrays) {
      tensors.push_back({.name = array.name,
                         .dtype = Dtype::f64,
                         .shape = sizes_of(array.values.shape()),
                         .bytes = std::as_bytes(array.values.flat())});
    }
    std::map<std::string, std::string> metadata{{"pairing", std::string(to_string(c.channels))},
                                                {"formula", formula(c)}};
    if (!c.name.empty()) metadata["convention"] = c.name;
    return write_safetensors(path, tensors, metadata);
  }
  AtomicFile file(path, "write");
  ZipWriter archive(file);
  for (const NamedArray& array : arrays) {
    const std::string header = npy_header("<f8", sizes_of(array.values.shape()));
    archive.add(array.name + ".npy",
                std::array{std::as_bytes(std::span(header)), std::as_bytes(array.values.flat())});
  }
  archive.finish();
  file.commit();
}

void check_sizes(const RopeConvention& c, const RopeOptions& o) {
  if (!o.grid) fail_usage("--grid HxW is required");
  if (o.head_dim == 0) fail_usage("--head-dim D is required");
  const HeadSizes sizes = head_sizes(c);
  if (!sizes.contain(o.head_dim))
    fail_usage("--head-dim: expected a multiple of ", sizes.step, " from ", sizes.smallest, " on, found ",
               o.head_dim);
  if (o.num_frames > 1 && !has_time(c)) fail_usage("--frames: this convention has no axis of time");
  if (c.kind == ConventionKind::line && o.grid->rows != 1)
    fail_usage("--grid: positions of a sequence are a grid of one row, 1xN, found ", o.grid->rows, " rows");
  const bool has_ends =
      c.coordinates == PatchCoordinates::corners || c.coordinates == PatchCoordinates::linspace;
  if (has_ends && std::min(o.grid->rows, o.grid->columns) < 2)
    fail_usage("--grid: coordinates from corner to corner require at least 2 rows and columns");
  if (o.num_heads && !o.vectors && !has_heads(c))
    fail_usage("--heads: all heads of this convention have the same tables");
  const std::size_t heads = has_heads(c) || o.vectors ? o.num_heads.value_or(kHeads) : 1;
  const std::size_t patches = o.grid->rows * o.grid->columns;
  if (patches > kMaxNumbers / o.head_dim / o.num_frames / heads)
    fail_usage("--grid: at most ", kMaxNumbers, " numbers a table, found ", patches, " patches of ",
               o.num_frames, " frames, ", heads, " heads and ", o.head_dim, " channels");
}

}  // namespace

int write_rope_tables(const RopeOptions& options) {
  if (options.output.empty() && options.png.empty())
    fail_usage("one of --list, --output FILE, --png FILE and identify FILE is required");
  const std::string extension = options.output.extension().string();
  if (!options.output.empty() && extension != ".safetensors" && extension != ".npz")
    fail_usage("--output: expected a name that ends in .safetensors or .npz, found '",
               options.output.string(), "'");
  if (!options.png.empty() && options.png.extension() != ".png")
    fail_usage("--png: expected a name that ends in .png, found '", options.png.string(), "'");
  const RopeConvention convention = convention_of(options);
  check_sizes(convention, options);
  if (options.num_prefix && !options.vectors)
    print_failure("", "--prefix is for --vectors: tables are of patches");
  const std::vector<NamedArray> arrays = tables_of(convention, options);
  if (!options.output.empty()) {
    check_output_place(options.output);
    write_arrays(options.output, arrays, convention);
  }
  if (!options.png.empty()) {
    check_output_place(options.png);
    const auto angles = std::ranges::find(arrays, "angles", &NamedArray::name);
    draw_rope_angles(options.png, angles->values, *options.grid);
  }
  return 0;
}

void draw_rope_angles(const std::filesystem::path& path, TensorView<const double> angles, GridSize grid) {
  constexpr std::size_t kColumns = 8, kGap = 4, kWanted = 96, kMaxPixels = 1u << 26;
  const std::size_t count = angles.num_columns(), columns = std::min(count, kColumns);
  const std::size_t rows = (count + columns - 1) / columns;
  const std::size_t scale = std::max<std::size_t>(1, kWanted / std::max(grid.rows, grid.columns));
  const std::size_t height = rows * (grid.rows * scale + kGap) + kGap;
  const std::size_t width = columns * (grid.columns * scale + kGap) + kGap;
  VIT_CHECK(height <= kMaxPixels / width, "rope", "a picture of ", height, " x ", width,
            " pixels is too large; choose a smaller --grid");
  const ColorMap colors = color_map("Spectral");
  Image image(height, width);
  std::fill_n(image.data(), height * image.row_stride(), std::uint8_t{255});
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t top = kGap + j / columns * (grid.rows * scale + kGap);
    const std::size_t left = kGap + j % columns * (grid.columns * scale + kGap);
    for (std::size_t y = 0; y < grid.rows * scale; ++y) {
      for (std::size_t x = 0; x < grid.columns * scale; ++x) {
        const double cos = std::cos(angles.row(y / scale * grid.columns + x / scale)[j]);
        const Color& color = colors[static_cast<std::size_t>(std::lround((cos + 1.0) * 127.5))];
        std::ranges::copy(color, image.row(top + y) + 3 * (left + x));
      }
    }
  }
  write_png(path, image);
}

}  // namespace vit::app
