// Position encodings of the C interface, and the steps of a model around them.
#include "vit/c.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>
#include <vector>

#include "vit/attention.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/c/guard.h"
#include "vit/c_positions.h"
#include "vit/patchify.h"
#include "vit/position/rope.h"
#include "vit/position/rope_scaling.h"
#include "vit/position/tables.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::position;

struct vit_rope_table {
  std::variant<RopeTable<float>, RopeTable<double>> table;
};

namespace {

/// A shape of four sizes that the caller gives, none of them 0, whose numbers fit memory.
Shape four_sizes(const size_t* shape) {
  const Shape sizes(std::span<const std::size_t>(span_of(shape, 4, "shape")));
  const std::size_t count = sizes.num_elements();
  VIT_CHECK(count != 0, kCall, "a shape of ", sizes.to_string(), " has no numbers");
  return sizes;
}

/// Numbers of the caller as (B, L, heads * d) of a shape (B, L, heads, d).
TensorView<const float> heads_of(const float* numbers, const Shape& shape, const char* name) {
  const std::size_t width = Shape{shape[2], shape[3]}.num_elements();
  return {&object_at(numbers, name), {shape[0], shape[1], width}};
}

/// Options with all numbers checked.
struct RopeChoices {
  CoordinateOptions coordinates;
  AxisOrder axis_order;
  RopePairing pairing;
  bool is_double;
};

bool is_double(int32_t dtype) {
  VIT_CHECK(dtype == VIT_FLOAT32 || dtype == VIT_FLOAT64, kCall, "dtype is ", dtype,
            ", expected VIT_FLOAT32 or VIT_FLOAT64");
  return dtype == VIT_FLOAT64;
}

RopeChoices choices_of(const vit_rope_options* given) {
  const vit_rope_options options = options_of(given, "vit_rope_options");
  VIT_CHECK(options.reserved == 0, kCall, "reserved is ", options.reserved, ", expected 0");
  return {
      .coordinates = {.rule = enum_of(options.coordinates, CoordinateRule::centered, "coordinates"),
                      .offset = options.offset,
                      .reference = {options.reference_rows, options.reference_columns},
                      .centered_by = enum_of(options.centered_by, CenteredBy::longer_side, "centered_by")},
      .axis_order = enum_of(options.axis_order, AxisOrder::y_then_x, "axis_order"),
      .pairing = enum_of(options.pairing, RopePairing::halves, "pairing"),
      .is_double = is_double(options.dtype)};
}

RopeFrequencies frequencies_of(const double* frequencies, size_t count) {
  const std::span<const double> values = span_of(frequencies, count, "frequencies");
  return RopeFrequencies({values.begin(), values.end()});
}

/// Shapes of more than four dimensions are refused before they are read.
Shape shape_of(const size_t* shape, uint32_t ndim) {
  VIT_CHECK(ndim <= Shape::kMaxRank, kCall, "at most ", Shape::kMaxRank, " dimensions, got ", ndim);
  const Shape sizes(std::span<const std::size_t>(span_of(shape, ndim, "shape")));
  sizes.num_elements();  // throws if no memory has as many
  return sizes;
}

vit_rope_table* make_table(const Tensor<double>& angles, const RopeChoices& choices) {
  if (choices.is_double) return new vit_rope_table{RopeTable<double>(angles, choices.pairing)};
  return new vit_rope_table{RopeTable<float>(angles, choices.pairing)};
}

template <typename T>
Tensor<T> sinusoidal(int32_t layout, GridSize grid, size_t dim, double base) {
  switch (layout) {
    case VIT_SINUSOIDAL_LINE:
      VIT_CHECK(grid.columns == 1, kCall, "columns is ", grid.columns, ", expected 1 for a line of tokens");
      return sinusoidal_1d<T>(grid.rows, dim, base);
    case VIT_SINUSOIDAL_GRID: return sinusoidal_2d<T>(grid, dim, base);
    case VIT_SINUSOIDAL_QUARTERS: return sinusoidal_2d_quarters<T>(grid, dim, base);
    default: fail(kCall, "layout is ", layout, ", an undefined number");
  }
}

template <typename T>
void write_sinusoidal(int32_t layout, GridSize grid, size_t dim, double base, void* out) {
  const Tensor<T> rows = sinusoidal<T>(layout, grid, dim, base);
  std::ranges::copy(rows.flat(), &object_at(static_cast<T*>(out), "out"));
}

/// Numbers of the caller as rows of a table.
template <typename T>
TensorView<T> rows_of(T* numbers, size_t rows, size_t dim, const char* name) {
  const Shape shape{rows, dim};
  VIT_CHECK(shape.num_elements() != 0, kCall, name, " has the shape ", shape.to_string());
  return {span_of(numbers, shape.num_elements(), name).data(), shape};
}

/// Of a table with a row for each distance.
size_t num_distances(size_t max_distance) {
  return checked_mul(2, max_distance, kCall) + 1;
}

}  // namespace

