#include "vit/prompts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "vit/api/layers_of.h"
#include "vit/base/check.h"
#include "vit/base/rounded.h"
#include "vit/config.h"
#include "vit/image/resample.h"
#include "vit/image/resize_memory.h"
#include "vit/rings/prompts/prompt_parts.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kPromptsWhere{"PromptSegmenter", ErrorKind::argument};
constexpr const char* kNoWords = "visual";  // the word of a prompt of only boxes
constexpr std::size_t kMaxKeptTexts = 4096;

/// A box as the model reads it.
ExampleBox example_of(const PromptBox& given, ImageSize image) {
  const Box& box = given.box;
  for (const double edge : {box.x0, box.y0, box.x1, box.y1})
    VIT_CHECK(std::isfinite(edge), kPromptsWhere, "the box ", box.x0, ", ", box.y0, ", ", box.x1, ", ",
              box.y1, " of a prompt is not finite");
  VIT_CHECK(box.x0 < box.x1 && box.y0 < box.y1 && box.x1 > 0 && box.y1 > 0 &&
                box.x0 < static_cast<double>(image.width) && box.y0 < static_cast<double>(image.height),
            kPromptsWhere, "the box ", box.x0, ", ", box.y0, ", ", box.x1, ", ", box.y1,
            " (x0, y0, x1, y1) of a prompt is empty or outside of the image of ", image.width, " x ",
            image.height, " pixels");
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  return {.cx = (box.x0 + box.x1) / 2 / width,
          .cy = (box.y0 + box.y1) / 2 / height,
          .width = (box.x1 - box.x0) / width,
          .height = (box.y1 - box.y0) / height,
          .positive = given.positive};
}

/// Points and box in pixels of the model's input, whose edges are those of the image.
ClickInput click_input_of(const ObjectPrompt& prompt, ImageSize image, std::size_t edge,
                          std::vector<ClickPoint>& points) {
  const double by_x = static_cast<double>(edge) / static_cast<double>(image.width);
  const double by_y = static_cast<double>(edge) / static_cast<double>(image.height);
  for (const ObjectPoint& point : prompt.points) {
    VIT_CHECK(std::isfinite(point.x) && std::isfinite(point.y), kPromptsWhere, "the point ", point.x, ", ",
              point.y, " of a prompt is not finite");
    VIT_CHECK(point.x >= 0 && point.x <= static_cast<double>(image.width) && point.y >= 0 &&
                  point.y <= static_cast<double>(image.height),
              kPromptsWhere, "the point ", point.x, ", ", point.y, " of a prompt is outside of the image of ",
              image.width, " x ", image.height, " pixels");
    points.push_back({.x = point.x * by_x, .y = point.y * by_y, .positive = point.positive});
  }
  for (const float logit : prompt.mask.empty() ? std::span<const float>() : prompt.mask.flat())
    VIT_CHECK(std::isfinite(logit), kPromptsWhere, "the mask of a prompt holds ", logit,
              ", which is not finite");
  ClickInput out;
  if (!prompt.box) return out;
  example_of({.box = *prompt.box}, image);  // whose checks are the same
  const Box& box = *prompt.box;
  out.box = {box.x0 * by_x, box.y0 * by_y, box.x1 * by_x, box.y1 * by_y};
  return out;
}

/// The mask of a prompt at the size of the model's, by the library's interpolation with antialias.
TensorView<const float> mask_of_size(TensorView<const float> mask, std::size_t edge, int threads,
                                     Tensor<float>& own) {
  if (mask.empty() || (mask.rank() == 2 && mask.dim(0) == edge && mask.dim(1) == edge)) return mask;
  VIT_CHECK(mask.rank() == 2, kPromptsWhere, "the mask of a prompt is ", mask.shape().to_string(),
            ", expected (h, w)");
  own = Tensor<float>(Shape{1, edge, edge});
  Tensor<float> plane(Shape{1, mask.dim(0), mask.dim(1)});
  for (std::size_t y = 0; y < mask.dim(0); ++y) std::copy_n(mask.row(y), mask.dim(1), plane.view()[0].row(y));
  ResizeMemory memory;
  resize_planes(plane, {edge, edge}, {.top = 0, .left = 0, .height = edge, .width = edge},
                ResizeFilter::bilinear, threads, memory, own);
  return {own.data(), Shape{edge, edge}};
}

