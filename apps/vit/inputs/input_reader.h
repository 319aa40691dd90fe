// Reads inputs: the image source of each, wherever it is stored, and digests of the files if they are
// requested.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "apps/vit/inputs/inputs.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/session.h"

namespace vit::app {

/// The image of an input other than preprocessed pixels. Throws Error if it cannot be read.
Image decode_input(const Input& input, const DecodeOptions& options);

/// The normalized planes of an input other than preprocessed pixels. Throws Error if it cannot be read.
Tensor<float> preprocess_input(const Input& input, const Preprocessor& preprocessor);

enum class Digests { none, sha256 };

class InputReader {
 public:
  /// The inputs must outlive the reader and what it returns.
  explicit InputReader(std::span<const Input> inputs, Digests digests = Digests::none)
      : inputs_(inputs), digests_(digests) {}

  /// What preprocesses the frames of clips; to be given where there are such, and to outlive the reader.
  void set_preprocessor(const Preprocessor* preprocessor) { preprocessor_ = preprocessor; }
  /// Callable from any thread.
  ImageSource source(std::size_t index);
  /// The SHA-256 of the bytes of an input that was read: of its file or archive member. Can be taken once.
  std::string take_digest(std::size_t index);

 private:
  void keep_digest(std::size_t index, std::string digest);
  void keep_digest_of_file(std::size_t index);
  void keep_digest_of_clip(std::size_t index);

  std::span<const Input> inputs_;
  Digests digests_;
  const Preprocessor* preprocessor_ = nullptr;
  std::mutex mutex_;  // guards the two below
  std::map<std::size_t, std::string> taken_;
  std::map<std::string, std::string> files_;  // of preprocessed pixels, which many inputs share
};

}  // namespace vit::app
