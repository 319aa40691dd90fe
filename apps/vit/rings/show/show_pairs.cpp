// Compares patches with one patch, and patches of two images with each other.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "apps/vit/rings/show/show_run.h"
#include "vit/analysis/features.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kMaxLinesDrawn = 100;

}  // namespace

void Show::draw_similarity() {
  std::vector<float> query;  // (C), a patch of the first input
  const std::string first_name = inputs_.empty() ? "" : inputs_.front().name;
  bool is_first = true;
  for_each([&](const Input& input) {
    const bool is_source = std::exchange(is_first, false);
    VIT_CHECK(is_source || !query.empty(), "show", "the patch to compare with is missing, because ",
              first_name, " failed");
    const SeenImage seen = see_patches(input);
    const TensorView<const float> patches = this->patches();
    std::optional<std::size_t> marked;
    if (is_source) {
      marked = seen.layout.patch_at(options_.pixel->x, options_.pixel->y);
      query.assign(patches.row(*marked), patches.row(*marked) + patches.num_columns());
    }
    PatchMap map{.title = "", .values = {}, .low = 0, .high = 1, .is_shown = {}};
    for (std::size_t i = 0; i < patches.num_rows(); ++i)
      map.values.push_back(
          static_cast<float>(cosine_similarity(query, {patches.row(i), patches.num_columns()})));
    numbers_.add(array_name("similarity"), {seen.layout.grid.rows, seen.layout.grid.columns}, map.values);
    files_.push_back(input.name);
    add_map_picture(
        input,
        {.image = seen,
         .maps = {std::move(map)},
         .caption = {short_name(input),
                     text("cosine of ", patch_text(), " with the patch at ", options_.pixel->x, ",",
                          options_.pixel->y,
                          is_source ? "" : " of " + std::filesystem::path(first_name).filename().string()),
                     grid_text(seen.layout)},
         .marked_patch = marked});
  });
}

void Show::draw_match() {
  std::vector<SeenImage> images;
  std::vector<Tensor<float>> features;  // (h w, C)
  for_each([&](const Input& input) {
    SeenImage seen = see_patches(input);
    const TensorView<const float> patches = this->patches();
    std::ranges::copy(patches.flat(), features.emplace_back(patches.shape()).data());
    images.push_back(std::move(seen));
    files_.push_back(input.name);
  });
  if (images.size() != 2) return files_.clear();
  const std::vector<NearestPair> pairs =
      mutual_nearest(features[0], features[1], options_.common.session.threads);
  std::vector<float> points, scores;
  for (const NearestPair& pair : pairs) {
    const SourcePoint from = images[0].layout.center(pair.first), to = images[1].layout.center(pair.second);
    for (const double number : {from.x, from.y, to.x, to.y}) points.push_back(static_cast<float>(number));
    scores.push_back(static_cast<float>(pair.cosine));
  }
  numbers_.add("pairs", {pairs.size(), 4}, points);
  numbers_.add("scores", {pairs.size()}, scores);
  if (!is_drawn()) return;
  std::vector<std::size_t> order(pairs.size());  // best first; those drawn in the order of the first image
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return pairs[a].cosine > pairs[b].cosine; });
  order.resize(std::min(order.size(), kMaxLinesDrawn));
  std::ranges::sort(order);
  std::vector<MatchLine> lines;
  for (const std::size_t i : order)
    lines.push_back({images[0].layout.center(pairs[i].first), images[1].layout.center(pairs[i].second)});
  const std::string shown = lines.size() < pairs.size()
                                ? text("the best ", lines.size(), " of ", pairs.size())
                                : text(pairs.size());
  const std::vector<std::string> caption{
      text(short_name(inputs_[0]), " and ", short_name(inputs_[1])),
      text(shown, pairs.size() == 1 ? " pair of " : " pairs of ", patch_text(),
           " that are mutual nearest neighbors"),
      text(images[0].layout.grid.columns, " x ", images[0].layout.grid.rows, " and ",
           images[1].layout.grid.columns, " x ", images[1].layout.grid.rows,
           " patches; lines join their centers")};
  if (!options_.html.empty())
    add_to_page(inputs_[0], caption, draw_matches(images[0], images[1], lines, {}, {.max_edge = 768}));
  if (sink_.is_used())
    sink_.add(inputs_[0].name, draw_matches(images[0], images[1], lines, caption, {.max_edge = 768}));
}

}  // namespace vit::app
