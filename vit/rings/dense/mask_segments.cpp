// Segments of an image from masks of queries, as transformers' EomtImageProcessor makes them of rows of
// vit/rings/dense/mask_rows.h. Letters: Q queries, C classes, H, W = of the image.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"
#include "vit/dense.h"
#include "vit/rings/dense/mask_rows.h"
#include "vit/rings/dense/semantic.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"segments_of", ErrorKind::argument};
constexpr std::size_t kRowsPerTask = 16;

/// Softmax of each query's scores (Q, C + 1), in place.
Tensor<float> class_probabilities(TensorView<const float> scores) {
  Tensor<float> out(Shape{scores.num_rows(), scores.num_columns()});
  for (std::size_t q = 0; q < scores.num_rows(); ++q) {
    const float* const from = scores.row(q);
    float* const to = out.view().row(q);
    const float largest = *std::max_element(from, from + scores.num_columns());
    double sum = 0.0;
    for (std::size_t c = 0; c < scores.num_columns(); ++c)
      sum += static_cast<double>(to[c] = rounded_exp(from[c] - largest));
    for (std::size_t c = 0; c < scores.num_columns(); ++c)
      to[c] = static_cast<float>(static_cast<double>(to[c]) / sum);
  }
  return out;
}

/// A query that may become a segment.
struct Candidate {
  std::size_t query = 0, index = 0;
  float score = 0.0f;
};

/// The queries whose best of the first `classes` classes is one of the first `objects` and passes.
template <typename Passes>
std::vector<Candidate> candidates(const Tensor<float>& probabilities, std::size_t classes,
                                  std::size_t objects, const Passes& passes) {
  std::vector<Candidate> out;
  for (std::size_t q = 0; q < probabilities.dim(0); ++q) {
    const float* const row = probabilities.view().row(q);
    const auto best = static_cast<std::size_t>(std::max_element(row, row + classes) - row);
    if (best < objects && passes(row[best])) out.push_back({.query = q, .index = best, .score = row[best]});
  }
  return out;
}

Segment segment_of(std::size_t id, std::size_t index, float score, std::span<const std::string> labels) {
  return {.id = static_cast<std::int32_t>(id),
          .index = index,
          .label = index < labels.size() ? labels[index] : std::to_string(index),
          .score = static_cast<float>(std::nearbyint(static_cast<double>(score) * 1e6) / 1e6)};
}

void count_areas(SegmentMap& map) {
  for (const std::int32_t id : map.map.flat()) {
    if (id >= 0) ++map.segments[static_cast<std::size_t>(id)].area;
  }
}

/// Calls row(y, scratch) for all rows of an image, with `floats` numbers of the thread.
template <typename Row>
void for_each_row(std::size_t height, std::size_t floats, int threads, const Row& row) {
  Tensor<float> memory(Shape{static_cast<std::size_t>(resolve_threads(threads)), floats});
  parallel_for(ceil_div(height, kRowsPerTask), threads, [&](std::size_t task, int thread) {
    float* const scratch = memory.view().row(static_cast<std::size_t>(thread));
    const std::size_t end = std::min((task + 1) * kRowsPerTask, height);
    for (std::size_t y = task * kRowsPerTask; y < end; ++y) row(y, scratch);
  });
}

// ------------------------------------------------------------------------------------------------ panoptic

/// The candidate to which each pixel belongs, as ~k where its mask does not reach the threshold there, and
/// the pixels of each candidate's mask.
struct Owners {
  Tensor<std::int32_t> map;
  std::vector<std::size_t> mask_areas;
};

