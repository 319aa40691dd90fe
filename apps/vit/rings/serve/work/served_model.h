// A model under a name, loaded when it is needed and given back when it was idle for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/labels.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/page_vectors.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/rings/serve/work/anomaly_bank.h"
#include "apps/vit/rings/serve/work/image_index.h"
#include "apps/vit/rings/serve/work/loaded_prompts.h"
#include "vit/classifier.h"
#include "vit/dense_config.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit::app {

/// What is known of a model once it was loaded, whether it is in memory or not.
struct ModelFacts {
  std::shared_ptr<const ModelConfig> config;
  std::optional<DenseConfig> dense;
  std::size_t embedding_dim = 0;        // of `vit embed`; 0: the model has no vector of an image
  std::vector<std::size_t> dimensions;  // that vectors may be cut to
  std::vector<std::string> labels;      // of the model's own classes
  ClassActivation score_kind = ClassActivation::softmax;  // of classes in words
  std::string no_texts;                                   // why there are no texts; "" where there are
  std::string no_images;                                  // the same for image files
  bool takes_phrases = false, takes_objects = false;      // what prompts may ask
  std::size_t page_dim = 0;                               // of the vectors of pages; 0: it gives none
  RunModel run;                                           // what decides about its vectors
  std::int64_t loaded_at = 0;                             // seconds since 1970
};

/// Classes in words.
struct ClassTexts {
  std::vector<std::string> names;
  std::vector<std::string> templates;
  bool operator==(const ClassTexts&) const = default;
};

/// Classes in words, encoded.
struct EncodedClasses {
  ClassVectors vectors;
  std::optional<Classifier> classifier;  // if it was wanted
};

/// How far the classes of a request are encoded.
struct ClassProgress {
  std::size_t num_labels = 0, num_texts = 0;
  std::vector<float> vectors{};  // (num_labels, E)
};

/// Texts of immich's clients are cut into tokens as its service does it.
enum class TextRules { checkpoint, immich };

/// A model of pages, which has one user at a time.
struct SharedPages {
  explicit SharedPages(std::unique_ptr<PageVectors> of) : vectors(std::move(of)) {}

  std::unique_ptr<PageVectors> vectors;
  std::mutex mutex;
};

/// A checkpoint in memory.
struct ServedTowers {
  std::shared_ptr<const Model> image;
  std::shared_ptr<const TextTower> text;   // null: `no_texts` says why
  std::shared_ptr<LoadedPrompts> prompts;  // null: it takes none
  std::shared_ptr<SharedPages> pages;      // null: it gives no vectors of pages
  std::string no_texts;
};

/// The parts of a model that compute; for one thread, except for session_of().
class LoadedModel {
 public:
  LoadedModel(const CommonOptions& common);

  ModelFacts facts() const;
  Session& session() { return session_; }
  const Session& session() const { return session_; }
  /// What it holds, by address, with its bytes: weights, which several models may share, and working memory.
  std::map<const void*, std::size_t> parts() const;
  /// A session of one thread for worker `worker`, which calls this.
  Session& session_of(std::size_t worker);
  /// Null for a model that takes no prompts.
  LoadedPrompts* prompts() const noexcept { return towers_.prompts.get(); }
  /// Null for a model that gives no vectors of pages.
  SharedPages* pages() const noexcept { return towers_.pages.get(); }
  /// What ends encode() and encode_classes() early, between two blocks.
  void limit_texts(RunLimits limits) {
    if (encoder_) encoder_->set_limits(std::move(limits));
  }
  /// Vectors of texts (n, E), of rows that tokens() made.
  Tensor<float> encode(std::span<const TokenRow> rows) { return encoder_->encode_ids(rows); }
  TokenRow tokens(const std::string& text, TextRules rules);
  /// Encodes up to `max_texts` further texts of these classes, or those of one label if they are more; the
  /// classes once all are there, null before. They are kept for the next request with the same ones.
  std::shared_ptr<const EncodedClasses> encode_classes(const ClassTexts& texts, ClassProgress& progress,
                                                       std::size_t max_texts, bool with_classifier);

 private:
  using KeptClasses = std::pair<ClassTexts, std::shared_ptr<const EncodedClasses>>;

  std::shared_ptr<const EncodedClasses> with_classifier(const EncodedClasses& encoded) const;

  CommonOptions common_;
  ServedTowers towers_;
  Session session_;
  std::vector<std::optional<Session>> worker_sessions_;
  std::optional<TextEncoder> encoder_;
  std::optional<Tokenizer> immich_tokenizer_;
  std::deque<KeptClasses> classes_;  // newest first
};

/// A checkpoint, or a bank or an index with the checkpoint that made it.
class ServedModel {
 public:
  /// `common.model`: a checkpoint, a bank of `vit anomaly fit` or an index of `vit index`. Throws Error if a
  /// bank or an index cannot be read, or was made with other options.
  ServedModel(std::string name, CommonOptions common);

  const std::string& name() const noexcept { return name_; }
  const CommonOptions& common() const noexcept { return common_; }
  const AnomalyBank* bank() const noexcept { return bank_.get(); }
  const ImageIndex* index() const noexcept { return index_.get(); }
  /// An index that this model made; before anything is asked of it.
  void set_index(std::shared_ptr<const ImageIndex> index) { index_ = std::move(index); }
  /// From the first load() on; in any thread. Stays valid, though a reload makes others current.
  const ModelFacts& facts() const { return *facts_->current.load(); }

  /// The model in memory. Throws Error as loading does. This and those below are for the thread that
  /// computes.
  LoadedModel& load();
  LoadedModel& loaded() const noexcept { return *loaded_; }
  bool is_loaded() const noexcept { return loaded_ != nullptr; }
  /// How many images of preprocessed pixels of this size one thread computes best together; of a loaded
  /// model.
  std::size_t images_per_task(std::size_t height, std::size_t width) const noexcept;
  void unload() { loaded_.reset(); }
  /// Reads the files again. Throws Error, and keeps what it has, if they cannot be loaded or preprocess
  /// differently: the processes that decode have the rules of the start.
  void reload();

 private:
  const std::string name_;
  CommonOptions common_;
  std::shared_ptr<const AnomalyBank> bank_;
  std::shared_ptr<const ImageIndex> index_;
  struct Facts {
    std::deque<ModelFacts> all;
    std::atomic<const ModelFacts*> current{nullptr};
    void add(ModelFacts facts) { current = &all.emplace_back(std::move(facts)); }
  };

  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<Facts> facts_ = std::make_unique<Facts>();
};

/// Models that are loaded from now on do not share the weights of those that were loaded before: the files
/// may have changed. For the thread that computes.
void forget_shared_towers();

/// NAME and PATH of --model [NAME=]PATH; the name of a path without one is that of the folder or file, or of
/// the repository in a cache of Hugging Face. Throws UsageError.
std::pair<std::string, std::string> parse_served_model(const std::string& value);

/// clean_text of immich's service: white space to single blanks; where `canonicalize`, punctuation of ASCII
/// removed and lower case.
std::string clean_as_immich(const std::string& text, bool canonicalize);

}  // namespace vit::app