vit_status vit_grid_coordinates(size_t rows, size_t columns, const vit_rope_options* options, double* t_x,
                                double* t_y) {
  return guarded([&] {
    const GridCoords coords = grid_coords({rows, columns}, choices_of(options).coordinates);
    std::ranges::copy(coords.t_x, &object_at(t_x, "t_x"));
    std::ranges::copy(coords.t_y, &object_at(t_y, "t_y"));
  });
}

vit_status vit_rope_frequencies(int32_t rule, size_t count, double a, double b, double* frequencies) {
  return guarded([&] {
    double& out = object_at(frequencies, "frequencies");
    const auto write = [&](const RopeFrequencies& found) { std::ranges::copy(found.values(), &out); };
    switch (rule) {
      case VIT_FREQUENCIES_THETA: return write(RopeFrequencies::from_theta(count, a));
      case VIT_FREQUENCIES_EXP_PI: return write(RopeFrequencies::exp_pi(count));
      case VIT_FREQUENCIES_PERIODS:
        return write(RopeFrequencies::from_period_range(count, {.shortest = a, .longest = b}));
      case VIT_FREQUENCIES_PIXELS: return write(RopeFrequencies::pixel_bands(count, a));
      default: fail(kCall, "rule is ", rule, ", an undefined number");
    }
  });
}

vit_status vit_rope_axial(size_t rows, size_t columns, const double* frequencies, size_t count,
                          const vit_rope_options* options, vit_rope_table** table) {
  return guarded([&] {
    vit_rope_table*& out = object_at(table, "table");
    const RopeChoices choices = choices_of(options);
    out = make_table(axial_angles(grid_coords({rows, columns}, choices.coordinates),
                                  frequencies_of(frequencies, count), choices.axis_order),
                     choices);
  });
}

vit_status vit_rope_mixed(size_t rows, size_t columns, const double* frequencies, size_t depth,
                          size_t num_heads, size_t num_pairs, size_t layer, const vit_rope_options* options,
                          vit_rope_table** table) {
  return guarded([&] {
    vit_rope_table*& out = object_at(table, "table");
    const RopeChoices choices = choices_of(options);
    VIT_CHECK(layer < depth, kCall, "layer ", layer, " of ", depth);
    const MixedFrequencies learned(
        TensorView<const double>(&object_at(frequencies, "frequencies"), {2, depth, num_heads, num_pairs}));
    out = make_table(
        mixed_angles(grid_coords({rows, columns}, choices.coordinates), learned, layer, choices.axis_order),
        choices);
  });
}

vit_status vit_rope_line(const double* positions, size_t num_positions, const double* frequencies,
                         size_t count, const vit_rope_options* options, vit_rope_table** table) {
  return guarded([&] {
    vit_rope_table*& out = object_at(table, "table");
    out = make_table(
        angles_1d(span_of(positions, num_positions, "positions"), frequencies_of(frequencies, count)),
        choices_of(options));
  });
}

