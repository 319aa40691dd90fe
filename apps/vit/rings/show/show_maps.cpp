// Depth and segments as pictures.
#include <algorithm>
#include <utility>
#include <vector>

#include "apps/vit/outputs/map_files.h"
#include "apps/vit/rings/show/show_run.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

std::string list_of(std::span<const Segment> segments) {
  constexpr std::size_t kMost = 12;
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, segments.size()); ++i) {
    out += (i != 0 ? ", " : "") + segments[i].label;
    if (segments[i].score) out += text(" ", *segments[i].score);
  }
  return segments.size() > kMost ? out + text(" and ", segments.size() - kMost, " more") : out;
}

}  // namespace

void Show::add_picture(const Input& input, std::vector<std::string> caption, Image picture) {
  if (!options_.html.empty()) add_to_page(input, caption, picture);
  if (sink_.is_used()) sink_.add(input.name, std::move(picture));
}

void Show::draw_depth() {
  const DenseConfig* const config = run_.model().dense_config();
  VIT_CHECK(config != nullptr && config->find(Output::depth) != nullptr, "show",
            run_.model().report().path.string(), " has no head that gives depth");
  const ColorMap colors = color_map(config->depth_unit == DepthUnit::inverse ? "Spectral_r" : "Spectral");
  for_each([&](const Input& input) {
    const SeenImage seen = see_maps(input);
    const DepthMap map = depth_of(outputs_[0], options_.common.session.threads);
    check_finite(map.depth.flat(), "show", "the depth is");
    numbers_.add(array_name("depth"), {map.depth.dim(0), map.depth.dim(1)}, map.depth.flat());
    files_.push_back(input.name);
    if (!is_drawn()) return;
    Image picture = colored(map.depth, map.lowest, map.highest, colors);
    if (options_.style == DrawStyle::overlay) picture = side_by_side(seen.source, picture);
    const char* const near = config->depth_unit == DepthUnit::inverse ? "large is near" : "large is far";
    add_picture(input,
                {short_name(input),
                 text(to_string(config->depth_unit), " ", map.lowest, " to ", map.highest, ", ", near)},
                std::move(picture));
  });
}

void Show::draw_segments() {
  const Model& model = run_.model();
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(
      config != nullptr &&
          (config->find(Output::masks) != nullptr || config->find(Output::classes) != nullptr),
      "show", model.report().path.string(),
      " has no head that gives classes or masks; what prompts of SAM 3 find is drawn by vit segment --html");
  const SegmentOptions options{.task = Segmenter::default_task(model)};
  const bool semantic = options.task == SegmentTask::semantic;
  const MapOutput* const of_pixels = config->find(Output::classes);
  const std::vector<Color> of_classes = class_colors(
      of_pixels != nullptr ? of_pixels->channels : config->find(Output::mask_classes)->channels - 1);
  for_each([&](const Input& input) {
    const SeenImage seen = see_maps(input);
    const ImageSize size = seen.source.size();
    const SegmentMap map = segments_of(outputs_[0], options, options_.common.session.threads);
    numbers_.add(array_name("segmentation"), {size.height, size.width}, map.map.flat());
    files_.push_back(input.name);
    if (!is_drawn()) return;
    const Image* const under = options_.style == DrawStyle::overlay ? &seen.source : nullptr;
    add_picture(input, {short_name(input), map.segments.empty() ? "no segments" : list_of(map.segments)},
                colored_ids(map.map, semantic ? of_classes : segment_colors(map.segments.size()), under));
  });
}

SeenImage Show::see_maps(const Input& input) {
  const Request request = run_.model().dense_config()->request();
  return run_.run(
      input, [&](const PatchLayout&) { return request; }, outputs_);
}

}  // namespace vit::app