Owners find_owners(const ImageRows& masks, std::span<const Candidate> kept, ImageSize image, float threshold,
                   int threads) {
  Owners out{.map = Tensor<std::int32_t>(Shape{image.height, image.width}),
             .mask_areas = std::vector<std::size_t>(kept.size())};
  Tensor<std::uint32_t> areas(Shape{image.height, kept.size()});  // of each row
  const std::size_t width = image.width;
  for_each_row(image.height, masks.scratch_floats() + 2 * width, threads, [&](std::size_t y, float* scratch) {
    float* const row = scratch + masks.scratch_floats();
    float* const best = row + width;
    std::int32_t* const owners = out.map.view().row(y);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      masks.row(kept[k].query, y, scratch, row);
      std::uint32_t area = 0;
      for (std::size_t x = 0; x < width; ++x) {
        const float p = rounded_sigmoid(row[x]), score = kept[k].score * p;
        const bool is_inside = p >= threshold;
        area += is_inside ? 1 : 0;
        if (k != 0 && !(score > best[x])) continue;
        best[x] = score;
        const auto number = static_cast<std::int32_t>(k);
        owners[x] = is_inside ? number : ~number;
      }
      areas.view().row(y)[k] = area;
    }
  });
  for (std::size_t y = 0; y < image.height; ++y) {
    for (std::size_t k = 0; k < kept.size(); ++k) out.mask_areas[k] += areas.view().row(y)[k];
  }
  return out;
}

SegmentMap panoptic(const ImageRows& masks, const Tensor<float>& probabilities, ImageSize image,
                    const SegmentOptions& options, int threads, std::span<const std::string> labels) {
  const std::size_t classes = probabilities.dim(1);
  const auto limit = static_cast<float>(options.threshold);
  const std::vector<Candidate> kept =
      candidates(probabilities, classes, classes - 1, [&](float score) { return score > limit; });
  SegmentMap out{.map = Tensor<std::int32_t>(Shape{image.height, image.width}), .segments = {}};
  std::ranges::fill(out.map.flat(), -1);
  if (kept.empty()) return out;
  const Owners owners = find_owners(masks, kept, image, static_cast<float>(options.mask_threshold), threads);
  std::vector<std::size_t> owned(kept.size()), inside(kept.size());
  for (const std::int32_t owner : owners.map.flat()) {
    const auto k = static_cast<std::size_t>(owner < 0 ? ~owner : owner);
    ++owned[k];
    if (owner >= 0) ++inside[k];
  }
  std::vector<std::int32_t> ids(kept.size(), -1);
  std::vector<std::int32_t> of_stuff(classes, -1);  // the segment of a class whose parts are one
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (inside[k] == 0) continue;
    const float ratio = static_cast<float>(owned[k]) / static_cast<float>(owners.mask_areas[k]);
    if (!(static_cast<double>(ratio) > options.overlap)) continue;
    const std::size_t index = kept[k].index;
    const bool is_stuff = std::ranges::find(options.stuff, index) != options.stuff.end();
    if (is_stuff && of_stuff[index] >= 0) {
      ids[k] = of_stuff[index];
      continue;
    }
    ids[k] = static_cast<std::int32_t>(out.segments.size());
    if (is_stuff) of_stuff[index] = ids[k];
    out.segments.push_back(segment_of(out.segments.size(), index, kept[k].score, labels));
  }
  std::ranges::transform(owners.map.flat(), out.map.data(), [&](std::int32_t owner) {
    return owner < 0 ? -1 : ids[static_cast<std::size_t>(owner)];
  });
  count_areas(out);
  return out;
}

// ------------------------------------------------------------------------------------------------ instance

/// The mean probability of each candidate's pixels inside its mask; negative where there are none.
std::vector<float> mask_scores(const ImageRows& masks, std::span<const Candidate> kept, ImageSize image,
                               int threads) {
  Tensor<double> sums(Shape{image.height, kept.size()});
  Tensor<std::uint32_t> areas(Shape{image.height, kept.size()});
  for_each_row(image.height, masks.scratch_floats() + image.width, threads,
               [&](std::size_t y, float* scratch) {
                 float* const row = scratch + masks.scratch_floats();
                 for (std::size_t k = 0; k < kept.size(); ++k) {
                   masks.row(kept[k].query, y, scratch, row);
                   for (std::size_t x = 0; x < image.width; ++x) {
                     if (!(row[x] > 0.0f)) continue;
                     ++areas.view().row(y)[k];
                     sums.view().row(y)[k] += static_cast<double>(rounded_sigmoid(row[x]));
                   }
                 }
               });
  std::vector<float> out;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    double sum = 0.0, area = 0.0;
    for (std::size_t y = 0; y < image.height; ++y) {
      sum += sums.view().row(y)[k];
      area += areas.view().row(y)[k];
    }
    out.push_back(area == 0.0 ? -1.0f : static_cast<float>(sum / (area + 1e-6)));
  }
  return out;
}

