// Pages of the C interface.
#include "vit/c_pages.h"

#include <memory>
#include <string>

#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/config.h"
#include "vit/pages.h"

struct vit_page_model {
  std::shared_ptr<const vit::PageModel> model;
};
struct vit_page_encoder {
  vit::PageEncoder encoder;
};

using namespace vit;
using namespace vit::internal;

namespace {

/// Vectors that the caller has, at `data`.
TensorView<const float> vectors_of(const float* data, std::size_t count, std::size_t dim, const char* name) {
  VIT_CHECK(dim != 0 && count <= SIZE_MAX / sizeof(float) / dim, kCall, name, " of ", count, " x ", dim,
            " numbers");
  return {span_of(data, count * dim, name).data(), Shape{count, dim}};
}

}  // namespace

vit_status vit_page_model_load(const char* path, const vit_model_options* options,
                               const vit_text_options* text_options, vit_page_model** model) {
  return guarded([&] {
    const std::string name = &object_at(path, "path");
    vit_page_model*& out = object_at(model, "model");
    out = new vit_page_model{
        PageModel::load(name, model_options(options), internal::text_options(text_options))};
  });
}

void vit_page_model_free(vit_page_model* model) {
  delete model;
}

size_t vit_page_model_dim(const vit_page_model* model) {
  return model == nullptr ? 0 : model->model->dim();
}

vit_status vit_page_encoder_create(const vit_page_model* model, int32_t threads, vit_page_encoder** encoder) {
  return guarded([&] {
    const auto& from = object_at(model, "model").model;
    vit_page_encoder*& out = object_at(encoder, "encoder");
    out = new vit_page_encoder{PageEncoder(from, {.threads = threads})};
  });
}

void vit_page_encoder_free(vit_page_encoder* encoder) {
  delete encoder;
}

vit_status vit_page_encoder_page(vit_page_encoder* encoder, const vit_input* page, vit_results* results) {
  return guarded([&] {
    PageEncoder& with = object_at(encoder, "encoder").encoder;
    vit_results& into = object_at(results, "results");
    into.clear();
    const InputList inputs(&object_at(page, "page"), 1, with.model().image()->config().image.num_channels);
    return into.fill(1, [&] {
      const Tensor<float> found = with.encode(inputs[0]);
      into.column({VIT_PAGE_VECTORS}, VIT_FLOAT32).put(0, found.data(), found.shape());
    });
  });
}

vit_status vit_page_encoder_query(vit_page_encoder* encoder, const char* text, vit_results* results) {
  return guarded([&] {
    PageEncoder& with = object_at(encoder, "encoder").encoder;
    vit_results& into = object_at(results, "results");
    into.clear();
    const std::string question = &object_at(text, "text");
    return into.fill(1, [&] {
      const Tensor<float> found = with.encode_query(question);
      into.column({VIT_PAGE_VECTORS}, VIT_FLOAT32).put(0, found.data(), found.shape());
    });
  });
}

vit_status vit_page_score(const float* question, size_t num_question, const float* page, size_t num_page,
                          size_t dim, float* score) {
  return guarded([&] {
    float& out = object_at(score, "score");
    const PageQuery query(vectors_of(question, num_question, dim, "question"));
    out = query.score(vectors_of(page, num_page, dim, "page"));
  });
}
