// The models of pages of the library, for commands.
#include <memory>
#include <string>
#include <utility>

#include "apps/vit/options/load_model.h"
#include "apps/vit/options/page_vectors.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/pages.h"

namespace vit::app {
namespace {

class LoadedPages final : public PageVectors {
 public:
  LoadedPages(std::shared_ptr<const PageModel> model, int threads)
      : encoder_(std::move(model), {.threads = threads}) {}

  const std::shared_ptr<const Model>& image() const override { return encoder_.model().image(); }
  std::size_t dim() const override { return encoder_.model().dim(); }
  std::size_t num_parameters() const override { return encoder_.model().report().num_parameters; }
  RunModel record(const CommonOptions& options) const override {
    const std::string feature = kPageFeature;
    RunModel out = run_model(options, *image(), std::span(&feature, 1));
    out.fingerprint += "+" + encoder_.model().report().fingerprint;
    return out;
  }
  Tensor<float> page(const ImageOutputs& outputs) override { return checked(encoder_.encode(outputs)); }
  Tensor<float> question(std::string_view text) override { return checked(encoder_.encode_query(text)); }

 private:
  static Tensor<float> checked(Tensor<float> vectors) {
    check_finite(vectors.flat(), "embed", "the vectors are");
    return vectors;
  }

  PageEncoder encoder_;
};

}  // namespace

PageVectors::Score page_score(TensorView<const float> question) {
  const auto query = std::make_shared<const PageQuery>(question);
  return [query](TensorView<const float> page) { return query->score(page); };
}

std::unique_ptr<PageVectors> load_page_vectors(const CommonOptions& options) {
  check_has_weights(options);
  return std::make_unique<LoadedPages>(
      PageModel::load(model_path(options), options.model_options, text_options(options)),
      options.session.threads);
}

std::unique_ptr<PageVectors> open_page_vectors(const CommonOptions& options) {
  const bool is_one =
      !options.is_architecture_alone() && PageModel::is_at(model_path(options), options.model_options);
  return is_one ? load_page_vectors(options) : nullptr;
}

}  // namespace vit::app
