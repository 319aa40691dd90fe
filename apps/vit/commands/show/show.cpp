// vit show: pictures of what a model sees, and the numbers behind them.
#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/command.h"
#include "apps/vit/commands/show/number_file.h"
#include "apps/vit/commands/show/picture_sink.h"
#include "apps/vit/commands/show/show_options.h"
#include "apps/vit/common/image_run.h"
#include "apps/vit/common/interrupt.h"
#include "apps/vit/common/output_file.h"
#include "apps/vit/common/usage_error.h"
#include "vit/analysis/nearest.h"
#include "vit/analysis/pca.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "Kinds:\n"
    "  pca         first three principal components of the patches of all inputs as red, green and blue; "
    "the\n"
    "              largest loading of each is positive\n"
    "  attention   softmax weights of the query over the patches, of one head, all, or their mean\n"
    "  similarity  cosine of the patch at --query in the first input with all patches of all inputs\n"
    "  match       two inputs: lines between patches that are each other's nearest by cosine\n"
    "Patches are those after the final norm for the last block, and what leaves the block for another "
    "--layer.\n"
    "Class and register tokens are left out. X,Y is a pixel of the source image.\n"
    "--foreground splits at zero of component 1; the side with more patches on the borders is the "
    "background.\n"
    "Arrays of --data: pca mean (C), components (3, C), values.I (h, w, 3), with --foreground foreground.I "
    "(h, w);\n"
    "  attention attention.I (heads, h, w), with --rollout (1, h, w); similarity similarity.I (h, w);\n"
    "  match pairs (m, 4) as x0, y0, x1, y1 in source pixels, scores (m). files lists the inputs, I counts "
    "them.\n"
    "Examples:\n"
    "  vit show photos/ --what pca --foreground --output pca.png\n"
    "  vit show photo.jpg --what attention --head all --size 448 --output heads.png\n"
    "  vit show a.jpg b.jpg --what similarity --query 120,80 --output similar/ --data similar.npz\n"
    "  vit show a.jpg b.jpg --what match --output match.png";

constexpr std::size_t kMaxLinesDrawn = 100;

/// Rows of patches without the tokens in front: after the final norm for the last block.
Request patch_request(std::size_t layer, const ModelConfig& config) {
  Request request;
  if (layer + 1 == config.depth) {
    request.tokens = true;
  } else {
    request.blocks = {layer};
  }
  return request;
}

/// (h w, C); what patch_request() asked for.
TensorView<const float> patches_of(const ImageOutputs& outputs, const Request& request) {
  const TensorView<const float> tokens = request.tokens ? outputs.tokens() : outputs.block(0);
  const std::size_t prefix = outputs.num_prefix_tokens();
  const TensorView<const float> patches = tokens.part(prefix, tokens.dim(0) - prefix);
  VIT_CHECK(are_finite(patches.flat()), "show", "the features are not finite; damaged pixels or weights?");
  return patches;
}

std::string grid_text(GridSize grid, std::size_t patch_size, DrawStyle style) {
  return text(grid.columns, " x ", grid.rows, " patches of ", patch_size, " pixels of the model's input, ",
              style == DrawStyle::plain ? "nearest" : "bilinear");
}

/// One run of the command.
class Show {
 public:
  Show(const ShowOptions& options, std::vector<Input> inputs, PatchRun& run, Progress& progress)
      : options_(options),
        inputs_(std::move(inputs)),
        run_(run),
        progress_(progress),
        layer_(resolve_layer(options, run.model().config())),
        request_(patch_request(layer_, run.model().config())),
        numbers_(options.data),
        sink_(options.output, *options.what == What::match ? 1 : inputs_.size()) {}

  void draw() {
    switch (*options_.what) {
      case What::pca: draw_pca(); break;
      case What::attention: draw_attention(); break;
      case What::similarity: draw_similarity(); break;
      case What::match: draw_match(); break;
    }
    if (!files_.empty()) numbers_.write(files_);
    sink_.finish();
  }
  std::string summary() const { return sink_.is_used() ? sink_.summary() : options_.data.string(); }

 private:
  /// Calls work(input) for each input; what it throws is reported as the failure of that input.
  template <typename Work>
  void for_each(const Work& work) {
    for (const Input& input : inputs_) {
      if (interrupted()) return;
      try {
        work(input);
        progress_.add_done(1);
      } catch (const Error& error) {
        progress_.add_failed(input.name, error.what());
      } catch (const std::bad_alloc&) {
        progress_.add_failed(input.name, "not enough memory for an image of this size; try a smaller --size");
      }
    }
  }

