// Filters and their tables. Sources: Pillow src/libImaging/Resample.c and Geometry.c, PyTorch
// UpSampleKernel.cpp.
#include "vit/image/resample_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/interpolation.h"
#include "vit/image/resize_limits.h"

namespace vit::internal {

namespace {

constexpr double kPi = std::numbers::pi;

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= kPi;
  return std::sin(x) / x;
}

double box(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

// Pillow writes the two constants as floats.
double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= kPi;
  return std::sin(x) / x * (static_cast<double>(0.54f) + static_cast<double>(0.46f) * std::cos(x));
}

double lanczos(double x) {
  return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

template <typename Number>
Number bilinear(Number x) {
  x = std::abs(x);
  return x < Number(1) ? Number(1) - x : Number(0);
}

template <typename Number>
Number bicubic(Number x) {
  constexpr Number a = Number(-0.5);
  x = std::abs(x);
  if (x < Number(1)) return ((a + Number(2)) * x - (a + Number(3))) * x * x + Number(1);
  if (x < Number(2)) return (((x - Number(5)) * x + Number(8)) * x - Number(4)) * a;
  return Number(0);
}

struct FilterShape {
  double (*weight)(double) = nullptr;
  double radius = 0.0;
};

FilterShape filter_shape(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::lanczos: return {lanczos, 3.0};
    case ResizeFilter::bilinear: return {bilinear<double>, 1.0};
    case ResizeFilter::bicubic: return {bicubic<double>, 2.0};
    case ResizeFilter::box: return {box, 0.5};
    case ResizeFilter::hamming: return {hamming, 1.0};
    case ResizeFilter::nearest:
    case ResizeFilter::opencv_cubic:
    case ResizeFilter::blurred_bilinear:
    case ResizeFilter::near_bilinear: break;
  }
  fail(kResize, "filter nearest has no weights");
}

/// Inputs and normalized weights of one output, in double.
class AxisWeights {
 public:
  AxisWeights(const AxisSpan& span, const FilterShape& shape)
      : shape_(shape), in_(static_cast<double>(span.in)) {
    scale_ = in_ / static_cast<double>(span.out);
    filter_scale_ = std::max(scale_, 1.0);
    support_ = shape.radius * filter_scale_;
  }

  void compute(std::size_t output) {
    const double center = (static_cast<double>(output) + 0.5) * scale_;
    const double inverse = 1.0 / filter_scale_;
    const double low = std::max(std::trunc(center - support_ + 0.5), 0.0);
    const double high = std::min(std::trunc(center + support_ + 0.5), in_);
    first = static_cast<std::size_t>(low);
    weights.resize(static_cast<std::size_t>(std::max(high - low, 0.0)));
    double sum = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      weights[j] = shape_.weight((static_cast<double>(j) + low - center + 0.5) * inverse);
      sum += weights[j];
    }
    if (sum == 0.0) return;
    for (double& weight : weights) weight /= sum;
  }

  std::size_t first = 0;
  std::vector<double> weights;

 private:
  FilterShape shape_;
  double in_ = 0.0;
  double scale_ = 0.0;
  double filter_scale_ = 0.0;
  double support_ = 0.0;
};

// torch: the largest precision below 22 bits at which the largest weight of the whole axis stays below 2^15.
int torch_precision(const AxisSpan& span, const FilterShape& shape) {
  AxisWeights axis(span, shape);
  double largest = 0.0;
  for (std::size_t i = 0; i < span.out; ++i) {
    axis.compute(i);
    for (const double weight : axis.weights) largest = std::max(largest, weight);
  }
  int precision = 0;
  while (precision < 22 && static_cast<int>(0.5 + largest * (1 << (precision + 1))) < (1 << 15)) ++precision;
  return precision;
}

// A filter may cover all of a long edge; its weights must not exhaust memory.
void check_num_weights(const AxisSpan& span, double radius) {
  const double scale = std::max(static_cast<double>(span.in) / static_cast<double>(span.out), 1.0);
  const double num_weights = static_cast<double>(span.end - span.begin) * (2.0 * radius * scale + 5.0);
  constexpr double kMaxWeights = 1 << 25;  // 128 MiB of int32, and as much again in pairs
  VIT_CHECK(num_weights <= kMaxWeights, kResizeLimit, "an edge from ", span.in, " to ", span.out,
            " pixels needs more than 2^25 weights; scale the image in steps");
}

