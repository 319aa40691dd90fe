// The contents of the opaque handles of the C interface. Each keeps the objects alive that it was created
// from.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/c.h"
#include "vit/c/results.h"
#include "vit/classifier.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

struct vit_model {
  std::shared_ptr<const vit::Model> model;
  std::vector<std::string> labels;  // (classes)
  std::string path;
  vit::ModelOptions options;  // it was loaded with
  std::string config;         // JSON
  std::string preprocess;     // JSON; "" if no file defines it
};

struct vit_preprocessor {
  vit::Preprocessor preprocessor;
  int threads = 0;
  std::string description;
};

struct vit_session {
  vit::Session session;
};

struct vit_text_tower {
  std::shared_ptr<const vit::TextTower> tower;
};

struct vit_text_encoder {
  vit::TextEncoder encoder;
  vit::TextEmbeddings embeddings;
};

struct vit_tokenizer {
  vit::Tokenizer tokenizer;
};

struct vit_classifier {
  vit::Classifier classifier;
};

namespace vit::internal {

/// The inputs of a call, checked one by one when they are read.
class InputList {
 public:
  /// `num_channels`: planes of preprocessed pixels. `of_clips` takes the frames of clips and must outlive the
  /// sources; null = clips are refused.
  InputList(const vit_input* inputs, std::size_t count, std::size_t num_channels = 3,
            const Preprocessor* of_clips = nullptr);
  std::size_t size() const noexcept { return count_; }
  /// Throws Error if the input lacks what its kind needs.
  ImageSource operator[](std::size_t index) const;
  bool is_clip(std::size_t index) const;

 private:
  vit_input read(std::size_t index) const;

  const char* first_;
  std::size_t count_;
  std::size_t stride_;
  std::size_t num_channels_;
  const Preprocessor* of_clips_;
};

std::unique_ptr<vit_model> make_model(std::shared_ptr<const Model> model, const ModelOptions& options,
                                      std::string path);
ModelOptions model_options(const vit_model_options* options);
TextOptions text_options(const vit_text_options* given);
InputSize input_size(std::int32_t kind, std::size_t height, std::size_t width);
/// Texts of a call; `sizes` may be null.
std::vector<std::string_view> texts_of(const char* const* texts, const std::size_t* sizes, std::size_t count);

/// Runs inputs and passes the outputs of each successful one to `store`, which returns why they are unusable,
/// or "".
vit_status run_inputs(Session& session, const InputList& inputs, const Request& request, vit_results& results,
                      const std::function<std::string(std::size_t, const ImageOutputs&)>& store);
/// The same for results that depend on the size of the image.
vit_status run_sized_inputs(Session& session, const InputList& inputs, const Request& request,
                            vit_results& results,
                            const std::function<std::string(const StreamedImage&)>& store);

}  // namespace vit::internal