void check_options(const PromptOptions& options) {
  check_choice(kPromptsWhere, "rule", options.rule, PromptRule::repository);
  for (const double threshold : {options.threshold, options.mask_threshold})
    VIT_CHECK(threshold >= 0.0 && threshold <= 1.0, kPromptsWhere, "a threshold must be 0 to 1, got ",
              threshold);
}

}  // namespace

PromptModel::PromptModel(std::unique_ptr<const PromptParts> parts) : parts_(std::move(parts)) {}
PromptModel::~PromptModel() = default;

namespace {

/// The text tower of a detector; adds the number of its parameters.
TextTransformer load_text(const CheckpointFolder& folder, std::size_t dim, const kernels::KernelTable& table,
                          std::size_t& num_parameters) {
  const internal::LoadedTower text = folder.load<TextConfig>();
  VIT_CHECK(text.config.pooling == TextPooling::none && text.config.projection_dim == dim,
            (Where{"load_checkpoint", ErrorKind::mismatch}), folder.path().string(), ": texts of ",
            text.config.embedding_dim(), " numbers for a detector of ", dim);
  num_parameters += text.report.num_parameters;
  return {text.config, text.weights, table, folder.options().precision};
}

}  // namespace

std::shared_ptr<const PromptModel> PromptModel::load(const std::filesystem::path& path,
                                                     const ModelOptions& options,
                                                     const TextOptions& text_options) {
  const CheckpointFolder folder(path, options);
  const kernels::KernelTable& table = kernels::find_kernels(options.kernels);
  internal::LoadedTower found = folder.load<PromptConfig>();
  const PromptConfig& config = found.config;
  auto parts = std::make_unique<PromptParts>();
  parts->image = LayersOf::load_image(folder);
  parts->config = config;
  parts->kernels = &table;
  if (config.has_detector) {
    parts->text.emplace(load_text(folder, config.dim, table, parts->num_text_parameters));
    parts->tokenizer = Tokenizer::load_for_model(
        folder.path(), text_options.tokenizer,
        {.library = text_options.library, .vocabulary_size = parts->text->config().vocabulary_size});
    parts->detector.emplace(config, found.weights, table, options.precision);
  }
  if (config.clicks)
    parts->clicks.emplace(build_click_decoder(config, found.weights, table, options.precision));
  parts->report = std::move(found.report);
  return PromptParts::share(std::move(parts));
}

bool PromptModel::is_at(const std::filesystem::path& path, const ModelOptions& options) {
  return CheckpointFolder(path, options).parsed<PromptConfig>().has_value();
}

const std::shared_ptr<const Model>& PromptModel::image() const noexcept {
  return parts_->image;
}
const LoadReport& PromptModel::report() const noexcept {
  return parts_->report;
}
bool PromptModel::takes(PromptUse use) const noexcept {
  return (use == PromptUse::objects || parts_->detector) && (use == PromptUse::phrases || parts_->clicks);
}
std::size_t PromptModel::num_parameters() const noexcept {
  return parts_->image->report().num_parameters + parts_->report.num_parameters + parts_->num_text_parameters;
}
Request PromptModel::request() const {
  return Request{OutputKey{Output::block, parts_->image->config().encoder.depth - 1}};
}
std::size_t PromptModel::num_queries() const noexcept {
  return parts_->config.has_detector ? parts_->config.num_queries : 0;
}
std::size_t PromptModel::mask_size() const noexcept {
  return 4 * parts_->config.grid;
}

