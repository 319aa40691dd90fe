// From texts to vectors in the joint space of images and texts: TextTower, a checkpoint's text tower ready
// to run, and TextEncoder, which runs it for one thread of the caller. For custom labels see zero_shot.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/run_limits.h"
#include "vit/base/tensor.h"
#include "vit/config/load_report.h"
#include "vit/model.h"
#include "vit/session.h"
#include "vit/text/tokenizer.h"
#include "vit/text_config.h"

namespace vit {

/// Options for loading a text tower.
struct TextOptions {
  std::string architecture{};  // as in ModelOptions; a bare weight file may need it
  /// Path of the vocabulary, for publishers' files without one: an argument of Tokenizer::load.
  std::filesystem::path tokenizer{};
  TextLibrary library = TextLibrary::automatic;  // whose text cleaning applies
  std::string kernels{};                         // as in ModelOptions
  Precision precision = Precision::float32;      // of blocks
};

/// A text tower ready to run, with its tokenizer. Immutable; share it between threads. Keeps the weight file
/// open: rows of the token table are read from it on demand.
class VIT_API TextTower {
 public:
  /// Loads the text tower of a folder as downloaded, or of a single weight file. Throws Error (unsupported)
  /// if there is none, (io) if the tokenizer is missing, and for any defect of a file, naming it.
  static std::shared_ptr<const TextTower> load(const std::filesystem::path& path,
                                               const TextOptions& options = {});
  ~TextTower();
  TextTower(const TextTower&) = delete;
  TextTower& operator=(const TextTower&) = delete;

  const TextConfig& config() const noexcept;    // architecture
  const Tokenizer& tokenizer() const noexcept;  // with the tower's vocabulary
  Precision precision() const noexcept;         // of blocks
  const char* kernels() const noexcept;         // name
  const LoadReport& report() const noexcept;    // files and tensors

  /// The ids of a text, padded and truncated to the context length as in its library. Throws Error unless
  /// `text` is UTF-8.
  TokenRow tokenize(std::string_view text) const;

 private:
  struct Parts;
  friend struct ImageAndText;
  friend struct internal::LayersOf;
  explicit TextTower(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

/// Both towers of one checkpoint, whose files are opened once.
struct VIT_API ImageAndText {
  std::shared_ptr<const Model> image;     // image tower
  std::shared_ptr<const TextTower> text;  // text tower

  /// Model::load and TextTower::load together. `text_options.architecture` is used if it is set, else that
  /// of `image_options`.
  static ImageAndText load(const std::filesystem::path& path, const ModelOptions& image_options = {},
                           const TextOptions& text_options = {});
};

/// Vectors of texts, in order.
struct TextEmbeddings {
  Tensor<float> vectors;    // (n, E), not normalized; fewer texts if the call was cancelled
  std::size_t num_cut = 0;  // truncated texts, longer than the context length
};

/// Settings of a TextEncoder.
struct TextEncoderOptions {
  int threads = 0;  // 0 = all cores
};

/// Working memory and settings of one thread of the caller; must not be shared. Several encoders may use one
/// TextTower. The vector of a text has the same bits for any number of texts in a call, position among them
/// and number of threads.
class VIT_API TextEncoder {
 public:
  /// Throws Error (argument) for a null tower.
  explicit TextEncoder(std::shared_ptr<const TextTower> tower, TextEncoderOptions options = {});
  /// An encoder of the tower in a folder or weight file; throws Error as TextTower::load() does.
  explicit TextEncoder(const std::filesystem::path& path, TextEncoderOptions options = {},
                       const TextOptions& text_options = {});
  ~TextEncoder();
  TextEncoder(TextEncoder&&) noexcept;
  TextEncoder& operator=(TextEncoder&&) noexcept;

  const TextTower& tower() const;             // lives as long as the encoder
  const TextEncoderOptions& options() const;  // as given

  /// Tokenizes and encodes texts, with progress in texts. A cancelled call returns the vectors of the
  /// completed texts, the first ones. Throws Error unless all are UTF-8, naming the first that is not.
  void encode(std::span<const std::string_view> texts, TextEmbeddings& embeddings,
              const StreamOptions& options = {});
  /// Tokenizes and encodes texts into new embeddings, as above.
  TextEmbeddings encode(std::span<const std::string_view> texts, const StreamOptions& options = {});
  /// One text, E numbers.
  Tensor<float> encode(std::string_view text);
  /// What ends the following calls early, between two blocks; by default nothing. A call that ends throws
  /// Cancelled.
  void set_limits(RunLimits limits);
  /// Rows of ids from TextTower::tokenize -> (n, E), fewer if cancelled. Throws Error if a row has
  /// another length or an id is beyond the token table.
  Tensor<float> encode_ids(std::span<const TokenRow> rows, const StreamOptions& options = {});

 private:
  struct State;
  std::shared_ptr<const TextTower> tower_;
  std::unique_ptr<State> state_;
};

}  // namespace vit
