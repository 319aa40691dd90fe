// vit evaluate --task depth.
#include <array>
#include <cstdio>
#include <limits>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/dense/map_comparison.h"
#include "apps/vit/rings/dense/truth_maps.h"
#include "vit/dense.h"
#include "vit/rings/dense/map_metrics.h"

namespace vit::app {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr double kTruthUnits = 1000.0;  // of a truth in 16 bits: millimeters

DepthAlignment alignment_of(AlignChoice choice, DepthUnit unit) {
  if (choice == AlignChoice::none || (choice == AlignChoice::automatic && unit == DepthUnit::meter))
    return DepthAlignment::none;
  if (choice == AlignChoice::median) {
    if (unit == DepthUnit::inverse)
      fail_usage("--align median is for depths, and this model gives inverse ones");
    return DepthAlignment::median;
  }
  return unit == DepthUnit::inverse ? DepthAlignment::inverse : DepthAlignment::depth;
}

const char* word_of(DepthAlignment alignment) {
  switch (alignment) {
    case DepthAlignment::none: return "none";
    case DepthAlignment::median: return "median";
    case DepthAlignment::depth: return "affine, of depth";
    case DepthAlignment::inverse: return "affine, of inverse depth";
  }
  return "";
}

/// Means over images, each of its own pixels.
class DepthComparison : public MapComparison {
 public:
  DepthComparison(const MapEvaluation& evaluation, const DenseConfig& config, int threads)
      : evaluation_(evaluation),
        threads_(threads),
        alignment_(alignment_of(evaluation.align, config.depth_unit)) {}

  void add(const StreamedImage& image, const fs::path& name) override {
    constexpr const char* kEndings[] = {".npy", ".png", ".pfm", "_depth.png", "_depth.npy"};
    const fs::path path = find_truth_map(evaluation_.truth, name, kEndings);
    const Tensor<float> truth = read_depth_map(path, evaluation_.truth_scale.value_or(kTruthUnits));
    check_map_size(truth.shape(), image.size, path);
    const auto [low, high] =
        evaluation_.limits.value_or(std::array<float, 2>{1e-3f, std::numeric_limits<float>::max()});
    const auto found = measure_depth(depth_of(*image.outputs, threads_).depth, truth, alignment_, low, high);
    VIT_CHECK(found, kMapMismatch, path.string(), ": no pixel has a depth between ", low, " and ", high);
    sum_.abs_rel += found->abs_rel;
    sum_.delta1 += found->delta1;
    sum_.rmse += found->rmse;
    sum_.pixels += found->pixels;
  }

  JsonValue result(std::size_t num_images) const override {
    const auto images = static_cast<double>(num_images);
    return {{"task", "depth"},
            {"images", num_images},
            {"abs_rel", sum_.abs_rel / images},
            {"delta1", sum_.delta1 / images},
            {"rmse", sum_.rmse / images},
            {"alignment", word_of(alignment_)},
            {"pixels", sum_.pixels}};
  }
  std::string as_text(const JsonValue& result) const override {
    char line[160];
    std::snprintf(line, sizeof line, "AbsRel %.4f, delta1 %.4f, RMSE %.4f of %zu images (alignment: %s)\n",
                  result["abs_rel"].get<double>(), result["delta1"].get<double>(),
                  result["rmse"].get<double>(), result["images"].get<std::size_t>(),
                  result["alignment"].get<std::string>().c_str());
    return line;
  }

 private:
  const MapEvaluation& evaluation_;
  const int threads_;
  const DepthAlignment alignment_;
  DepthMeasures sum_;
};

}  // namespace

std::unique_ptr<MapComparison> compare_depth(const MapEvaluation& evaluation, const Model& model,
                                             int threads) {
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(config != nullptr && config->find(Output::depth) != nullptr, kMapMismatch,
            model.report().path.string(), " has no head that gives depth");
  return std::make_unique<DepthComparison>(evaluation, *config, threads);
}

}  // namespace vit::app
