// vit evaluate --scale-consistency: patch features of images at several sizes, without labels.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"
#include "vit/position/rope.h"

namespace vit::app {
namespace {

struct Share {
  std::size_t index = 0;  // of the finer or coarser cell
  double weight = 0.0;    // of all shares of one cell 1
};

/// The cells of an axis of `from` cells that overlap cell `at` of an axis of `to` cells.
std::vector<Share> shares_of(std::size_t at, std::size_t to, std::size_t from) {
  std::vector<Share> out;
  // in units of 1 / (from * to) of the axis, which are integers
  const std::size_t begin = at * from, end = (at + 1) * from;
  for (std::size_t i = begin / to; i < from && i * to < end; ++i) {
    const std::size_t overlap = std::min(end, (i + 1) * to) - std::max(begin, i * to);
    out.push_back({i, static_cast<double>(overlap) / static_cast<double>(from)});
  }
  return out;
}

/// Scales `vector` to length 1; a zero vector stays zero.
void normalize(double* vector, std::size_t size) {
  double sum = 0.0;
  for (std::size_t c = 0; c < size; ++c) sum += vector[c] * vector[c];
  if (sum == 0.0) return;
  for (std::size_t c = 0; c < size; ++c) vector[c] /= std::sqrt(sum);
}

/// (h, w, C): features (h', w', C) of another grid of the same image, averaged over the area of each patch
/// of `grid`, by the overlap of their areas; in double.
Tensor<double> averaged_patches(TensorView<const float> patches, GridSize grid) {
  const std::size_t channels = patches.shape().last();
  Tensor<double> out(Shape{grid.rows, grid.columns, channels});
  std::ranges::fill(out.flat(), 0.0);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const std::vector<Share> of_rows = shares_of(row, grid.rows, patches.dim(0));
    for (std::size_t column = 0; column < grid.columns; ++column) {
      double* const to = out.data() + (row * grid.columns + column) * channels;
      for (const Share& y : of_rows) {
        for (const Share& x : shares_of(column, grid.columns, patches.dim(1))) {
          const float* const from = patches.row(y.index * patches.dim(1) + x.index);
          for (std::size_t c = 0; c < channels; ++c)
            to[c] += y.weight * x.weight * static_cast<double>(from[c]);
        }
      }
    }
  }
  return out;
}

/// The similarity of the patch features of an image and of its enlarged copy: a measure of model behavior at
/// another size that needs no labels. Means over all patches of all images.
/// Letters: h, w = patches per column and row, C = channels.
class ScaleConsistency {
 public:
  /// `trained` (h, w, C) at the first size, `other` (h', w', C) at another. Throws Error if C differs.
  void add(TensorView<const float> trained, TensorView<const float> other);

  /// Cosine between a patch and the same region of the other image; 1 if the size has no effect.
  double same_place() const;
  /// Cosine between patches at different positions: the common part of all features; 0 for a single patch.
  double other_places() const;

 private:
  double same_ = 0.0, others_ = 0.0;
  std::size_t num_same_ = 0, num_others_ = 0;
};

void ScaleConsistency::add(TensorView<const float> trained, TensorView<const float> other) {
  const std::size_t channels = trained.shape().last();
  VIT_CHECK(channels == other.shape().last(), "ScaleConsistency", "features of ", channels, " and ",
            other.shape().last(), " channels");
  const GridSize grid{trained.dim(0), trained.dim(1)};
  Tensor<double> a = averaged_patches(trained, grid), b = averaged_patches(other, grid);
  std::vector<double> a_sum(channels, 0.0), b_sum(channels, 0.0);
  const std::size_t count = grid.rows * grid.columns;
  double same = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    double* const at = a.data() + i * channels;
    double* const bt = b.data() + i * channels;
    normalize(at, channels);
    normalize(bt, channels);
    for (std::size_t c = 0; c < channels; ++c) {
      same += at[c] * bt[c];
      a_sum[c] += at[c];
      b_sum[c] += bt[c];
    }
  }
  double all = 0.0;
  for (std::size_t c = 0; c < channels; ++c) all += a_sum[c] * b_sum[c];
  same_ += same;
  num_same_ += count;
  others_ += all - same;  // the sum over all pairs is the product of the sums
  num_others_ += count * (count - 1);
}

double ScaleConsistency::same_place() const {
  return num_same_ == 0 ? 0.0 : same_ / static_cast<double>(num_same_);
}

double ScaleConsistency::other_places() const {
  return num_others_ == 0 ? 0.0 : others_ / static_cast<double>(num_others_);
}

/// A size at which features are compared.
struct Scale {
  std::size_t size = 0;
  Session session;
  ScaleConsistency consistency{};
  GridSize grid{};
};

std::string rule_of(const ModelConfig& config) {
  const PositionConfig& position = config.position;
  if (position.rope == RopeKind::none) return "";
  return position::to_string(position.rope_scaling.value_or(
      RopeScaling{.rule = position::default_scaling_rule(position.coordinates)}));
}