std::int32_t pair_of(std::int32_t lower, std::int32_t upper) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(lower) & 0xFFFFu) |
                                   (static_cast<std::uint32_t>(upper) << 16));
}

}  // namespace

FixedAxis::FixedAxis(const AxisSpan& span, ResizeFilter filter, Resampler resampler, bool mirrored) {
  const bool torch = resampler != Resampler::pillow;
  VIT_CHECK(!torch || filter == ResizeFilter::bilinear || filter == ResizeFilter::bicubic ||
                filter == ResizeFilter::lanczos,
            kResizeLimit,
            "torchvision resizes 8-bit images only with nearest, bilinear, bicubic and lanczos");
  VIT_CHECK(span.in <= std::numeric_limits<std::int32_t>::max() &&
                span.out <= std::numeric_limits<std::int32_t>::max(),
            kResizeLimit, "an edge from ", span.in, " to ", span.out, " pixels is too long");
  const FilterShape shape = filter_shape(filter);
  check_num_weights(span, shape.radius);
  if (torch) check_num_weights({span.in, span.out, 0, span.out}, shape.radius);  // all affect the precision
  shift_ = torch ? torch_precision(span, shape) : 22;
  VIT_CHECK(shift_ > 0, kResizeLimit, "an edge from ", span.in, " to ", span.out,
            " pixels leaves no precision for weights");
  AxisWeights axis(span, shape);
  first_input_ = span.in;
  const double unit = static_cast<double>(std::int64_t{1} << shift_);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    axis.compute(mirrored ? span.begin + span.end - 1 - i : i);
    if (mirrored) {
      axis.first = span.in - axis.first - axis.weights.size();
      std::reverse(axis.weights.begin(), axis.weights.end());
    }
    first_.push_back(static_cast<std::int32_t>(axis.first));
    count_.push_back(static_cast<std::int32_t>(axis.weights.size()));
    offset_.push_back(weights_.size());
    for (const double weight : axis.weights) {
      weights_.push_back(static_cast<std::int32_t>(weight < 0.0 ? weight * unit - 0.5 : weight * unit + 0.5));
    }
    weights_.resize(round_up(weights_.size(), 4));
    first_input_ = std::min(first_input_, axis.first);
    num_inputs_ = std::max(num_inputs_, axis.first + axis.weights.size());  // their end, until the loop ends
  }
  num_inputs_ -= first_input_;
  for (std::int32_t& first : first_) first -= static_cast<std::int32_t>(first_input_);
  low_.resize(weights_.size() / 2);
  if (!torch) high_.resize(low_.size());
  constexpr int kBits = kernels::kResampleSplitBits;
  for (std::size_t k = 0; k < low_.size(); ++k) {
    const std::int32_t a = weights_[2 * k];
    const std::int32_t b = weights_[2 * k + 1];
    if (torch) {
      low_[k] = pair_of(a, b);
    } else {
      low_[k] = pair_of(a & ((1 << kBits) - 1), b & ((1 << kBits) - 1));
      high_[k] = pair_of(a >> kBits, b >> kBits);
    }
  }
}

std::size_t FixedAxis::bytes() const noexcept {
  return (first_.capacity() + count_.capacity() + weights_.capacity() + low_.capacity() + high_.capacity()) *
             sizeof(std::int32_t) +
         offset_.capacity() * sizeof(std::size_t);
}

kernels::ResampleAxis FixedAxis::view() const noexcept {
  return {.num_outputs = first_.size(),
          .first = first_.data(),
          .count = count_.data(),
          .offset = offset_.data(),
          .weights = weights_.data(),
          .low = low_.data(),
          .high = high_.empty() ? nullptr : high_.data(),
          .shift = shift_};
}

