// Attention of a query over the patches.
#include <algorithm>
#include <utility>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/show/show_run.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"

namespace vit::app {

std::size_t Show::query_token(const PatchLayout& layout) const {
  const ModelConfig& config = run_.model().config();
  const std::size_t prefix = config.num_prefix_after(layer_);
  // the class token is the first of those that do not enter late
  if (!options_.pixel) return prefix - config.num_prefix_tokens();
  return prefix + layout.patch_at(options_.pixel->x, options_.pixel->y);
}

PatchMap Show::attention_map(std::size_t head, GridSize grid, std::span<const float> weights) const {
  const std::size_t count = grid.rows * grid.columns, heads = weights.size() / count;
  PatchMap map{.title = "", .values = std::vector<float>(count), .is_shown = {}};
  if (options_.heads == HeadChoice::mean) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      map.values[i % count] += weights[i] / static_cast<float>(heads);
  } else {
    std::ranges::copy(weights.subspan(head * count, count), map.values.begin());
  }
  map.high = static_cast<double>(std::ranges::max(map.values));
  if (options_.heads == HeadChoice::all)
    map.title = text("head ", head, ", 0 to ", static_cast<float>(map.high));
  return map;
}

void Show::check_attention() const {
  const ModelConfig& config = run_.model().config();
  if (!options_.pixel && !config.tokens.class_token)
    fail_usage("--query: this model has no class token; name a patch of the image: --query X,Y");
  if (options_.heads == HeadChoice::one && options_.head >= config.attention.num_heads) {
    fail_usage("--head: the model has ", config.attention.num_heads, " heads, 0 to ",
               config.attention.num_heads - 1, ", found ", options_.head);
  }
}

std::string Show::attention_text() const {
  std::string out = options_.rollout ? "attention rollout of " : "attention of ";
  out += options_.pixel ? text("pixel ", options_.pixel->x, ",", options_.pixel->y) : "the class token";
  if (options_.rollout) return out + text(", blocks 0 to ", layer_);
  out += text(", block ", layer_);
  if (options_.heads == HeadChoice::mean)
    out += text(", mean of ", run_.model().config().attention.num_heads, " heads");
  if (options_.heads == HeadChoice::one) out += text(", head ", options_.head);
  return out;
}

void Show::draw_attention() {
  const auto wanted = [&](const PatchLayout& layout) {
    return OutputKey(options_.rollout ? Output::rollout : Output::attention_query, layer_,
                     query_token(layout));
  };
  for_each([&](const Input& input) {
    const SeenImage seen = run_.run(
        input, [&](const PatchLayout& layout) { return Request{wanted(layout)}; }, outputs_);
    const TensorView<const float> rows =
        outputs_[0][wanted(seen.layout)];  // (heads, T), or (T) for a rollout
    const std::size_t count = seen.layout.num_patches(),
                      heads = options_.rollout ? 1 : run_.model().config().attention.num_heads;
    std::vector<float> weights;  // (heads, h, w)
    for (std::size_t head = 0; head < heads; ++head) {
      const std::span<const float> row(rows.row(head), rows.num_columns());
      const std::span<const float> of_patches = row.last(count);
      weights.insert(weights.end(), of_patches.begin(), of_patches.end());
    }
    check_finite(weights, "show", "the attention is");
    numbers_.add(array_name("attention"), {heads, seen.layout.grid.rows, seen.layout.grid.columns}, weights);
    files_.push_back(input.name);
    std::vector<PatchMap> maps;
    if (options_.heads == HeadChoice::all) {
      for (std::size_t head = 0; head < heads; ++head)
        maps.push_back(attention_map(head, seen.layout.grid, weights));
    } else {
      maps.push_back(attention_map(options_.head, seen.layout.grid, weights));
    }
    MapPicture picture{.image = seen,
                       .maps = std::move(maps),
                       .caption = {short_name(input), attention_text(), grid_text(seen.layout)}};
    if (options_.pixel) picture.marked_patch = seen.layout.patch_at(options_.pixel->x, options_.pixel->y);
    add_map_picture(input, std::move(picture));
  });
}

}  // namespace vit::app
