// The page for a browser, and what only it asks for.
#include <algorithm>
#include <array>

#include "apps/vit/outputs/text_format.h"
#include "apps/vit/serve/json_body.h"
#include "apps/vit/serve/page.h"
#include "apps/vit/serve/page_texts.h"
#include "apps/vit/serve/service.h"
#include "vit/analysis/features.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr const char* kImageParam = "image";
constexpr std::size_t kNearest = 12, kMaxNearest = 1000;
/// Nothing but what is in the page itself and this server.
constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `text` with `value` in the place of `mark`.
std::string filled(std::string text, std::string_view mark, std::string_view value) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), value);
}

/// Where the middle 98 % of a column lie.
std::array<float, 2> range_of(const Tensor<float>& rows, std::size_t column) {
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.dim(0); ++i) values.push_back(rows.view().row(i)[column]);
  std::ranges::sort(values);
  const std::size_t cut = values.size() / 100;
  return {values[cut], values[values.size() - 1 - cut]};
}

/// The first three principal components of the patches (h w, C) as numbers from 0 to 1, three a patch.
std::vector<float> colors_of(const WorkItem& item) {
  const std::size_t count = item.grid.rows * item.grid.columns;
  const TensorView<const float> patches(item.patches.data(), Shape{count, item.patches.size() / count});
  std::vector<float> out(3 * count, 0.5f);
  if (count < 4 || patches.dim(1) < 3) return out;
  PcaAccumulator accumulator;
  accumulator.add(patches);
  const Tensor<float> values = accumulator.fit(3).transform(patches);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto [low, high] = range_of(values, k);
    for (std::size_t i = 0; i < count && high > low; ++i)
      out[3 * i + k] = std::clamp((values.view().row(i)[k] - low) / (high - low), 0.0f, 1.0f);
  }
  return out;
}

HttpResponse look_response(const Work& work) {
  check_items(work, kImageParam);
  const WorkItem& item = work.items.front();
  std::string out = vit::text("{\"rows\": ", item.grid.rows, ", \"columns\": ", item.grid.columns,
                              ", \"imageHeight\": ", item.image_size.height,
                              ", \"imageWidth\": ", item.image_size.width, ", \"pca\": ");
  append_json_vector(out, colors_of(item));
  out += ", \"attention\": ";
  append_json_vector(out, item.attention);
  return {.body = out + "}"};
}

void answer_look(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(find_text(body, "model"));
  work->wanted = Wanted::look;
  const std::optional<std::string> image = find_text(body, kImageParam);
  if (!image) throw ApiError(400, "image is missing", kImageParam, "missing");
  work->items.push_back(image_item(*image, kImageParam));
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, look_response);
}

HttpResponse nearest_response(const Work& work, const ImageIndex& index, std::size_t top) {
  check_items(work, kImageParam);
  std::string out;
  for (const ImageIndex::Match& match : index.nearest(work.items.front().values, top)) {
    out += vit::text(out.empty() ? "" : ", ", "{\"file\": ", json_string(match.file), ", \"score\": ");
    append_json_float(out, match.score);
    out += "}";
  }
  return {.body = "{\"results\": [" + out + "]}"};
}

/// The images of the index that are most similar; none where there is no index of this model.
void answer_nearest(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(find_text(body, "model"));
  const std::size_t top = find_count(body, "top", kMaxNearest).value_or(kNearest);
  const ImageIndex* const index = service.index_of(work->model);
  if (index == nullptr) return call->respond({.body = "{\"results\": []}"});
  const std::optional<std::string> image = find_text(body, kImageParam);
  if (!image) throw ApiError(400, "image is missing", kImageParam, "missing");
  work->items.push_back(image_item(*image, kImageParam));
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, [index, top](const Work& done) { return nearest_response(done, *index, top); });
}

constexpr Route kRoutes[]{
    {"POST", "/page/nearest", Dialect::openai, true, true, answer_nearest},
    {"POST", "/page/look", Dialect::openai, true, true, answer_look},
};

}  // namespace

void answer_page(Service& /*service*/, const std::shared_ptr<Call>& call) {
  std::string page = filled(std::string(kServePageFrame), "@STYLE@", kServePageStyle);
  page = filled(std::move(page), "@SCRIPT@", kServePageScript);
  call->respond({.content_type = "text/html; charset=utf-8",
                 .body = std::move(page),
                 .headers = {{"Content-Security-Policy", kPagePolicy},
                             {"X-Content-Type-Options", "nosniff"},
                             {"Referrer-Policy", "no-referrer"}}});
}

std::span<const Route> page_routes() {
  return kRoutes;
}

}  // namespace vit::app
