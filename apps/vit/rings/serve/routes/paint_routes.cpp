// Classes of pixels that are painted on the page: an image is computed once and its features are kept; each
// stroke after that learns a head from all strokes and applies it, in the thread that answers.
#include "apps/vit/rings/serve/routes/paint_routes.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "apps/vit/rings/serve/routes/task_routes.h"
#include "apps/vit/rings/serve/work/paint_task.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/pixels.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

constexpr const char* kPaintImage = "image";
constexpr std::size_t kMostPaintedImages = 16, kMostPaintedClasses = 64;
/// Rows times features times classes of a fit: about three seconds.
constexpr std::size_t kMostPaintedWork = std::size_t{1} << 25;
constexpr double kPaintGradient = 1e-4;  // of the masks while someone paints, which do not change beyond it
constexpr double kPaintStrength = 1.0;   // of all strokes: those of one image do not say a better one

void answer_paint_image(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, find_text(body, "model"), takes_painting);
  const ServedModel& model = service.models()[work->model];
  if (!takes_painting(model))
    throw ApiError(400, "the model '" + model.name() + "' has no patches of images to paint on", "model",
                   "unsupported_input");
  const std::optional<std::string> image = find_text(body, kPaintImage);
  if (!image) throw ApiError(400, "image is missing", kPaintImage, "missing");
  work->items.push_back(image_item(*image, kPaintImage));
  service.check_takes(work->model, work->items);
  work->wanted = Wanted::task;
  work->image_rules = ImageRules::thumbnail;
  work->task = paint_task(work->model, model.common(), service.options().preprocessors[work->model]->config(),
                          *model.facts().config, *service.options().kept);
  call->request.body = {};
  service.run(call, work, [](const Work& done) {
    check_items(done, kPaintImage);
    return HttpResponse{.body = done.items.front().result};
  });
}

// --------------------------------------------------------------------------------------------------- strokes

/// Labels (H, W) of runs of pixels in raster order: begin, end, class, ...
Tensor<std::int32_t> labels_of(const Json& runs, ImageSize size, std::size_t num_classes) {
  Tensor<std::int32_t> out(Shape{size.height, size.width});
  std::ranges::fill(out.flat(), -1);
  runs.expect(Json::Kind::array);
  if (runs.size() % 3 != 0)
    throw ApiError(400, runs.where() + " must be begin, end, class, ...", "images", "invalid_value");
  for (std::size_t i = 0; i < runs.size(); i += 3) {
    const std::size_t begin = runs[i].as_size({.max = out.num_elements()}),
                      end = runs[i + 1].as_size({.min = begin, .max = out.num_elements()}),
                      label = runs[i + 2].as_size({.max = num_classes - 1});
    std::fill(out.data() + begin, out.data() + end, static_cast<std::int32_t>(label));
  }
  return out;
}

/// What was painted: images with labels, of which a head is learned.
struct Painting {
  std::vector<std::shared_ptr<const PaintedImage>> images;
  bool is_guided = true;
  PixelHead head;
  std::size_t num_rows = 0;
};

std::shared_ptr<const PaintedImage> find_image(Service& service, const Json& image, std::size_t model) {
  auto found = service.options().kept->find<PaintedImage>(find_text(image, "key").value_or(""));
  if (!found || found->model != model)
    throw ApiError(404, "the features of this image are no longer kept; send it again", "key", "forgotten");
  return found;
}

