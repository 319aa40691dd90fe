// Memory kept between the resizes of one caller, so that a resize between sizes seen
// before allocates nothing: tables of weights and buffers. Must not be shared between threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <tuple>

#include "vit/base/tensor.h"
#include "vit/image/preprocess.h"
#include "vit/image/resample_axis.h"

namespace vit::internal {

/// Memory that grows on demand and never shrinks automatically.
template <typename T>
class Buffer {
 public:
  /// `count` uninitialized elements, valid until the next call.
  T* take(std::size_t count) {
    if (count > capacity_) {
      storage_ = Tensor<T>();  // first, so that both never exist
      capacity_ = 0;
      storage_ = Tensor<T>(Shape{count});
      capacity_ = count;
    }
    return storage_.data();
  }
  /// The memory of the last take().
  T* data() { return storage_.data(); }
  std::size_t bytes() const noexcept { return capacity_ * sizeof(T); }

 private:
  Tensor<T> storage_;
  std::size_t capacity_ = 0;
};

/// The tables of one axis for the last few spans, most recent first. `Choice` are parameters of a table
/// in addition to its span.
template <typename Axis, typename... Choice>
class AxisTables {
 public:
  /// Created if it is missing; valid until the next call.
  const Axis& find(const AxisSpan& span, Choice... choice) {
    const Key key(span, choice...);
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
    } else {
      constexpr std::size_t kMaxTables = 4;  // upright and wide images of a camera, and two more
      if (entries_.size() == kMaxTables) entries_.pop_back();
      entries_.push_front({key, Axis(span, choice...)});
    }
    return entries_.front().axis;
  }
  std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (const Entry& entry : entries_) sum += entry.axis.bytes();
    return sum;
  }

 private:
  using Key = std::tuple<AxisSpan, Choice...>;
  struct Entry {
    Key key;
    Axis axis;
  };
  std::list<Entry> entries_;
};

struct ResizeMemory {
  AxisTables<FixedAxis, ResizeFilter, Resampler, bool> columns;  // bool: mirrored
  AxisTables<FixedAxis, ResizeFilter, Resampler, bool> rows;
  AxisTables<FloatAxis, ResizeFilter, float> float_columns;  // float: sigma of a blur
  AxisTables<FloatAxis, ResizeFilter, float> float_rows;
  AxisTables<NearestAxis, Resampler> nearest_columns;
  AxisTables<NearestAxis, Resampler> nearest_rows;
  Buffer<std::uint8_t> between;  // the image between two passes
  Buffer<std::uint8_t> strip;    // rows that just arrived, of an image of rows
  Buffer<float> float_between;   // the same of a float resize
  Buffer<float> sums;            // of one row, per thread

  std::size_t bytes() const noexcept {
    return columns.bytes() + rows.bytes() + float_columns.bytes() + float_rows.bytes() +
           nearest_columns.bytes() + nearest_rows.bytes() + between.bytes() + strip.bytes() +
           float_between.bytes() + sums.bytes();
  }
};

}  // namespace vit::internal