PromptFeatures::PromptFeatures(std::unique_ptr<KeptMaps> maps) : maps_(std::move(maps)) {}
PromptFeatures::~PromptFeatures() = default;
ImageSize PromptFeatures::image() const noexcept {
  return maps_->image;
}
std::size_t PromptFeatures::bytes() const noexcept {
  return maps_->maps.bytes() + maps_->clicks.bytes();
}

struct PromptSegmenter::State {
  std::shared_ptr<const PromptModel> model;
  PromptSegmenterOptions options;
  Session session;
  Outputs outputs;
  TextMemory texts;
  std::map<std::string, Tensor<float>, std::less<>> vectors;  // (tokens, D) of phrases
  PromptMemory memory;
  FoundQueries found;
  std::vector<ExampleBox> boxes;
  ClickOutput clicked;

  Session new_session() const { return Session(model->image(), {.threads = options.threads, .batch = 1}); }
  const PromptParts& parts() const { return PromptParts::of(*model); }
  void require(PromptUse use) const {
    check_choice(kPromptsWhere, "use", use, PromptUse::both);
    VIT_CHECK(model->takes(use), kPromptsWhere.with(ErrorKind::unsupported), parts().report.path.string(),
              use == PromptUse::objects ? ": has no part for points" : ": has no detector of phrases",
              "; the whole model has both (model_type sam3_video)");
  }

  /// Features mean something only to the model that made them.
  void require_own(const PromptFeatures& image) const {
    VIT_CHECK(image.maps_->model == model, kPromptsWhere.with(ErrorKind::mismatch),
              "the image was encoded by another model, ", image.maps_->model->report().path.string(),
              ", than that of the segmenter, ", parts().report.path.string());
  }

  /// The vectors of a phrase, without padding; valid until the next call.
  TensorView<const float> text_vectors(const std::string& phrase) {
    if (const auto known = vectors.find(phrase); known != vectors.end()) return known->second;
    const TextTransformer& tower = *parts().text;
    const TokenRow row = parts().tokenizer ? parts().tokenizer->encode(phrase, tower.config().context_length)
                                           : tokens_of_words(phrase, tower.config());
    VIT_CHECK(!row.cut, kPromptsWhere, "the phrase \"", phrase.substr(0, 80), phrase.size() > 80 ? "..." : "",
              "\" has more than the ", tower.config().context_length,
              " tokens of the model's context; a prompt is a short noun phrase");
    Tensor<float> out(Shape{row.count, tower.config().embedding_dim()});
    tower.forward_tokens({.ids = row.ids, .first = 0, .count = row.count}, out, options.threads, texts);
    if (vectors.size() >= kMaxKeptTexts) vectors.clear();
    return vectors.emplace(phrase, std::move(out)).first->second;
  }

  void find(const PromptFeatures& image, const Prompt& prompt, const PromptOptions& how) {
    check_options(how);
    require_own(image);
    VIT_CHECK(!prompt.text.empty() || !prompt.boxes.empty(), kPromptsWhere,
              "a prompt needs a text or at least one box");
    boxes.clear();
    for (const PromptBox& box : prompt.boxes) boxes.push_back(example_of(box, image.image()));
    VIT_CHECK(!image.maps_->maps.tokens.empty(), kPromptsWhere, "the image was not encoded for phrases");
    parts().detector->find(image.maps_->maps,
                           {.text = text_vectors(prompt.text.empty() ? kNoWords : prompt.text),
                            .boxes = boxes,
                            .always_class_token = how.rule == PromptRule::repository},
                           found, memory);
  }

  float score_of(std::size_t query) const {
    return static_cast<float>(sigmoid(found.logits[query]) * sigmoid(found.decoded.presence));
  }

