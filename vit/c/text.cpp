// Text towers and tokenizers of the C interface.
#include "vit/c.h"

#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"

namespace vit::internal {
namespace {

TextLibrary library_of(std::int32_t library) {
  return enum_of(library, TextLibrary::openai, "library");
}

}  // namespace

TextOptions text_options(const vit_text_options* given) {
  const vit_text_options options = options_of(given, "vit_text_options");
  return {.architecture = text_or_empty(options.architecture),
          .tokenizer = text_or_empty(options.tokenizer),
          .library = library_of(options.library),
          .kernels = text_or_empty(options.kernels),
          .precision = enum_of(options.precision, Precision::int8, "precision")};
}

std::vector<std::string_view> texts_of(const char* const* texts, const std::size_t* sizes,
                                       std::size_t count) {
  std::vector<std::string_view> out;
  for (const char* const text : span_of(texts, count, "texts")) {
    static_cast<void>(object_at(text, "a text"));
    out.push_back(sizes == nullptr ? std::string_view(text) : std::string_view(text, sizes[out.size()]));
  }
  return out;
}

}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

vit_status vit_text_tower_load(const char* path, const vit_text_options* options, vit_text_tower** tower) {
  return guarded([&] {
    vit_text_tower*& out = object_at(tower, "tower");
    out = new vit_text_tower{TextTower::load(&object_at(path, "path"), text_options(options))};
  });
}

vit_status vit_model_and_text_load(const char* path, const vit_model_options* options,
                                   const vit_text_options* text_options, vit_model** model,
                                   vit_text_tower** tower) {
  return guarded([&] {
    vit_model*& image_out = object_at(model, "model");
    vit_text_tower*& text_out = object_at(tower, "tower");
    const ModelOptions known = model_options(options);
    ImageAndText towers =
        ImageAndText::load(&object_at(path, "path"), known, internal::text_options(text_options));
    auto text = std::unique_ptr<vit_text_tower>(new vit_text_tower{std::move(towers.text)});
    image_out = make_model(std::move(towers.image), known, path).release();
    text_out = text.release();
  });
}

void vit_text_tower_free(vit_text_tower* tower) {
  delete tower;
}

vit_status vit_text_encoder_create(const vit_text_tower* tower, int32_t threads, vit_text_encoder** encoder) {
  return guarded([&] {
    vit_text_encoder*& out = object_at(encoder, "encoder");
    VIT_CHECK(threads >= 0, kCall, "threads is ", threads);
    out = new vit_text_encoder{.encoder = TextEncoder(object_at(tower, "tower").tower, {.threads = threads}),
                               .embeddings = {}};
  });
}

void vit_text_encoder_free(vit_text_encoder* encoder) {
  delete encoder;
}

vit_status vit_text_encoder_run(vit_text_encoder* encoder, const char* const* texts, const size_t* sizes,
                                size_t num_texts, int32_t normalize, vit_results* results, size_t* num_cut) {
  return guarded([&] {
    vit_text_encoder& known = object_at(encoder, "encoder");
    vit_results& out = object_at(results, "results");
    out.clear();
    const std::vector<std::string_view> views = texts_of(texts, sizes, num_texts);
    const vit_status status = out.fill(num_texts, [&] {
      if (views.empty()) return;
      known.encoder.encode(views, known.embeddings);
      const TensorView<float> vectors = known.embeddings.vectors.view();
      for (std::size_t i = 0; i < num_texts; ++i) {
        if (normalize != 0) vit::normalize_vector(vectors[i].flat());
        out.column({VIT_TEXT}, VIT_FLOAT32).put(i, vectors.row(i), {vectors.dim(1)});
      }
    });
    if (num_cut != nullptr) *num_cut = num_texts == 0 ? 0 : known.embeddings.num_cut;
    return status;
  });
}

vit_status vit_tokenizer_load(const char* path, int32_t library, vit_tokenizer** tokenizer) {
  return guarded([&] {
    vit_tokenizer*& out = object_at(tokenizer, "tokenizer");
    out = new vit_tokenizer{Tokenizer::load(&object_at(path, "path"), {.library = library_of(library)})};
  });
}

vit_status vit_tokenizer_load_for_model(const char* model, const char* path, int32_t library,
                                        vit_tokenizer** tokenizer) {
  return guarded([&] {
    vit_tokenizer*& out = object_at(tokenizer, "tokenizer");
    out = new vit_tokenizer{Tokenizer::load_for_model(&object_at(model, "model"), text_or_empty(path),
                                                      {.library = library_of(library)})};
  });
}

vit_status vit_tokenizer_create(const vit_text_tower* tower, vit_tokenizer** tokenizer) {
  return guarded([&] {
    vit_tokenizer*& out = object_at(tokenizer, "tokenizer");
    out = new vit_tokenizer{object_at(tower, "tower").tower->tokenizer()};
  });
}

void vit_tokenizer_free(vit_tokenizer* tokenizer) {
  delete tokenizer;
}

size_t vit_tokenizer_context_length(const vit_tokenizer* tokenizer) {
  return tokenizer == nullptr ? 0 : tokenizer->tokenizer.context_length();
}

vit_status vit_tokenizer_run(const vit_tokenizer* tokenizer, const char* const* texts, const size_t* sizes,
                             size_t num_texts, size_t context_length, vit_results* results) {
  return guarded([&] {
    const Tokenizer& known = object_at(tokenizer, "tokenizer").tokenizer;
    vit_results& out = object_at(results, "results");
    out.clear();
    const std::vector<std::string_view> views = texts_of(texts, sizes, num_texts);
    return out.fill(num_texts, [&] {
      for (std::size_t i = 0; i < num_texts; ++i) {
        try {
          const std::vector<std::int32_t> ids =
              context_length == 0 ? known.encode(views[i]) : known.encode(views[i], context_length).ids;
          out.column({VIT_IDS}, VIT_INT32).put(i, ids.data(), {ids.size()});
        } catch (const Error& error) {
          out.fail(i, error.kind(), error.what());
        }
      }
    });
  });
}

vit_status vit_tokenizer_token(const vit_tokenizer* tokenizer, int32_t id, const char** token, size_t* size) {
  return guarded([&] {
    const std::string_view found = object_at(tokenizer, "tokenizer").tokenizer.token(id);
    object_at(token, "token") = found.data();
    object_at(size, "size") = found.size();
  });
}