namespace {

/// Four taps for each output, for shrinking and growing; taps beyond the image use the border. As in OpenCV
/// coordinates are rounded to float, which moves them by 3e-5 pixels after a thousand of them, weights are
/// computed in float, and the last is what the others leave of 1.
void fill_opencv_cubic(const AxisSpan& span, FloatAxis& axis) {
  const double scale = static_cast<double>(span.in) / static_cast<double>(span.out);
  const auto last = static_cast<std::ptrdiff_t>(span.in) - 1;
  for (std::size_t i = span.begin; i < span.end; ++i) {
    const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    const auto tap = static_cast<std::ptrdiff_t>(std::floor(at));
    std::array<float, 4> weights = cubic_weights(at - std::floor(at));
    weights[3] = 1.0f - weights[0] - weights[1] - weights[2];
    const std::ptrdiff_t first = std::clamp<std::ptrdiff_t>(tap - 1, 0, last);
    const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(tap + 2, 0, last) + 1;
    axis.first.push_back(static_cast<std::size_t>(first));
    axis.count.push_back(static_cast<std::size_t>(end - first));
    axis.offset.push_back(axis.weights.size());
    axis.weights.resize(axis.weights.size() + static_cast<std::size_t>(end - first), 0.0f);
    for (std::ptrdiff_t k = 0; k < 4; ++k) {
      const std::ptrdiff_t input = std::clamp<std::ptrdiff_t>(tap - 1 + k, 0, last);
      axis.weights[axis.offset.back() + static_cast<std::size_t>(input - first)] +=
          weights[static_cast<std::size_t>(k)];
    }
  }
}

/// The index of a pixel of an axis that is mirrored at its ends, whose own pixels are not repeated.
std::size_t mirrored_index(std::ptrdiff_t at, std::size_t size) {
  const auto last = static_cast<std::ptrdiff_t>(size) - 1;
  if (last == 0) return 0;
  at = std::abs(at) % (2 * last);
  return static_cast<std::size_t>(at <= last ? at : 2 * last - at);
}

/// Two neighbors of an axis that is blurred, by a sigma of 0 if not: what each output takes of the pixels
/// before the blur. `rounds_once`: coordinates, as torch does where the processor fuses. Source:
/// transformers, models/owlv2, with torchvision's gaussian_blur and torch's interpolate, whose sums of
/// weights are joined.
void fill_blurred_bilinear(const AxisSpan& span, float sigma, bool rounds_once, FloatAxis& axis) {
  const auto radius = static_cast<std::ptrdiff_t>(std::ceil(3.0f * sigma));
  check_num_weights({span.out, span.out, span.begin, span.end}, static_cast<double>(radius));
  std::vector<double> kernel;
  double sum = 0.0;
  for (std::ptrdiff_t k = -radius; k <= radius; ++k) {
    const double x = radius == 0 ? 0.0 : static_cast<double>(k) / static_cast<double>(sigma);
    sum += kernel.emplace_back(std::exp(-0.5 * x * x));
  }
  const float scale = static_cast<float>(span.in) / static_cast<float>(span.out);
  std::map<std::size_t, double> taps;
  for (std::size_t i = span.begin; i < span.end; ++i) {
    const auto fused = static_cast<float>(double{scale} * (static_cast<double>(i) + 0.5) - 0.5);
    const float at = std::max(rounds_once ? fused : scale * (static_cast<float>(i) + 0.5f) - 0.5f, 0.0f);
    const std::size_t low = std::min(static_cast<std::size_t>(at), span.in - 1);
    const double second = std::clamp(static_cast<double>(at) - static_cast<double>(low), 0.0, 1.0);
    taps.clear();
    for (const auto& [center, weight] :
         {std::pair{low, 1.0 - second}, std::pair{std::min(low + 1, span.in - 1), second}}) {
      for (std::ptrdiff_t k = -radius; k <= radius && weight != 0.0; ++k)
        taps[mirrored_index(static_cast<std::ptrdiff_t>(center) + k, span.in)] +=
            weight * kernel[static_cast<std::size_t>(k + radius)] / sum;
    }
    const std::size_t first = taps.begin()->first, count = taps.rbegin()->first + 1 - first;
    axis.first.push_back(first);
    axis.count.push_back(count);
    axis.offset.push_back(axis.weights.size());
    axis.weights.resize(axis.weights.size() + count, 0.0f);
    for (const auto& [input, weight] : taps)
      axis.weights[axis.offset.back() + input - first] = static_cast<float>(weight);
  }
}

}  // namespace

