#include "vit/position/tables.h"

#include <cmath>

#include "vit/position/rope.h"

namespace vit::position {
namespace {

// out has 2 * frequencies.size() channels.
template <typename T>
void write_row(double position, const RopeFrequencies& frequencies, T* out) {
  for (const double frequency : frequencies.values()) {
    *out++ = static_cast<T>(std::sin(position * frequency));
    *out++ = static_cast<T>(std::cos(position * frequency));
  }
}

}  // namespace

template <typename T>
Tensor<T> sinusoidal_1d(std::size_t length, std::size_t dim, double base) {
  const RopeFrequencies frequencies = RopeFrequencies::from_theta(num_frequencies_1d(dim), base);
  const std::vector<double> positions = coords_1d(length);
  Tensor<T> rows(Shape{length, dim});
  for (std::size_t t = 0; t < length; ++t) write_row(positions[t], frequencies, rows.data() + t * dim);
  return rows;
}

template <typename T>
Tensor<T> sinusoidal_2d(GridSize grid, std::size_t dim, double base) {
  const RopeFrequencies frequencies = RopeFrequencies::from_theta(num_axial_frequencies(dim), base);
  const GridCoords coords = grid_coords(grid);
  Tensor<T> rows(Shape{coords.size(), dim});
  for (std::size_t t = 0; t < coords.size(); ++t) {
    write_row(coords.t_x[t], frequencies, rows.data() + t * dim);
    write_row(coords.t_y[t], frequencies, rows.data() + t * dim + dim / 2);
  }
  return rows;
}

template <typename T>
Tensor<T> sinusoidal_2d_quarters(GridSize grid, std::size_t dim, double base) {
  const std::size_t quarter = num_axial_frequencies(dim);
  const RopeFrequencies frequencies =
      RopeFrequencies::from_period_range(quarter, {.shortest = 1.0, .longest = base});
  const GridCoords coords = grid_coords(grid);
  Tensor<T> rows(Shape{coords.size(), dim});
  for (std::size_t t = 0; t < coords.size(); ++t) {
    T* const out = rows.data() + t * dim;
    for (std::size_t k = 0; k < quarter; ++k) {
      const double x = coords.t_x[t] * frequencies[k], y = coords.t_y[t] * frequencies[k];
      out[k] = static_cast<T>(std::sin(x));
      out[quarter + k] = static_cast<T>(std::cos(x));
      out[2 * quarter + k] = static_cast<T>(std::sin(y));
      out[3 * quarter + k] = static_cast<T>(std::cos(y));
    }
  }
  return rows;
}

template Tensor<float> sinusoidal_1d<float>(std::size_t, std::size_t, double);
template Tensor<double> sinusoidal_1d<double>(std::size_t, std::size_t, double);
template Tensor<float> sinusoidal_2d<float>(GridSize, std::size_t, double);
template Tensor<double> sinusoidal_2d<double>(GridSize, std::size_t, double);
template Tensor<float> sinusoidal_2d_quarters<float>(GridSize, std::size_t, double);
template Tensor<double> sinusoidal_2d_quarters<double>(GridSize, std::size_t, double);

}  // namespace vit::position