  SeenImage see_patches(const Input& input) {
    return run_.run(
        input, [this](const PatchLayout&) { return request_; }, outputs_);
  }

  std::string layer_text() const { return text("block ", layer_); }
  std::string patch_text() const {
    return request_.tokens ? "patches after the final norm" : text("patches after block ", layer_);
  }
  std::string array_name(const char* name) const { return text(name, ".", files_.size()); }

  void draw_maps_of(const Input& input, const MapPicture& picture) {
    if (!sink_.is_used()) return;
    sink_.add(input.name, draw_maps(picture, {.style = options_.style, .max_edge = sink_.max_edge()}));
  }
  std::string name_text(const Input& input) const {
    return std::filesystem::path(input.name).filename().string();
  }

  void draw_pca();
  void draw_attention();
  void draw_similarity();
  void draw_match();
  PatchMap attention_map(std::size_t head, GridSize grid, std::span<const float> weights) const;
  std::size_t query_token(const PatchLayout& layout) const;

  const ShowOptions& options_;
  std::vector<Input> inputs_;
  PatchRun& run_;
  Progress& progress_;
  std::size_t layer_;
  Request request_;
  NumberFile numbers_;
  PictureSink sink_;
  Outputs outputs_;
  std::vector<std::string> files_;  // inputs that are done
};

// ------------------------------------------------------------------------------------------------------ PCA

/// The components of one image and its place among the inputs.
struct PcaImage {
  const Input* input;
  GridSize grid;
  Tensor<float> values;  // (h w, 3)
};

/// Where the middle 98 % of a component lie; patches that are hidden do not count.
std::pair<float, float> range_of(std::span<const PcaImage> images, std::size_t component,
                                 const std::vector<std::vector<std::uint8_t>>& is_shown) {
  std::vector<float> all;
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (std::size_t row = 0; row < images[i].values.dim(0); ++row) {
      if (is_shown[i].empty() || is_shown[i][row] != 0)
        all.push_back(images[i].values.view().row(row)[component]);
    }
  }
  if (all.empty()) return {0.0f, 1.0f};
  std::ranges::sort(all);
  const std::size_t cut = all.size() / 100;
  return {all[cut], all[all.size() - 1 - cut]};
}

/// For each image 1 where a patch is on the foreground's side of zero of component 1: the side with fewer of
/// the patches on the borders of the images.
std::vector<std::vector<std::uint8_t>> foreground_of(std::span<const PcaImage> images) {
  std::size_t border = 0, positive_border = 0;
  for (const PcaImage& image : images) {
    for (std::size_t i = 0; i < image.values.dim(0); ++i) {
      const std::size_t row = i / image.grid.columns, column = i % image.grid.columns;
      if (row != 0 && column != 0 && row + 1 != image.grid.rows && column + 1 != image.grid.columns) continue;
      ++border;
      if (image.values.view().row(i)[0] > 0) ++positive_border;
    }
  }
  const bool is_positive = 2 * positive_border <= border;
  std::vector<std::vector<std::uint8_t>> out;
  for (const PcaImage& image : images) {
    std::vector<std::uint8_t>& is_shown = out.emplace_back();
    for (std::size_t i = 0; i < image.values.dim(0); ++i)
      is_shown.push_back((image.values.view().row(i)[0] > 0) == is_positive ? 1 : 0);
  }
  return out;
}

