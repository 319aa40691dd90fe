// Depth and segments as pictures.
#include <algorithm>
#include <utility>
#include <vector>

#include "apps/vit/commands/show/show_run.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/run/image_run.h"
#include "vit/base/check.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr std::size_t kGap = 16;  // white columns between two pictures

/// One next to the other.
Image joined(const Image& left, const Image& right) {
  Image out(left.height(), left.width() + kGap + right.width());
  std::fill_n(out.data(), 3 * out.height() * out.width(), static_cast<unsigned char>(255));
  for (std::size_t y = 0; y < out.height(); ++y) {
    std::copy_n(left.row(y), 3 * left.width(), out.row(y));
    std::copy_n(right.row(y), 3 * right.width(), out.row(y) + 3 * (left.width() + kGap));
  }
  return out;
}

/// The colors of ids, half transparent over the source unless that is null; black where there is none.
Image segment_picture(const SegmentMap& map, const Image* source, bool semantic) {
  Image out(map.map.dim(0), map.map.dim(1));
  const bool ade20k = semantic && map.segments.size() > 21;
  for (std::size_t i = 0; i < map.map.num_elements(); ++i) {
    const std::int32_t id = map.map.data()[i];
    const auto index = static_cast<std::size_t>(std::max(id, 0)) + (semantic ? 0 : 1);
    const Color color = id < 0 ? Color{} : ade20k ? ade20k_color(index) : voc_color(index);
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned over = source != nullptr ? (color[c] + source->data()[3 * i + c] + 1u) / 2u : color[c];
      out.data()[3 * i + c] = static_cast<unsigned char>(over);
    }
  }
  return out;
}

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
  VIT_CHECK(config != nullptr && config->find(MapMeaning::depth) != nullptr, "show",
            run_.model().report().path.string(), " has no head that gives depth");
  const ColorMap colors = color_map(config->depth_unit == DepthUnit::inverse ? "Spectral_r" : "Spectral");
  for_each([&](const Input& input) {
    const SeenImage seen = see_maps(input);
    const DepthMap map = depth_of(outputs_[0], *config, seen.source.size(), options_.common.session.threads);
    VIT_CHECK(are_finite(map.depth.flat()), "show", "the depth is not finite; damaged pixels or weights?");
    numbers_.add(array_name("depth"), {map.depth.dim(0), map.depth.dim(1)}, map.depth.flat());
    files_.push_back(input.name);
    if (!is_drawn()) return;
    Image picture = colored(map.depth, map.lowest, map.highest, colors);
    if (options_.style == DrawStyle::overlay) picture = joined(seen.source, picture);
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
  VIT_CHECK(config != nullptr &&
                (config->find(MapMeaning::masks) != nullptr || config->find(MapMeaning::classes) != nullptr),
            "show", model.report().path.string(), " has no head that gives classes or masks");
  const SegmentOptions options{.task = default_task(model)};
  const bool semantic = options.task == SegmentTask::semantic;
  for_each([&](const Input& input) {
    const SeenImage seen = see_maps(input);
    const ImageSize size = seen.source.size();
    const MaskFrame frame = input.pixels != nullptr ? MaskFrame{.pixels = size, .content = size}
                                                    : MaskFrame::of(run_.preprocessor(), size);
    const SegmentMap map =
        segments_of(outputs_[0], *config, frame, size, options, options_.common.session.threads);
    std::vector<float> ids(map.map.flat().begin(), map.map.flat().end());
    numbers_.add(array_name("segmentation"), {size.height, size.width}, ids);
    files_.push_back(input.name);
    if (!is_drawn()) return;
    const Image* const under = options_.style == DrawStyle::overlay ? &seen.source : nullptr;
    add_picture(input, {short_name(input), map.segments.empty() ? "no segments" : list_of(map.segments)},
                segment_picture(map, under, semantic));
  });
}

SeenImage Show::see_maps(const Input& input) {
  Request request;
  request.set_maps();
  return run_.run(
      input, [&](const PatchLayout&) { return request; }, outputs_);
}

}  // namespace vit::app
