// Pages of documents and questions to them as many vectors each, one for each token, with ColModernVBERT: the
// score of a page is the sum over the vectors of the question of its best match on the page. Letters: t
// vectors of a page, m of a question, E numbers of a vector.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/model.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit {

namespace internal {
struct PageParts;
}

/// A checkpoint ready to run: image tower, and the encoder that reads its visual tokens between those of a
/// text. Immutable; share it between threads.
class VIT_API PageModel {
 public:
  /// Loads a folder as downloaded. Throws Error naming the file and its defect, and (unsupported) for a
  /// checkpoint that gives no vectors of pages.
  static std::shared_ptr<const PageModel> load(const std::filesystem::path& path,
                                               const ModelOptions& options = {},
                                               const TextOptions& text_options = {});
  /// Whether a checkpoint gives vectors of pages, by its configuration and the names of its tensors. Throws
  /// Error for one that cannot be read.
  static bool is_at(const std::filesystem::path& path, const ModelOptions& options = {});
  ~PageModel();
  PageModel(const PageModel&) = delete;
  PageModel& operator=(const PageModel&) = delete;

  const std::shared_ptr<const Model>& image() const noexcept;  // the image tower
  const LoadReport& report() const noexcept;                   // files and tensors of the encoder
  std::size_t dim() const noexcept;                            // E
  std::size_t num_parameters() const noexcept;                 // of both
  /// What a Session is to compute for PageEncoder::encode(outputs).
  Request request() const { return Output::merged; }

 private:
  friend struct internal::PageParts;
  VIT_HIDDEN explicit PageModel(std::unique_ptr<const internal::PageParts> parts);
  std::unique_ptr<const internal::PageParts> parts_;
};

/// Settings of a PageEncoder.
struct PageEncoderOptions {
  int threads = 0;  // 0 = all cores; results do not depend on it
};

/// Working memory and settings of one thread of the caller; must not be shared. Several may use one
/// PageModel.
/// ```
/// vit::PageEncoder encoder(vit::PageModel::load("colmodernvbert"));
/// const vit::Tensor<float> page = encoder.encode("photo.jpg");                     // (t, E)
/// const vit::Tensor<float> question = encoder.encode_query("revenue by quarter");  // (m, E)
/// vit::PageQuery(question).score(page);
/// ```
class VIT_API PageEncoder {
 public:
  /// Throws Error (argument) for a null model and threads out of range.
  explicit PageEncoder(std::shared_ptr<const PageModel> model, PageEncoderOptions options = {});
  ~PageEncoder();
  PageEncoder(PageEncoder&&) noexcept;
  PageEncoder& operator=(PageEncoder&&) noexcept;

  const PageModel& model() const;  // lives as long as the encoder

  /// The vectors of a page (t, E), of length 1: of every token of the text around the image and of the image
  /// itself. Throws Error as Session::run does.
  Tensor<float> encode(const ImageSource& page);
  /// The same from the outputs of an image for PageModel::request().
  Tensor<float> encode(const ImageOutputs& outputs);
  /// The vectors of a question (m, E), of length 1. Throws Error (argument) for a text that is not UTF-8,
  /// that has the token of an image, or more than 65536 tokens.
  Tensor<float> encode_query(std::string_view text);
  /// What ends the following calls early; by default nothing. A call that ends throws Cancelled.
  void set_limits(RunLimits limits);

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

/// A question, ready to be compared with pages. Immutable; share it between threads.
class VIT_API PageQuery {
 public:
  /// Copies the vectors (m, E). Throws Error (argument) if there are none.
  explicit PageQuery(TensorView<const float> vectors);
  ~PageQuery();
  PageQuery(PageQuery&&) noexcept;
  PageQuery& operator=(PageQuery&&) noexcept;

  /// The sum over the vectors of the question of the largest inner product with a vector of the page (t, E).
  /// Throws Error (argument) for a page without vectors, or of another width.
  float score(TensorView<const float> page) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vit