JsonValue result_json(const std::vector<Scale>& scales, const ImageRun& run, std::size_t images,
                      std::size_t failed) {
  JsonValue sizes = JsonValue::array();
  for (const Scale& scale : scales) {
    sizes.push_back({{"size", scale.size},
                     {"rows", scale.grid.rows},
                     {"columns", scale.grid.columns},
                     {"cosine", scale.consistency.same_place()},
                     {"elsewhere", scale.consistency.other_places()}});
  }
  return {{"images", images},
          {"failed", failed},
          {"rope_scaling", rule_of(run.model().config())},
          {"sizes", std::move(sizes)}};
}

std::string scales_text(const JsonValue& result) {
  std::string out = text("cosine of the patch features of ", result["images"].get<std::size_t>(),
                         " images with those at another size, at the same position and elsewhere\n");
  for (const JsonValue& row : result["sizes"]) {
    char line[120];
    std::snprintf(line, sizeof line, "  %5zu  %3zu x %-3zu patches  %.4f  elsewhere %.4f\n",
                  row["size"].get<std::size_t>(), row["rows"].get<std::size_t>(),
                  row["columns"].get<std::size_t>(), row["cosine"].get<double>(),
                  row["elsewhere"].get<double>());
    out += line;
  }
  return out;
}

class ScaleComparison : public ImageWork {
 public:
  ScaleComparison(const EvaluateRun& evaluation, const std::vector<std::size_t>& sizes)
      : evaluation_(evaluation), sizes_(sizes) {}

  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    if (interrupted()) return std::nullopt;
    for (const std::size_t size : sizes_) {
      SessionOptions session = evaluation_.common.session;
      session.input_size = {.kind = InputSize::Kind::fixed, .height = size, .width = size};
      scales_.push_back({.size = size, .session = Session(model, session)});
    }
    for (const std::string& image : images_below(evaluation_.folder, run.list()))
      run.list().inputs.push_back({.name = image, .path = image, .pixels = nullptr});
    return request_;
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    const ImageOutputs& trained = *image.outputs;
    if (!are_finite(trained.tokens().flat())) return "the features are not finite";
    const Image decoded = scales_.front().session.decode(run.inputs()[image.index].path);
    for (Scale& scale : scales_) {
      scale.session.run(decoded, request_, outputs_);
      scale.grid = outputs_.grid();
      scale.consistency.add(trained.patches(), outputs_[0].patches());
    }
    ++images_;
    return "";
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    VIT_CHECK(images_ > 0 || interrupted(), "evaluate", evaluation_.folder.string(),
              ": no image could be evaluated");
    const JsonValue result = result_json(scales_, run, images_, run.progress().num_failed());
    print_result(evaluation_.as_json ? result.dump() + "\n" : scales_text(result));
    return 0;
  }

 private:
  const EvaluateRun& evaluation_;
  const std::vector<std::size_t>& sizes_;
  const Request request_{Output::tokens};
  std::vector<Scale> scales_;
  std::size_t images_ = 0;
  Outputs outputs_;
};

/// "224,336". Throws UsageError.
std::vector<std::size_t> parse_sizes(const std::string& list) {
  std::vector<std::size_t> out;
  for (const std::string& size : split_at_commas(list)) out.push_back(parse_integer(size, 1, kMaxInputEdge));
  return out;
}

class ScaleMeasure : public Measure {
 public:
  void add_options(std::vector<Option>& list, CommonOptions& /*common*/) override {
    list.push_back({.name = "--scale-consistency",
                    .type_name = "",
                    .help = "Compare the patch features of the images in FOLDER, which need no "
                            "labels, with those at --sizes",
                    .flag = &is_given_});
    list.push_back({.name = "--sizes",
                    .type_name = "LIST",
                    .help = "Edges in pixels for --scale-consistency, such as 336,448",
                    .target = parsed_target(sizes_, parse_sizes)});
  }

  bool is_requested() const override {
    if (is_given_ != !sizes_.empty()) fail_usage("--scale-consistency and --sizes go together");
    return is_given_;
  }

  const char* excludes() const override {
    return "--scale-consistency compares features; it takes no options for classes or anomalies";
  }

  int run(const EvaluateRun& evaluation) override {
    ScaleComparison work(evaluation, sizes_);
    return run_images({.name = "evaluate",
                       .common = evaluation.common,
                       .list = [] { return InputList(); },  // listed when the process is confined
                       .reads = {evaluation.folder}},
                      work);
  }

 private:
  bool is_given_ = false;
  std::vector<std::size_t> sizes_;  // edges in pixels
};

}  // namespace

std::shared_ptr<Measure> scale_measure() {
  return std::make_shared<ScaleMeasure>();
}

}  // namespace vit::app