void vit_rope_table_free(vit_rope_table* table) {
  delete table;
}

vit_status vit_rope_table_get(const vit_rope_table* table, vit_array* cos, vit_array* sin) {
  return guarded([&] {
    std::visit(
        [&](const auto& known) {
          object_at(cos, "cos") = array_of(known.cos());
          object_at(sin, "sin") = array_of(known.sin());
        },
        object_at(table, "table").table);
  });
}

vit_status vit_rope_rotate(const vit_rope_table* table, void* x, const size_t* shape, uint32_t ndim,
                           size_t num_prefix_tokens) {
  return guarded([&] {
    const vit_rope_table& known = object_at(table, "table");
    const Shape sizes = shape_of(shape, ndim);
    if (const auto* const floats = std::get_if<RopeTable<float>>(&known.table)) {
      rotate(TensorView<float>(&object_at(static_cast<float*>(x), "x"), sizes), *floats, num_prefix_tokens);
    } else {
      rotate(TensorView<double>(&object_at(static_cast<double*>(x), "x"), sizes),
             std::get<RopeTable<double>>(known.table), num_prefix_tokens);
    }
  });
}

vit_status vit_patchify(const float* pixels, const size_t* shape, size_t patch_size, int32_t threads,
                        float* patches) {
  return guarded([&] {
    const TensorView<const float> in(&object_at(pixels, "pixels"), four_sizes(shape));
    VIT_CHECK(patch_size != 0 && patch_size <= in.dim(2) && patch_size <= in.dim(3), kCall, "patch_size is ",
              patch_size, " for pixels of ", in.dim(2), " x ", in.dim(3));
    const Shape out{in.dim(0), (in.dim(2) / patch_size) * (in.dim(3) / patch_size),
                    in.dim(1) * patch_size * patch_size};
    patchify(in, patch_size, TensorView<float>(&object_at(patches, "patches"), out), threads);
  });
}

vit_status vit_attention(const float* q, const float* k, const float* v, const size_t* shape,
                         const vit_rope_table* table, const vit_attention_options* options, float* out) {
  return guarded([&] {
    const vit_attention_options chosen = options_of(options, "vit_attention_options");
    const Shape sizes = four_sizes(shape);
    const std::size_t heads = sizes[2];
    VIT_CHECK(chosen.num_heads == 0 || chosen.num_heads == heads, kCall, "num_heads is ", chosen.num_heads,
              " for a shape of ", sizes.to_string());
    const std::size_t key_heads = chosen.num_key_heads != 0 ? chosen.num_key_heads : heads;
    const Shape keys{sizes[0], sizes[1], key_heads, sizes[3]};
    RopeFactors factors;
    if (table != nullptr) {
      const auto* const floats = std::get_if<RopeTable<float>>(&table->table);
      VIT_CHECK(floats != nullptr, kCall, "the table has the dtype VIT_FLOAT64, expected VIT_FLOAT32");
      factors = *floats;
    }
    const TensorView<const float> queries = heads_of(q, sizes, "q");
    Workspace memory;
    attention(
        queries, heads_of(k, keys, "k"), heads_of(v, keys, "v"), factors, chosen.num_prefix_tokens,
        TensorView<float>(&object_at(out, "out"), queries.shape()), memory,
        {.num_heads = heads, .scale = chosen.scale, .causal = chosen.causal != 0, .threads = chosen.threads});
  });
}

vit_status vit_sinusoidal(int32_t layout, size_t rows, size_t columns, size_t dim, double base, int32_t dtype,
                          void* out) {
  return guarded([&] {
    if (is_double(dtype)) {
      write_sinusoidal<double>(layout, {rows, columns}, dim, base, out);
    } else {
      write_sinusoidal<float>(layout, {rows, columns}, dim, base, out);
    }
  });
}

