// The page for a browser, and what only it asks for.
#include <algorithm>
#include <array>
#include <charconv>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/html/board/board.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/painting/painting_page.h"
#include "apps/vit/rings/serve/routes/prompts/prompts_page.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/analysis/features.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr const char* kImageParam = "image";
constexpr const char* kTextParam = "text";
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

/// Which part of the image the patches show: left, top, right and bottom in its pixels.
std::vector<float> shown_box(const Preprocessor& preprocessor, ImageSize image) {
  const SourceMap map = preprocessor.source_map(image);
  const ImageSize pixels = preprocessor.output_size(image);
  return {static_cast<float>(map.left), static_cast<float>(map.top),
          static_cast<float>(map.left + static_cast<double>(pixels.width) * map.x_step),
          static_cast<float>(map.top + static_cast<double>(pixels.height) * map.y_step)};
}

HttpResponse look_response(const Work& work, const Preprocessor& preprocessor) {
  check_items(work, kImageParam);
  const WorkItem& item = work.items.front();
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("rows", item.grid.rows).member("columns", item.grid.columns);
  json.member("imageHeight", item.image_size.height).member("imageWidth", item.image_size.width);
  json.key("box").json(json_vector(shown_box(preprocessor, item.image_size)));
  json.key("pca").json(json_vector(colors_of(item)));
  json.key("attention").json(json_vector(item.attention)).end_object();
  return out;
}

void answer_look(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, find_text(body, "model"));
  work->wanted = Wanted::look;
  const std::optional<std::string> image = find_text(body, kImageParam);
  if (!image) throw ApiError(400, "image is missing", kImageParam, "missing");
  work->items.push_back(image_item(*image, kImageParam));
  service.check_takes(work->model, work->items);
  call->request.body = {};
  const std::optional<Preprocessor>& preprocessor = service.options().preprocessors[work->model];
  service.run(call, work, [&preprocessor](const Work& done) { return look_response(done, *preprocessor); });
}

HttpResponse nearest_response(const Work& work, const ImageIndex& index, std::size_t top) {
  check_items(work, "image or text");
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().key("results").begin_array();
  for (const ImageIndex::Match& match : index.nearest(work.items.front().values, top)) {
    json.begin_object().member("number", match.number).member("file", match.file);
    json.member("score", match.score).end_object();
  }
  json.end_array().end_object();
  return out;
}

/// The images of the index that are most similar to an image, or to words; none if there is no index of this
/// model.
void answer_nearest(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  const Json body = read_json_body(call->request.body, service.options().max_body);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, find_text(body, "model"));
  const std::size_t top = find_count(body, "top", kMaxNearest).value_or(kNearest);
  const ImageIndex* const index = service.models()[work->model].index();
  if (index == nullptr) return call->respond({.body = "{\"results\": []}"});
  const std::optional<std::string> image = find_text(body, kImageParam), words = find_text(body, kTextParam);
  if (image.has_value() == words.has_value())
    throw ApiError(400, "one of image and text is required", kImageParam, "missing");
  work->items.push_back(image ? image_item(*image, kImageParam) : text_item(*words));
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, [index, top](const Work& done) { return nearest_response(done, *index, top); });
}

/// What browsers show, by how a file begins; "" for all else, which is not given away.
std::string_view picture_type(std::string_view file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes{
      {{"\xFF\xD8\xFF", "image/jpeg"},
       {"\x89PNG\r\n", "image/png"},
       {"GIF8", "image/gif"},
       {"BM", "image/bmp"}}};
  for (const auto& [magic, type] : kTypes) {
    if (file.starts_with(magic)) return type;
  }
  if (file.starts_with("RIFF") && file.substr(8).starts_with("WEBP")) return "image/webp";
  return {};
}

constexpr std::string_view kPictures = "/page/picture/";

/// The file of an image of the index, as it is.
void answer_picture(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  const ImageIndex* const index = service.options().index.get();
  const std::string digits = without_escapes(std::string_view(call->request.path).substr(kPictures.size()));
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  const std::string name = index != nullptr && is_number ? index->file(number) : std::string();
  const ApiError missing(404, "the index has no such picture", {}, "not_found");
  if (name.empty()) throw missing;
  HttpResponse out;
  try {
    const internal::SourceFile file(name, {"serve", ErrorKind::io});
    if (file.size() <= service.options().max_body) out.body = file.text();
  } catch (const Error&) {
    throw missing;  // moved since, or inside of an archive
  }
  out.content_type = picture_type(out.body);
  if (out.content_type.empty()) throw missing;
  out.headers = {{"Content-Security-Policy", "default-src 'none'; sandbox"},
                 {"X-Content-Type-Options", "nosniff"}};
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"POST", "/page/nearest", Dialect::openai, true, true, answer_nearest},
    {"POST", "/page/look", Dialect::openai, true, true, answer_look},
    {"GET", kPictures, Dialect::openai, true, true, answer_picture, true},
};

}  // namespace

void answer_page(Service& /*service*/, const std::shared_ptr<Call>& call) {
  const std::string style =
      board_style(std::string(kServePageStyle).append(kServePromptsStyle).append(kServePaintingStyle));
  std::string page = filled(std::string(kServePageFrame), "@STYLE@", style);
  page = filled(std::move(page), "@PROMPTS@", kServePromptsFrame);
  page = filled(std::move(page), "@PAINTING@", with_board(kServePaintingFrame));
  page = filled(std::move(page), "@SCRIPT@", kServePageScript);
  page = filled(std::move(page), "@PARTS@",
                std::string(kServePromptsScript).append(board_script(kServePaintingScript)));
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