SegmentMap instances(const ImageRows& masks, const Tensor<float>& probabilities, ImageSize image,
                     const SegmentOptions& options, int threads, std::span<const std::string> labels) {
  const std::size_t objects = probabilities.dim(1) - 1;
  SegmentMap out{.map = Tensor<std::int32_t>(Shape{image.height, image.width}), .segments = {}};
  std::ranges::fill(out.map.flat(), -1);
  // a mask's score is 1 at most
  std::vector<Candidate> kept = candidates(probabilities, objects, objects, [&](float score) {
    return static_cast<double>(score) >= options.threshold;
  });
  const std::vector<float> scores = mask_scores(masks, kept, image, threads);
  std::vector<std::size_t> queries;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const float score = kept[k].score * scores[k];
    if (scores[k] < 0.0f || !(static_cast<double>(score) >= options.threshold)) continue;
    out.segments.push_back(segment_of(queries.size(), kept[k].index, score, labels));
    queries.push_back(kept[k].query);
  }
  for_each_row(image.height, masks.scratch_floats() + image.width, threads,
               [&](std::size_t y, float* scratch) {
                 float* const row = scratch + masks.scratch_floats();
                 std::int32_t* const to = out.map.view().row(y);
                 for (std::size_t id = 0; id < queries.size(); ++id) {  // later ones lie on earlier ones
                   masks.row(queries[id], y, scratch, row);
                   for (std::size_t x = 0; x < image.width; ++x) {
                     if (row[x] > 0.0f) to[x] = static_cast<std::int32_t>(id);
                   }
                 }
               });
  count_areas(out);
  return out;
}

// ------------------------------------------------------------------------------------------------ semantic

/// The best class of each pixel, and the rows of the model's pixels between which a thread is.
class SemanticRows {
 public:
  SemanticRows(const ClassRows& classes, const Lerp& rows, const Lerp& columns)
      : classes_(classes),
        rows_(rows),
        columns_(columns),
        memory_(Shape{2, classes.num_classes() * classes.width()}),
        scratch_(Shape{classes.scratch_floats() + classes.width() + 2 * columns.size()}) {}

  void row(std::size_t y, std::int32_t* to) {
    const float* const above = at(rows_.first[y], rows_.second[y]);
    const float* const below = at(rows_.second[y], rows_.first[y]);
    float* const between = scratch_.data();
    float* const scores = between + classes_.width();
    float* const best = scores + columns_.size();
    for (std::size_t c = 0; c < classes_.num_classes(); ++c) {
      const std::size_t from = c * classes_.width();
      blend(above + from, below + from, rows_.t[y], classes_.width(), between);
      columns_.apply(between, scores);
      for (std::size_t x = 0; x < columns_.size(); ++x) {
        if (c != 0 && !(scores[x] > best[x])) continue;
        best[x] = scores[x];
        to[x] = static_cast<std::int32_t>(c);
      }
    }
  }