void Show::draw_pca() {
  PcaAccumulator accumulator;
  Spool spool(options_.data.empty() && sink_.is_used() ? options_.output
                                                       : options_.data);  // (h w, C) of each image
  std::vector<PcaImage> images;
  std::size_t width = 0;
  for_each([&](const Input& input) {
    const SeenImage seen = see_patches(input);
    const TensorView<const float> patches = patches_of(outputs_[0], request_);
    width = patches.num_columns();
    accumulator.add(patches);
    spool.append(std::as_bytes(patches.flat()));
    images.push_back({&input, seen.layout.grid, {}});
  });
  if (images.empty()) return;
  const PrincipalComponents pca = accumulator.fit(3);
  numbers_.add("mean", {width}, pca.mean.flat());
  numbers_.add("components", {3, width}, pca.components.flat());
  const auto* features = reinterpret_cast<const float*>(spool.view().data());
  for (PcaImage& image : images) {
    const std::size_t count = image.grid.rows * image.grid.columns;
    image.values = pca.transform({features, Shape{count, width}});
    features += count * width;
  }
  const std::vector<std::vector<std::uint8_t>> is_shown =
      options_.foreground ? foreground_of(images) : std::vector<std::vector<std::uint8_t>>(images.size());
  std::array<std::pair<float, float>, 3> ranges;
  for (std::size_t k = 0; k < 3; ++k) ranges[k] = range_of(images, k, is_shown);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const PcaImage& image = images[i];
    numbers_.add(array_name("values"), {image.grid.rows, image.grid.columns, 3}, image.values.flat());
    if (options_.foreground)
      numbers_.add(array_name("foreground"), {image.grid.rows, image.grid.columns}, is_shown[i]);
    files_.push_back(image.input->name);
    if (!sink_.is_used()) continue;
    PatchMap map{.title = "", .values = {}, .is_shown = is_shown[i]};
    for (std::size_t k = 0; k < image.values.num_elements(); ++k) {
      const auto [low, high] = ranges[k % 3];
      map.values.push_back(high > low ? std::clamp((image.values.data()[k] - low) / (high - low), 0.0f, 1.0f)
                                      : 0.5f);
    }
    const SeenImage seen = run_.look_at(*image.input);
    draw_maps_of(*image.input,
                 {.image = seen,
                  .maps = {std::move(map)},
                  .caption = {name_text(*image.input),
                              text("red, green, blue: components 1, 2, 3 of ", patch_text(), " of ",
                                   images.size(), images.size() == 1 ? " image" : " images",
                                   options_.foreground ? ", background hidden" : ""),
                              grid_text(image.grid, seen.layout.patch_size, options_.style)}});
  }
}

// ------------------------------------------------------------------------------------------------ attention