  /// Queries above the threshold, best first.
  PromptInstances instances(ImageSize image, const PromptOptions& how) const {
    PromptInstances out;
    for (std::size_t query = 0; query < found.logits.size(); ++query) {
      if (score_of(query) > static_cast<float>(how.threshold)) out.queries.push_back(query);
    }
    std::ranges::stable_sort(out.queries, std::ranges::greater(),
                             [&](std::size_t query) { return score_of(query); });
    if (how.max_instances != 0 && out.queries.size() > how.max_instances)
      out.queries.resize(how.max_instances);
    const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
    for (const std::size_t query : out.queries) {
      const float* const box = found.decoded.boxes.view().row(query);
      out.scores.push_back(score_of(query));
      out.boxes.push_back(
          {.x0 = box[0] * width, .y0 = box[1] * height, .x1 = box[2] * width, .y1 = box[3] * height});
    }
    return out;
  }
};

PromptSegmenter::PromptSegmenter(std::shared_ptr<const PromptModel> model, PromptSegmenterOptions options) {
  VIT_CHECK(model != nullptr, kPromptsWhere, "no model");
  Session session(model->image(), {.threads = options.threads, .batch = 1});
  state_ = std::make_unique<State>(State{.model = std::move(model),
                                         .options = options,
                                         .session = std::move(session),
                                         .outputs = {},
                                         .texts = {},
                                         .vectors = {},
                                         .memory = {},
                                         .found = {},
                                         .boxes = {},
                                         .clicked = {}});
  state_->memory.threads = options.threads;
}
PromptSegmenter::~PromptSegmenter() = default;
PromptSegmenter::PromptSegmenter(PromptSegmenter&&) noexcept = default;
PromptSegmenter& PromptSegmenter::operator=(PromptSegmenter&&) noexcept = default;

PromptSegmenter::State& PromptSegmenter::state() const {
  VIT_CHECK(state_ != nullptr, kPromptsWhere, "the segmenter was moved from");
  return *state_;
}

const PromptModel& PromptSegmenter::model() const {
  return *state().model;
}

std::shared_ptr<const PromptFeatures> PromptSegmenter::encode(const ImageSource& image, PromptUse use) {
  State& s = state();
  s.require(use);
  s.session.run(image, s.model->request(), s.outputs);
  s.session = s.new_session();  // what the tower worked in is not kept while prompts are answered
  auto features = encode(s.outputs[0], use);
  s.outputs = {};
  return features;
}

std::shared_ptr<const PromptFeatures> PromptSegmenter::encode(const ImageOutputs& outputs, PromptUse use) {
  State& s = state();
  s.require(use);
  const PromptParts& parts = s.parts();
  const TensorView<const float> tokens = outputs.block(parts.image->config().encoder.depth - 1);
  auto kept = std::make_unique<KeptMaps>();
  kept->model = s.model;
  kept->image = outputs.frame().image;
  if (use != PromptUse::objects) parts.detector->encode(tokens, kept->maps, s.memory);
  if (use != PromptUse::phrases) parts.clicks->encode(tokens, kept->clicks, s.memory);
  return std::shared_ptr<const PromptFeatures>(new PromptFeatures(std::move(kept)));
}

PromptInstances PromptSegmenter::detect(const PromptFeatures& image, const Prompt& prompt,
                                        const PromptOptions& options) {
  State& s = state();
  s.find(image, prompt, options);
  return s.instances(image.image(), options);
}