 private:
  /// A row that stays while the one at `other` is asked for.
  const float* at(std::size_t y, std::size_t other) {
    std::size_t place = 0;
    for (; place < 2; ++place) {
      if (held_[place] == y) return memory_.view().row(place);
    }
    place = held_[0] == other ? 1 : 0;
    held_[place] = y;
    classes_.row(y, scratch_.data() + classes_.width() + 2 * columns_.size(), memory_.view().row(place));
    return memory_.view().row(place);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const ClassRows& classes_;
  const Lerp &rows_, &columns_;
  Tensor<float> memory_, scratch_;
  std::size_t held_[2]{kNone, kNone};
};

Tensor<std::int32_t> best_classes(const ClassRows& classes, ImageSize pixels, ImageSize image, int threads) {
  const Lerp rows(pixels.height, image.height, image.height);
  const Lerp columns(pixels.width, image.width, image.width);
  Tensor<std::int32_t> out(Shape{image.height, image.width});
  const auto workers = static_cast<std::size_t>(resolve_threads(threads));
  const std::size_t per_task = std::max(ceil_div(image.height, 4 * workers), std::size_t{1});
  parallel_for(ceil_div(image.height, per_task), threads, [&](std::size_t task, int) {
    SemanticRows semantic(classes, rows, columns);
    const std::size_t end = std::min((task + 1) * per_task, image.height);
    for (std::size_t y = task * per_task; y < end; ++y) semantic.row(y, out.view().row(y));
  });
  return out;
}

void check_labels(const std::vector<std::string>& labels, std::size_t classes) {
  VIT_CHECK(labels.empty() || labels.size() == classes, kWhere, labels.size(), " names for ", classes,
            " classes");
}

void check_options(const SegmentOptions& options, std::size_t classes) {
  for (const double value : {options.threshold, options.mask_threshold, options.overlap}) {
    VIT_CHECK(value >= 0.0 && value <= 1.0, kWhere, "thresholds are between 0 and 1, got ", value);
  }
  for (const std::size_t index : options.stuff)
    VIT_CHECK(index < classes, kWhere, "no class ", index, " of stuff among ", classes);
  check_labels(options.labels, classes);
}

}  // namespace

SegmentMap segments_of(const ImageOutputs& outputs, const SegmentOptions& options, int threads) {
  const DenseConfig* const config = outputs.head();
  VIT_CHECK(config != nullptr, kWhere.with(ErrorKind::mismatch),
            "these are outputs of a model without a dense head");
  check_choice(kWhere, "task", options.task, SegmentTask::panoptic);
  const std::vector<std::string>& labels = options.labels.empty() ? config->labels : options.labels;
  if (config->find(Output::masks) == nullptr) {
    VIT_CHECK(options.task == SegmentTask::semantic, kWhere.with(ErrorKind::mismatch),
              "the head of this model gives a class for each pixel; instances and panoptic segments need "
              "masks of queries, as EoMT has them");
    check_labels(options.labels, config->find(Output::classes)->channels);
    return semantic_segments(outputs, labels, threads);
  }
  const auto [image, pixels, content] = outputs.frame();
  const TensorView<const float> scores = outputs[Output::mask_classes];  // (Q, C + 1), or of windows
  const std::size_t windows = outputs.num_windows(), classes = scores.num_columns() - 1;
  TensorView<const float> masks = outputs[Output::masks];
  if (windows > 1) masks = {masks.data(), Shape{windows * masks.dim(1), masks.dim(2), masks.dim(3)}};
  VIT_CHECK(windows == 1 || options.task == SegmentTask::semantic, kWhere.with(ErrorKind::mismatch),
            "instances and panoptic segments need one square of the whole image; this one was computed as ",
            windows, " windows, which the task semantic merges (do_split_image of preprocessor_config.json)");
  VIT_CHECK(content.height >= 1 && content.height <= pixels.height && content.width >= 1 &&
                content.width <= pixels.width && image.height >= 1 && image.width >= 1,
            kWhere, "an image of ", image.height, " x ", image.width, " that fills ", content.height, " x ",
            content.width, " of ", pixels.height, " x ", pixels.width, " pixels");
  check_options(options, classes);
  const Tensor<float> probabilities =
      class_probabilities({scores.data(), Shape{scores.num_rows(), scores.num_columns()}});
  if (options.task == SegmentTask::semantic) {
    const ClassRows rows(masks, probabilities, windows, pixels);
    return with_areas(best_classes(rows, pixels, image, threads), classes, labels);
  }
  const ImageRows rows(masks, pixels, content, image);
  const auto make = options.task == SegmentTask::panoptic ? panoptic : instances;
  return make(rows, probabilities, image, options, threads, labels);
}

}  // namespace vit