vit_status vit_rope_axial_scaled(size_t rows, size_t columns, size_t trained_rows, size_t trained_columns,
                                 const char* scaling, const double* frequencies, size_t count,
                                 const vit_rope_options* options, double* logit_factor,
                                 vit_rope_table** table) {
  return guarded([&] {
    vit_rope_table*& out = object_at(table, "table");
    const RopeChoices choices = choices_of(options);
    const GridSize grid{rows, columns}, trained{trained_rows, trained_columns};
    num_patches(grid);
    const RopeFrequencies known = frequencies_of(frequencies, count);
    const RopeScaling rule = scaling == nullptr
                                 ? RopeScaling{.rule = default_scaling_rule(choices.coordinates.rule)}
                                 : parse_rope_scaling(scaling);
    const GridScale scale = grid_scale(grid, trained, choices.coordinates, rule);
    const double factor = position::logit_factor(rule, scale, grid, trained);
    const Tensor<double> angles = axial_angles(extrapolated_coords(grid, trained, choices.coordinates),
                                               scale_frequencies(known, rule, scale.x),
                                               scale_frequencies(known, rule, scale.y), choices.axis_order);
    out = make_table(angles, choices);
    if (logit_factor != nullptr) *logit_factor = factor;
  });
}

vit_status vit_resample_table(const float* table, size_t num_prefix_rows, size_t from_rows,
                              size_t from_columns, size_t dim, size_t rows, size_t columns,
                              int32_t resampling, float* out) {
  return guarded([&] {
    const GridSize from{from_rows, from_columns}, to{rows, columns};
    const auto rows_on = [&](GridSize grid) {
      return checked_add(num_prefix_rows, num_patches(grid), kCall);
    };
    const TensorView<float> wanted = rows_of(out, rows_on(to), dim, "out");
    const Tensor<float> resampled =
        resample_table(rows_of(table, rows_on(from), dim, "table"), num_prefix_rows, from, to,
                       enum_of(resampling, TableResampling::bilinear_zeros, "resampling"));
    std::ranges::copy(resampled.flat(), wanted.data());
  });
}

vit_status vit_relative_attention(const double* q, const double* k, const double* v, const size_t* shape,
                                  const double* keys, const double* values, size_t max_distance,
                                  const vit_relative_options* options, double* out, double* probabilities) {
  return guarded([&] {
    const vit_relative_options known = options_of(options, "vit_relative_options");
    VIT_CHECK(known.reserved == 0, kCall, "reserved is ", known.reserved, ", expected 0");
    VIT_CHECK(known.scale >= 0.0 && std::isfinite(known.scale), kCall, "scale is ", known.scale);
    resolve_threads(known.threads);  // refuses what is out of range
    const Shape sizes = four_sizes(shape);
    const size_t distances = num_distances(max_distance);
    const auto vectors = [&](const double* numbers, const char* name) {
      return TensorView<const double>(span_of(numbers, sizes.num_elements(), name).data(), sizes);
    };
    double& first = object_at(out, "out");
    const RelativeAttentionResult<double> found =
        relative_attention<double>(vectors(q, "q"), vectors(k, "k"), vectors(v, "v"),
                                   {.keys = rows_of(keys, distances, sizes[3], "keys"),
                                    .values = rows_of(values, distances, sizes[3], "values")},
                                   {.scale = known.scale, .threads = known.threads});
    std::ranges::copy(found.out.flat(), &first);
    if (probabilities != nullptr) std::ranges::copy(found.probabilities.flat(), probabilities);
  });
}

vit_status vit_nezha_rows(size_t max_distance, size_t dim, double* out) {
  return guarded([&] {
    const TensorView<double> wanted = rows_of(out, num_distances(max_distance), dim, "out");
    std::ranges::copy(nezha_table<double>(max_distance, dim).flat(), wanted.data());
  });
}