PromptInstances PromptSegmenter::segment(const PromptFeatures& image, const Prompt& prompt,
                                         const PromptOptions& options) {
  State& s = state();
  s.find(image, prompt, options);
  PromptInstances out = s.instances(image.image(), options);
  const std::size_t count = out.queries.size(), edge = model().mask_size();
  if (count == 0) return out;  // no mask is computed
  const std::size_t pixels = image.image().height * image.image().width;
  VIT_CHECK(options.max_mask_bytes == 0 || count <= options.max_mask_bytes / pixels,
            kPromptsWhere.with(ErrorKind::unsupported), count, " masks of ", image.image().width, " x ",
            image.image().height, " pixels are more than ", options.max_mask_bytes,
            " bytes; a higher threshold leaves fewer instances");
  const TensorView<const float> states = s.found.decoded.states;
  Tensor<float> kept(Shape{count, states.num_columns()});
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(states.row(out.queries[i]), states.num_columns(), kept.view().row(i));
  Tensor<float> masks(Shape{count, edge, edge});
  s.parts().detector->masks(image.maps_->maps, kept, masks, {}, s.memory);
  out.masks = masks_of(masks, image.image(), options, s.parts().kernels->maps, s.options.threads);
  return out;
}

Tensor<float> PromptSegmenter::pixel_probabilities(const PromptFeatures& image, const Prompt& prompt,
                                                   const PromptOptions& options) {
  State& s = state();
  s.find(image, prompt, options);
  const std::size_t edge = model().mask_size();
  Tensor<float> semantic(Shape{edge, edge});
  s.parts().detector->masks(image.maps_->maps, {}, {}, semantic, s.memory);
  return probabilities_of(semantic, image.image(), options, s.parts().kernels->maps, s.options.threads);
}

ObjectMasks PromptSegmenter::segment_object(const PromptFeatures& image, const ObjectPrompt& prompt,
                                            const ObjectOptions& options) {
  State& s = state();
  check_choice(kPromptsWhere, "rule", options.rule, PromptRule::repository);
  s.require_own(image);
  VIT_CHECK(!image.maps_->clicks.tokens.empty(), kPromptsWhere, "the image was not encoded for objects");
  const ClickDecoder& decoder = *s.parts().clicks;
  std::vector<ClickPoint> points;
  const ClickInput input = click_input_of(prompt, image.image(), s.parts().config.image_size, points);
  Tensor<float> own;
  decoder.decode(image.maps_->clicks,
                 {.points = points,
                  .box = input.box,
                  .mask = mask_of_size(prompt.mask, model().mask_size(), s.options.threads, own),
                  .adds_no_memory = options.rule == PromptRule::repository},
                 s.clicked, s.memory);
  const std::size_t first = options.multimask ? 1 : decoder.choose(s.clicked);
  const std::size_t count = options.multimask ? decoder.config().num_masks : 1, edge = model().mask_size();
  ObjectMasks out{.scores = {s.clicked.ious.begin() + static_cast<std::ptrdiff_t>(first),
                             s.clicked.ious.begin() + static_cast<std::ptrdiff_t>(first + count)},
                  .object_logit = s.clicked.object,
                  .logits = Tensor<float>(Shape{count, edge, edge}),
                  .masks = {}};
  std::copy_n(s.clicked.masks.data() + first * edge * edge, count * edge * edge, out.logits.data());
  out.masks = masks_above(out.logits, image.image(), 0.0f, s.parts().kernels->maps, s.options.threads);
  return out;
}

PromptLogits PromptSegmenter::logits(const PromptFeatures& image, const Prompt& prompt,
                                     const PromptOptions& options) {
  State& s = state();
  s.find(image, prompt, options);
  const std::size_t edge = model().mask_size(), queries = model().num_queries();
  PromptLogits out{.classes = Tensor<float>(Shape{queries}),
                   .presence = s.found.decoded.presence,
                   .boxes = Tensor<float>(Shape{queries, 4}),
                   .masks = Tensor<float>(Shape{queries, edge, edge}),
                   .semantic = Tensor<float>(Shape{edge, edge})};
  std::ranges::copy(s.found.logits, out.classes.data());
  std::ranges::copy(s.found.decoded.boxes.flat(), out.boxes.data());
  s.parts().detector->masks(image.maps_->maps, s.found.decoded.states, out.masks, out.semantic, s.memory);
  return out;
}

}  // namespace vit
