// vit evaluate --scale-consistency: patch features of images at several sizes, without labels.
#include "apps/vit/commands/evaluate/evaluate_scales.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/vit/commands/evaluate/scale_consistency.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/position/rope.h"

namespace vit::app {
namespace {

using nlohmann::ordered_json;

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

ordered_json result_json(const std::vector<Scale>& scales, const ImageRun& run, std::size_t images,
                         std::size_t failed) {
  ordered_json sizes = ordered_json::array();
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

std::string scales_text(const ordered_json& result) {
  std::string out = text("cosine of the patch features of ", result["images"].get<std::size_t>(),
                         " images with those at another size, at the same position and elsewhere\n");
  for (const ordered_json& row : result["sizes"]) {
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
  ScaleComparison(const ScaleOptions& options, const CommonOptions& common)
      : options_(options), common_(common) {}

  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    if (interrupted()) return std::nullopt;
    for (const std::size_t size : options_.sizes) {
      SessionOptions session = common_.session;
      session.input_size = {.kind = InputSize::Kind::fixed, .height = size, .width = size};
      scales_.push_back({.size = size, .session = Session(model, session)});
    }
    for (const std::string& image : images_below(options_.folder, run.list()))
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
    VIT_CHECK(images_ > 0 || interrupted(), "evaluate", options_.folder.string(),
              ": no image could be evaluated");
    const ordered_json result = result_json(scales_, run, images_, run.progress().num_failed());
    print_result(options_.as_json ? result.dump() + "\n" : scales_text(result));
    return 0;
  }

 private:
  const ScaleOptions& options_;
  const CommonOptions& common_;
  const Request request_{Output::tokens};
  std::vector<Scale> scales_;
  std::size_t images_ = 0;
  Outputs outputs_;
};

}  // namespace

std::vector<std::size_t> parse_sizes(const std::string& list) {
  std::vector<std::size_t> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(parse_integer(list.substr(begin, end - begin), 1, kMaxInputEdge));
    begin = end + 1;
  }
  return out;
}

int evaluate_scales(const ScaleOptions& options, const CommonOptions& common) {
  ScaleComparison work(options, common);
  return run_images({.name = "evaluate",
                     .common = common,
                     .list = [] { return InputList(); },  // listed when the process is confined
                     .reads = {options.folder}},
                    work);
}

}  // namespace vit::app
