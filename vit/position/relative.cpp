#include "vit/position/tables.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::position {
using namespace internal;
namespace {

std::size_t clipped_row(std::size_t query, std::size_t key, std::size_t max_distance) {
  return key >= query ? max_distance + std::min(key - query, max_distance)
                      : max_distance - std::min(query - key, max_distance);
}

template <typename T>
void check_shapes(const TensorView<const T>& q, const TensorView<const T>& k, const TensorView<const T>& v,
                  const RelativeTables<T>& tables) {
  VIT_CHECK(q.rank() == 4 && q.num_elements() > 0 && k.shape() == q.shape() && v.shape() == q.shape() &&
                !q.empty() && !k.empty() && !v.empty(),
            "relative_attention", "q, k and v must be (B, H, L, d), found ", q.describe(), ", ", k.describe(),
            " and ", v.describe());
  const Shape& shape = tables.keys.shape();
  VIT_CHECK(shape.rank() == 2 && shape[0] % 2 == 1 && shape[1] == q.num_columns() &&
                tables.values.shape() == shape && !tables.keys.empty() && !tables.values.empty(),
            "relative_attention", "tables must be (2R + 1, ", q.num_columns(), ") to fit q ",
            q.shape().to_string(), ", found ", tables.keys.describe(), " and ", tables.values.describe());
}

// probabilities (L) = softmax of scale * q . (k_j + a^K_j)
template <typename T>
void attend_keys(const T* query, std::size_t i, const TensorView<const T>& keys,
                 const TensorView<const T>& table, double scale, std::vector<double>& probabilities) {
  const std::size_t max_distance = table.dim(0) / 2;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    const T* const key = keys.row(j);
    const T* const distance = table.row(clipped_row(i, j, max_distance));
    double score = 0.0;
    for (std::size_t c = 0; c < keys.num_columns(); ++c) {
      score +=
          static_cast<double>(query[c]) * (static_cast<double>(key[c]) + static_cast<double>(distance[c]));
    }
    probabilities[j] = scale * score;
  }
  const double largest = *std::max_element(probabilities.begin(), probabilities.end());
  double sum = 0.0;
  for (double& p : probabilities) sum += p = std::exp(p - largest);
  for (double& p : probabilities) p /= sum;
}

// out (d) = sum over j of p_j (v_j + a^V_j)
template <typename T>
void gather_values(const std::vector<double>& probabilities, std::size_t i, const TensorView<const T>& values,
                   const TensorView<const T>& table, std::vector<double>& out) {
  const std::size_t max_distance = table.dim(0) / 2;
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    const T* const value = values.row(j);
    const T* const distance = table.row(clipped_row(i, j, max_distance));
    for (std::size_t c = 0; c < out.size(); ++c) {
      out[c] += probabilities[j] * (static_cast<double>(value[c]) + static_cast<double>(distance[c]));
    }
  }
}

template <typename T>
void store(const std::vector<double>& values, T* out) {
  std::transform(values.begin(), values.end(), out, [](double value) { return static_cast<T>(value); });
}

}  // namespace

Tensor<std::size_t> relative_index(std::size_t num_tokens, std::size_t max_distance) {
  checked_mul(2, max_distance, "relative_index");
  Tensor<std::size_t> index(Shape{num_tokens, num_tokens});
  for (std::size_t i = 0; i < num_tokens; ++i) {
    for (std::size_t j = 0; j < num_tokens; ++j)
      index.data()[i * num_tokens + j] = clipped_row(i, j, max_distance);
  }
  return index;
}

template <typename T>
Tensor<T> nezha_table(std::size_t max_distance, std::size_t head_dim) {
  return sinusoidal_1d<T>(checked_add(checked_mul(2, max_distance, "nezha_table"), 1, "nezha_table"),
                          head_dim);
}

template <typename T>
RelativeAttentionResult<T> relative_attention(TensorView<const T> q, TensorView<const T> k,
                                              TensorView<const T> v, const RelativeTables<T>& tables,
                                              const RelativeAttentionOptions& options) {
  check_shapes(q, k, v, tables);
  VIT_CHECK(std::isfinite(options.scale), "relative_attention", "a scale of ", options.scale);
  const std::size_t num_heads = q.dim(1);
  const std::size_t num_tokens = q.dim(2);
  const std::size_t head_dim = q.dim(3);
  const double scale = options.scale != 0.0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
  RelativeAttentionResult<T> result{Tensor<T>(q.shape()),
                                    Tensor<T>(Shape{q.dim(0), num_heads, num_tokens, num_tokens})};
  parallel_for(q.dim(0) * num_heads, options.threads, [&](std::size_t task, int) {
    const std::size_t b = task / num_heads;
    const std::size_t h = task % num_heads;
    std::vector<double> probabilities(num_tokens);
    std::vector<double> sum(head_dim);
    for (std::size_t i = 0; i < num_tokens; ++i) {
      attend_keys(q[b][h].row(i), i, k[b][h], tables.keys, scale, probabilities);
      gather_values(probabilities, i, v[b][h], tables.values, sum);
      store(probabilities, result.probabilities.view()[b][h].row(i));
      store(sum, result.out.view()[b][h].row(i));
    }
  });
  return result;
}

template Tensor<float> nezha_table<float>(std::size_t, std::size_t);
template Tensor<double> nezha_table<double>(std::size_t, std::size_t);
template RelativeAttentionResult<float> relative_attention(TensorView<const float>, TensorView<const float>,
                                                           TensorView<const float>,
                                                           const RelativeTables<float>&,
                                                           const RelativeAttentionOptions&);
template RelativeAttentionResult<double> relative_attention(TensorView<const double>,
                                                            TensorView<const double>,
                                                            TensorView<const double>,
                                                            const RelativeTables<double>&,
                                                            const RelativeAttentionOptions&);

}  // namespace vit::position