Blur blur_of(ImageSize in, ImageSize out, ResizeFilter filter) {
  if (filter != ResizeFilter::blurred_bilinear) return {};
  const auto sigma = [](std::size_t from, std::size_t to) {
    return std::max((static_cast<float>(from) / static_cast<float>(to) - 1.0f) / 2.0f, 0.0f);
  };
  const float of_height = sigma(in.height, out.height), of_width = sigma(in.width, out.width);
  if (of_height == 0.0f || of_width == 0.0f) return {};
  return {.rows = of_width, .columns = of_height};
}

FloatAxis::FloatAxis(const AxisSpan& span, ResizeFilter filter, float blur) {
  if (filter == ResizeFilter::blurred_bilinear || filter == ResizeFilter::near_bilinear) {
    fill_blurred_bilinear(span, blur, filter == ResizeFilter::near_bilinear, *this);
    return;
  }
  if (filter == ResizeFilter::opencv_cubic) {
    fill_opencv_cubic(span, *this);
    return;
  }
  VIT_CHECK(filter == ResizeFilter::bilinear || filter == ResizeFilter::bicubic, "resize",
            "float images are resized only with bilinear and bicubic");
  const auto weight_of = filter == ResizeFilter::bilinear ? bilinear<float> : bicubic<float>;
  const float radius = filter == ResizeFilter::bilinear ? 1.0f : 2.0f;
  check_num_weights(span, static_cast<double>(radius));
  const float scale = static_cast<float>(span.in) / static_cast<float>(span.out);
  const float support = scale >= 1.0f ? radius * scale : radius;
  const float inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
  const std::size_t most = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  for (std::size_t i = span.begin; i < span.end; ++i) {
    const float center = static_cast<float>(static_cast<double>(scale) * (static_cast<double>(i) + 0.5));
    const double low = std::max(std::trunc(static_cast<double>(center - support) + 0.5), 0.0);
    const double high =
        std::min(std::trunc(static_cast<double>(center + support) + 0.5), static_cast<double>(span.in));
    first.push_back(static_cast<std::size_t>(low));
    count.push_back(std::min(static_cast<std::size_t>(std::max(high - low, 0.0)), most));
    offset.push_back(weights.size());
    float sum = 0.0f;
    for (std::size_t j = 0; j < count.back(); ++j) {
      const float distance = static_cast<float>(first.back() + j) - center;
      const float weight =
          weight_of(static_cast<float>((static_cast<double>(distance) + 0.5) * static_cast<double>(inverse)));
      weights.push_back(weight);
      sum += weight;
    }
    if (sum == 0.0f) continue;
    for (std::size_t j = offset.back(); j < weights.size(); ++j) weights[j] /= sum;
  }
}

std::size_t FloatAxis::bytes() const noexcept {
  return (first.capacity() + count.capacity() + offset.capacity()) * sizeof(std::size_t) +
         weights.capacity() * sizeof(float);
}

NearestAxis::NearestAxis(const AxisSpan& span, Resampler resampler) {
  inputs.reserve(span.end - span.begin);
  if (resampler == Resampler::pillow) {
    const double scale = static_cast<double>(span.in) / static_cast<double>(span.out);
    double position = 0.5 * scale;
    for (std::size_t i = 0; i < span.end; ++i, position += scale) {
      if (i >= span.begin) inputs.push_back(std::min(static_cast<std::size_t>(position), span.in - 1));
    }
    return;
  }
  const float scale = static_cast<float>(span.in) / static_cast<float>(span.out);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    const float position = std::floor((static_cast<float>(i) + 0.5f) * scale);
    inputs.push_back(std::min(static_cast<std::size_t>(position), span.in - 1));
  }
}

}  // namespace vit::internal