/// `max_gradient`: as FitOptions has it.
Painting learn_painting(Service& service, const Call& call, const Json& body, double max_gradient) {
  const std::size_t model = service.find_model(call, find_text(body, "model"), takes_painting);
  const std::size_t num_classes = find_count(body, "classes", kMostPaintedClasses).value_or(2);
  constexpr std::string_view kWays[]{"bilinear", "guided"};
  Painting out{.images = {}, .is_guided = find_word(body, "upsample", kWays).value_or(1) == 1, .head = {}};
  const std::optional<Json> images = body.find("images");
  if (!images || !images->is_array() || images->size() == 0 || images->size() > kMostPaintedImages)
    throw ApiError(400, vit::text("images must be a list of 1 to ", kMostPaintedImages), "images",
                   "invalid_value");
  PixelTrainer trainer;
  for (std::size_t i = 0; i < images->size(); ++i) {
    out.images.push_back(find_image(service, (*images)[i], model));
    const PixelFeatures& features = out.images.back()->features(out.is_guided);
    trainer.add(features, labels_of((*images)[i].at("runs"), features.size(), num_classes), /*threads=*/1);
  }
  const std::size_t num_features = out.images.front()->between_patches.num_features();
  out.num_rows = trainer.classes().size();
  if (out.num_rows * num_features > kMostPaintedWork / num_classes)
    throw ApiError(400,
                   vit::text(out.num_rows, " painted patches; at most ",
                             kMostPaintedWork / num_classes / num_features, " are learned here: erase some"),
                   "images", "too_long");
  out.head =
      trainer.fit(FitMethod::logistic,
                  {.strength = kPaintStrength, .num_folds = 0, .threads = 1, .max_gradient = max_gradient});
  const PaintedImage::MadeBy& by = out.images.front()->made_by;
  out.head.classifier.model = by.name;
  out.head.classifier.fingerprint = by.fingerprint;
  out.head.classifier.record = by.record;
  return out;
}

/// Length, class, ... of the pixels in raster order.
void write_runs(JsonWriter& json, const Tensor<std::int32_t>& classes) {
  json.key("runs").begin_array();
  const std::span<const std::int32_t> flat = classes.flat();
  for (std::size_t begin = 0, end = 0; begin < flat.size(); begin = end) {
    while (end < flat.size() && flat[end] == flat[begin]) ++end;
    json.value(end - begin).value(flat[begin]);
  }
  json.end_array();
}

void answer_paint(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  const auto start = std::chrono::steady_clock::now();
  const Json body = read_json_body(call->request.body, service.options().max_body);
  Painting painting = learn_painting(service, *call, body, kPaintGradient);
  const std::optional<Json> given = body.find("shown");
  const std::size_t shown = given ? given->as_size({.max = painting.images.size() - 1}) : 0;
  const Tensor<std::int32_t> classes =
      painting.head.classes(painting.images[shown]->features(painting.is_guided), /*threads=*/1);
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object();
  write_runs(json, classes);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  json.member("rows", painting.num_rows).member("milliseconds", time.count()).end_object();
  call->respond(std::move(out));
}

void answer_paint_head(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const std::vector<std::string> labels = read_strings(body, "labels", kMostPaintedClasses);
  Painting painting = learn_painting(service, *call, body, /*max_gradient=*/0.0);
  const std::size_t num_classes = painting.head.classifier.intercepts.num_elements();
  if (labels.size() != num_classes)
    throw ApiError(400, vit::text("labels must name ", num_classes, " classes"), "labels", "invalid_value");
  painting.head.classifier.labels = labels;
  const std::string file = painting.head.bytes();
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object();
  write_base64(json, "head", std::as_bytes(std::span(file)));
  json.end_object();
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"POST", "/page/paint/image", Dialect::openai, true, true, answer_paint_image},
    {"POST", "/page/paint/head", Dialect::openai, true, true, answer_paint_head},
    {"POST", "/page/paint", Dialect::openai, true, true, answer_paint},
};

}  // namespace

bool takes_painting(const ServedModel& model) {
  const ModelFacts& facts = model.facts();
  const bool takes_prompts = facts.takes_phrases || facts.takes_objects;  // as vit segment --classifier
  return facts.no_images.empty() && facts.config->image.num_channels == 3 && model.bank() == nullptr &&
         !takes_prompts;
}

std::span<const Route> paint_routes() {
  return kRoutes;
}

}  // namespace vit::app