std::size_t Show::query_token(const PatchLayout& layout) const {
  if (!options_.pixel) return 0;  // the class token stands in front
  return run_.model().config().num_prefix_tokens() + layout.patch_at(options_.pixel->x, options_.pixel->y);
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

void Show::draw_attention() {
  const ModelConfig& config = run_.model().config();
  if (!options_.pixel && !config.class_token)
    fail_usage("--query: this model has no class token; name a patch of the image: --query X,Y");
  if (options_.heads == HeadChoice::one && options_.head >= config.num_heads)
    fail_usage("--head: the model has ", config.num_heads, " heads, 0 to ", config.num_heads - 1, ", found ",
               options_.head);
  const auto request = [&](const PatchLayout& layout) {
    const AttentionQuery query{layer_, query_token(layout)};
    return options_.rollout ? Request{.rollout = {query}} : Request{.attention_queries = {query}};
  };
  const std::string who =
      options_.pixel ? text("pixel ", options_.pixel->x, ",", options_.pixel->y) : "the class token";
  const std::string which = options_.rollout ? text("blocks 0 to ", layer_)
                            : options_.heads == HeadChoice::mean
                                ? text(layer_text(), ", mean of ", config.num_heads, " heads")
                            : options_.heads == HeadChoice::one ? text(layer_text(), ", head ", options_.head)
                                                                : layer_text();
  for_each([&](const Input& input) {
    const SeenImage seen = run_.run(input, request, outputs_);
    const std::size_t count = seen.layout.num_patches(), heads = options_.rollout ? 1 : config.num_heads;
    std::vector<float> weights;  // (heads, h, w)
    for (std::size_t head = 0; head < heads; ++head) {
      const std::span<const float> row = options_.rollout
                                             ? outputs_[0].rollout(0)
                                             : std::span(outputs_[0].attention_query(0).row(head),
                                                         outputs_[0].attention_query(0).num_columns());
      const std::span<const float> of_patches = row.last(count);
      weights.insert(weights.end(), of_patches.begin(), of_patches.end());
    }
    VIT_CHECK(are_finite(weights), "show", "the attention is not finite; damaged pixels or weights?");
    numbers_.add(array_name("attention"), {heads, seen.layout.grid.rows, seen.layout.grid.columns}, weights);
    files_.push_back(input.name);
    std::vector<PatchMap> maps;
    if (options_.heads == HeadChoice::all) {
      for (std::size_t head = 0; head < heads; ++head)
        maps.push_back(attention_map(head, seen.layout.grid, weights));
    } else {
      maps.push_back(attention_map(options_.head, seen.layout.grid, weights));
    }
    MapPicture picture{
        .image = seen,
        .maps = std::move(maps),
        .caption = {name_text(input),
                    text(options_.rollout ? "attention rollout of " : "attention of ", who, ", ", which),
                    grid_text(seen.layout.grid, seen.layout.patch_size, options_.style)}};
    if (options_.pixel) picture.marked_patch = seen.layout.patch_at(options_.pixel->x, options_.pixel->y);
    draw_maps_of(input, picture);
  });
}

// ------------------------------------------------------------------------------------- similarity and match

void Show::draw_similarity() {
  std::vector<float> query;  // (C), a patch of the first input
  const std::string first_name = inputs_.empty() ? "" : inputs_.front().name;
  bool is_first = true;
  for_each([&](const Input& input) {
    const bool is_source = std::exchange(is_first, false);
    VIT_CHECK(is_source || !query.empty(), "show", "the patch to compare with is missing, because ",
              first_name, " failed");
    const SeenImage seen = see_patches(input);
    const TensorView<const float> patches = patches_of(outputs_[0], request_);
    std::optional<std::size_t> marked;
    if (is_source) {
      marked = seen.layout.patch_at(options_.pixel->x, options_.pixel->y);
      query.assign(patches.row(*marked), patches.row(*marked) + patches.num_columns());
    }
    PatchMap map{.title = "", .values = {}, .low = -1, .high = 1, .is_shown = {}};
    for (std::size_t i = 0; i < patches.num_rows(); ++i)
      map.values.push_back(
          static_cast<float>(cosine_similarity(query, {patches.row(i), patches.num_columns()})));
    numbers_.add(array_name("similarity"), {seen.layout.grid.rows, seen.layout.grid.columns}, map.values);
    files_.push_back(input.name);
    draw_maps_of(
        input,
        {.image = seen,
         .maps = {std::move(map)},
         .caption = {name_text(input),
                     text("cosine of ", patch_text(), " with the patch at ", options_.pixel->x, ",",
                          options_.pixel->y,
                          is_source ? "" : " of " + std::filesystem::path(first_name).filename().string()),
                     grid_text(seen.layout.grid, seen.layout.patch_size, options_.style)},
         .marked_patch = marked});
  });
}

void Show::draw_match() {
  std::vector<SeenImage> images;
  std::vector<Tensor<float>> features;  // (h w, C)
  for_each([&](const Input& input) {
    SeenImage seen = see_patches(input);
    const TensorView<const float> patches = patches_of(outputs_[0], request_);
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
  if (!sink_.is_used()) return;
  std::vector<std::size_t> order(pairs.size());  // best first, those drawn in the order of the first image
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
      text(name_text(inputs_[0]), " and ", name_text(inputs_[1])),
      text(shown, " pairs of ", patch_text(), " that are each other's nearest"),
      text(images[0].layout.grid.columns, " x ", images[0].layout.grid.rows, " and ",
           images[1].layout.grid.columns, " x ", images[1].layout.grid.rows,
           " patches; lines join their centers")};
  sink_.add(inputs_[0].name, draw_matches(images[0], images[1], lines, caption, {.max_edge = 768}));
}

int show(const ShowOptions& options) {
  check_show_options(options);
  const InputList list = list_inputs(options.inputs, std::cin);
  if (*options.what == What::match && list.inputs.size() + list.failures.size() != 2)
    fail_usage("--what match takes two images, found ", list.inputs.size());
  for (const std::filesystem::path& path : {options.output, options.data}) {
    if (path.empty()) continue;
    check_no_input(path, list.inputs);
    check_no_weights(path, options.common);
  }
  check_has_weights(options.common);
  PatchRun run(load_model(options.common), options.common.session);
  check_preprocessing(list.inputs, run.model());
  Progress progress("show", list.inputs.size(), options.common.progress_mode());
  Show work(options, list.inputs, run, progress);
  hold_interrupts();
  report_failures(list, progress);
  work.draw();
  progress.finish(work.summary());
  return exit_code(progress);
}

}  // namespace

Command show_command() {
  const auto options = std::make_shared<ShowOptions>();
  Command command{.name = "show",
                  .summary = "Draw what a model sees: PCA of patches, attention, similarity, matches",
                  .footer = kFooter,
                  .options = show_option_list(*options),
                  .run = [options] { return show(*options); }};
  add_common_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
