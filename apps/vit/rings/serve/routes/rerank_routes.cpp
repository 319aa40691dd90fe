// Ranking of documents by a query, in the dialect of Jina, Cohere and text-embeddings-inference: with two
// towers by the cosine of their vectors, with a model of pages by the sum of best matches.
#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/rings.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

constexpr std::size_t kMostRanked = 1'000'000;
/// `user`, `truncate`, `max_chunks_per_doc`: harmless here, as in /v1/embeddings.
constexpr std::string_view kRerankMembers[]{"model",  "query",    "documents",         "texts",
                                            "images", "top_n",    "return_documents",  "modality",
                                            "user",   "truncate", "max_chunks_per_doc"};

/// A string is a text, or an image if `images_are_strings`; an object says which.
WorkItem ranked_item(const Json& value, bool are_images, const std::string& param) {
  const auto fail_item = [&](const char* what) {
    throw ApiError(400, param + " " + what, param, "invalid_input");
  };
  if (value.is_string())
    return are_images ? image_item(value.as_string(), param) : text_item(value.as_string());
  if (!value.is_object()) fail_item("must be a string, {\"image\"} or {\"text\"}");
  std::optional<WorkItem> out;
  for (const std::string_view key : {"image", "text"}) {
    const auto found = value.find(key);
    if (!found) continue;
    if (out || !found->is_string()) fail_item("must have one of image and text, a string");
    out = key == "text" ? text_item(found->as_string()) : image_item(found->as_string(), param);
  }
  if (!out) fail_item("has no image or text");
  return *std::move(out);
}

/// The documents of "documents", or of "texts" or "images".
void read_documents(const Json& body, std::size_t max_inputs, std::vector<WorkItem>& items) {
  std::optional<std::string> name;
  for (const char* const key : {"documents", "texts", "images"}) {
    if (!body.find(key)) continue;
    if (name) throw ApiError(400, *name + " and " + key + " exclude each other", key, "invalid_input");
    name = key;
  }
  if (!name) throw ApiError(400, "documents is missing", "documents", "missing");
  const Json list = *body.find(*name);
  if (!list.is_array() || list.size() == 0)
    throw ApiError(400, *name + " must be a list with something in it", *name, "invalid_type");
  check_count(list.size() + 1, *name, max_inputs);
  const std::string modality = find_text(body, "modality").value_or(*name == "images" ? "image" : "text");
  if (modality != "image" && modality != "text")
    throw ApiError(400, "modality must be image or text", "modality", "invalid_value");
  for (std::size_t i = 0; i < list.size(); ++i)
    items.push_back(ranked_item(list[i], modality == "image", vit::text(*name, "[", i, "]")));
}

/// Throws ApiError unless the model compares these inputs, the first of which is the query.
void check_ranks(const ModelFacts& facts, std::span<const WorkItem> items) {
  const bool has_pages = facts.page_dim != 0;
  if (!has_pages && facts.embedding_dim == 0)
    throw ApiError(400, "this model has no vectors to compare", "model", "unsupported_input");
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string lack = items[i].is_text ? facts.no_texts : facts.no_images;
    if (has_pages && items[i].is_text) lack = i == 0 ? "" : "documents of this model are images of pages";
    if (!lack.empty())
      throw ApiError(400, lack, i == 0 ? "query" : vit::text("documents[", i - 1, "]"), "unsupported_input");
  }
}

/// Of each document, in their order: cosines, or sums of best matches.
std::vector<double> scores_of(const Work& work, std::size_t page_dim) {
  const auto rows = [&](const std::vector<float>& values) {
    return TensorView<const float>(values.data(), Shape{values.size() / page_dim, page_dim});
  };
  std::vector<double> out;
  const std::vector<float>& query = work.items.front().values;
  const PageVectors::Score score = page_dim != 0 ? page_score(rows(query)) : PageVectors::Score();
  for (const WorkItem& document : std::span(work.items).subspan(1))
    out.push_back(score ? double{score(rows(document.values))} : cosine_similarity(query, document.values));
  return out;
}

void check_item_failures(const Work& work) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    if (!work.items[i].failure.empty())
      throw failure_of_item(work.items[i], i == 0 ? "query" : vit::text("documents[", i - 1, "]"));
  }
}

HttpResponse rerank_response(const Work& work, const ServedModel& model, std::size_t top) {
  check_item_failures(work);
  const std::vector<double> scores = scores_of(work, model.facts().page_dim);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return scores[i]; });
  order.resize(std::min(order.size(), top));
  std::size_t num_tokens = 0;
  for (const WorkItem& item : work.items) num_tokens += item.num_tokens;
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "list").member("model", model.name()).key("results").begin_array();
  for (const std::size_t i : order)
    json.begin_object()
        .member("index", i)
        .member("relevance_score", static_cast<float>(scores[i]))
        .end_object();
  json.end_array().key("usage").begin_object();
  json.member("prompt_tokens", num_tokens).member("total_tokens", num_tokens).end_object().end_object();
  return out;
}

void answer_rerank(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kRerankMembers);
  const auto work = std::make_shared<Work>();
  work->wanted = Wanted::ranking;
  work->model = service.find_model(*call, find_text(body, "model"));
  const ServedModel& model = service.models()[work->model];
  const auto query = body.find("query");
  if (!query) throw ApiError(400, "query is missing", "query", "missing");
  if (find_flag(body, "return_documents").value_or(false))
    throw ApiError(400, "documents are not sent back: results have their index", "return_documents",
                   "invalid_value");
  const std::size_t top = find_count(body, "top_n", kMostRanked).value_or(kMostRanked);
  work->items.push_back(ranked_item(*query, false, "query"));
  read_documents(body, service.options().max_inputs, work->items);
  check_ranks(model.facts(), work->items);
  call->request.body = {};
  service.run(call, work, [&model, top](const Work& done) { return rerank_response(done, model, top); });
}

constexpr Route kRoutes[]{
    {.method = "POST",
     .path = "/v1/rerank",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_rerank,
     .summary = "Documents in the order in which they match a query"},
};

}  // namespace

std::span<const Route> rerank_routes() {
  return kRoutes;
}

}  // namespace vit::app
