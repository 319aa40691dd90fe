// Requests and outputs of a forward pass, for one image, a batch, or images of several sizes,
// and the times of its stages. Letters: B images, h, w patches per column and row, T = prefix + h w
// tokens, C = embed_dim, E = projection_dim.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/position/config.h"

namespace vit {
struct DenseConfig;
struct ModelConfig;
class ImageOutputs;
namespace internal {
class OutputWriter;
}

// --------------------------------------------------------------------------------------------------- request

/// Outputs of a forward pass; shapes are those of one image. vit/config/output_table.cpp has a row for
/// each: its name in files and on the command line, its shape, and which models have it. The values below
/// 1 << 17 are the bits of vit/c.h.
enum class Output : std::uint32_t {
  pooled = 1,       // (C), as the library of the checkpoint defines it
  projected = 2,    // (E), joint image-text space, not normalized
  class_token = 4,  // (C), after the final norm; "cls"
  patches = 8,      // (h, w, C), after the final norm
  tokens = 16,      // (T, C), after the final norm, prefix first; cells by MergerConfig::tokens_after
  embedded = 32,    // (T, C), tokens entering block 0
  logits = 64,      // (num_classes)
  block = 128,      // (T, C), tokens leaving a block, before the final norm
  attention = 256,  // (heads, T, T), softmax probabilities of a block, rows are queries
  attention_query = 1 << 13,  // (heads, T), those of one query: memory is linear in the number of tokens
  /// (T), attention rollout (Abnar and Zuidema 2020) from a token at the output of its block back to the
  /// tokens that enter block 0: products of (mean over the heads + identity) / 2. Costs about as much again
  /// as the query, key and softmax parts of the preceding blocks; memory is linear in T and in the blocks.
  rollout = 1 << 14,
  merged = 1 << 15,     // (h', w', V), visual tokens for a language model, cells row by row
  deepstack = 1 << 16,  // (h', w', V), those of a merger between blocks (Qwen3-VL)

  // Of a dense head, at its own resolution H, W; dense.h, boxes.h and pose.h bring them to the image. Of an
  // image that was computed as several windows they have the windows as their first dimension.
  depth = 1 << 17,         // (H, W), in DenseConfig::depth_unit
  sky = 1 << 18,           // (H, W), larger where there is sky
  normals = 1 << 19,       // (3, H, W): x, y, z of any length
  classes = 1 << 20,       // (classes, H, W): scores
  masks = 1 << 21,         // (Q, H, W): of each query, positive inside its segment
  mask_classes = 1 << 22,  // (Q, classes + 1): scores of what each query is, the last of no object
  heatmaps = 1 << 23,      // (K, H, W): of each keypoint, largest at its position
  boxes = 1 << 24,         // (N, 4): center x, y, width, height as parts of the image
  box_classes = 1 << 25,   // (N, classes + 1): scores of classes, the last of no object (YOLOS)
  box_vectors = 1 << 26,   // (N, E): to be compared with texts
  box_terms = 1 << 27,     // (N, 2): added to a cosine; ELU + 1 of it is a factor
  objectness = 1 << 28,    // (N, 1): score of being any object
};

/// One output to request: Output::pooled, {Output::block, 11} or {Output::rollout, 11, 0}.
struct OutputKey {
  /// An output, of a block and a query if it has them.
  constexpr OutputKey(Output of, std::size_t block = 0, std::size_t query = 0)
      : output(of), index(block), token(query) {}
  bool operator==(const OutputKey&) const = default;

  Output output;  // which
  /// Of the block, 0 .. depth - 1 (only parse_output() reads negative numbers), or of the merger.
  std::size_t index;
  std::size_t token;  // of attention_query and rollout: the query, 0 .. T - 1, prefix tokens first
};

/// "pooled", "block.11", "rollout.11.0": the name in files and on the command line.
VIT_API std::string to_string(const OutputKey& key);
/// The inverse; negative indices count from the end: "block.-1". `head`: Model::dense_config(). Throws Error
/// (argument) for an unknown name, listing the known ones, and for outputs that this model does not have.
VIT_API OutputKey parse_output(std::string_view name, const ModelConfig& config,
                               const DenseConfig* head = nullptr);
/// The vector that represents an image: projected if the model has it, else pooled.
VIT_API Output default_output(const ModelConfig& config);

/// The set of requested outputs: {Output::logits, {Output::block, 3}}. A request for an output that
/// the model does not have is an Error that names it.
class VIT_API Request {
 public:
  Request() = default;
  /// Asks for these outputs.
  Request(std::initializer_list<OutputKey> keys) {
    for (const OutputKey& key : keys) add(key);
  }
  /// Asks for one output.
  Request(Output output) { add(output); }

  /// Adds an output, unless it is already present.
  void add(const OutputKey& key);
  bool has(const OutputKey& key) const noexcept;  // exactly this one
  bool has_any(Output output) const noexcept;     // of any block and token
  /// Whether nothing is asked for.
  bool empty() const noexcept { return bits_ == 0; }
  /// The outputs with an index, in the order in which they were added.
  std::span<const OutputKey> indexed() const noexcept { return indexed_; }

 private:
  std::uint32_t bits_ = 0;  // of all outputs
  std::vector<OutputKey> indexed_;
};

// --------------------------------------------------------------------------------------------------- results

/// An output of a pass and its numbers, (B, ...).
struct OutputTensor {
  OutputKey key;             // which output
  TensorView<float> values;  // of all images
};

/// An image, and its position in the pixels that a model computed.
struct ImageFrame {
  ImageSize image{};    // as decoded; of preprocessed pixels their own
  ImageSize pixels{};   // that were computed
  ImageSize content{};  // upper left part of these that shows the image
};

/// Results of one forward pass over B images of one size. Reusing the object for the same shapes allocates
/// nothing.
class VIT_API Outputs {
 public:
  std::size_t num_images() const noexcept { return num_images_; }  // B: images of the pass
  /// Of each input: patches in time of a clip, or tiles of an image; 1 of others. With several, outputs have
  /// these as their first dimension: merged is (steps, h', w', V). Where tokens attend to those of all steps
  /// (StackRule::together) they are one sequence, T = prefix + steps h w, and only patches have them.
  std::size_t num_steps() const noexcept { return num_steps_; }
  /// Windows that each image was computed as, for a head that joins them; 1 of others.
  std::size_t num_windows() const noexcept { return num_windows_; }
  GridSize grid() const noexcept { return grid_; }  // h x w
  /// Late, class, distillation and register tokens, which come before the patches after the last block.
  std::size_t num_prefix_tokens() const noexcept { return num_prefix_tokens_; }
  /// Those that enter late, which come first (ModelConfig::num_late_tokens).
  std::size_t num_late_tokens() const noexcept { return num_late_tokens_; }
  /// Whether the first of the prefix tokens is a class token; models with registers only have none.
  bool has_class_token() const noexcept { return has_class_token_; }

  /// The part of image `index`, below num_images().
  ImageOutputs operator[](std::size_t index) const&;
  ImageOutputs operator[](std::size_t index) const&& = delete;  // it would point into destroyed outputs

  /// Whether the values of all images are stored, as operator[] returns them.
  bool has(const OutputKey& key) const noexcept { return find_tensor(key) != nullptr; }
  /// The values of all images, (B, ...); of a dense head (B windows, planes, H, W). Throws Error if they were
  /// not requested, and for parts of others, class_token and patches, which are in ImageOutputs.
  TensorView<const float> operator[](const OutputKey& key) const VIT_LIFETIME_BOUND;

  /// From now on `key` of every pass is written to the caller's memory, which must be large enough for its B
  /// images and stay valid; an empty span ends this.
  void bind(const OutputKey& key, std::span<float> memory);

 private:
  struct Bound {
    OutputKey key;
    std::span<float> memory;
  };
  const OutputTensor* find_tensor(const OutputKey& key) const noexcept;
  friend class ImageOutputs;
  friend class internal::OutputWriter;

  std::vector<OutputTensor> tensors_;
  std::vector<Tensor<float>> memory_;  // of tensors_, unless the caller gives it
  std::vector<Bound> bound_;
  std::shared_ptr<const DenseConfig> head_;
  std::vector<ImageFrame> frames_;  // of the images
  GridSize grid_;
  std::size_t num_images_ = 0;
  std::size_t num_steps_ = 1;
  std::size_t num_windows_ = 1;
  bool steps_are_apart_ = false;
  std::size_t num_prefix_tokens_ = 0;
  std::size_t num_late_tokens_ = 0;
  bool has_class_token_ = false;
};

/// The outputs of one image: a view into the Outputs of its pass, valid as long as these live and are not
/// used for another run. Each function throws Error if its output was not requested.
class VIT_API ImageOutputs {
 public:
  /// The part of image `index`, below outputs.num_images(); `outputs` must outlive it.
  ImageOutputs(const Outputs& outputs, std::size_t index) : outputs_(&outputs), index_(index) {}

  /// The values of any output, in the shape given for Output.
  TensorView<const float> operator[](const OutputKey& key) const;

  std::span<const float> logits() const { return (*this)[Output::logits].flat(); }        // (num_classes)
  std::span<const float> pooled() const { return (*this)[Output::pooled].flat(); }        // (C)
  std::span<const float> projected() const { return (*this)[Output::projected].flat(); }  // (E)
  /// Class token after the final norm (C). Throws Error for a model that has none.
  std::span<const float> class_token() const { return (*this)[Output::class_token].flat(); }
  /// Patch tokens after the final norm as a feature map (h, w, C).
  TensorView<const float> patches() const { return (*this)[Output::patches]; }
  TensorView<const float> tokens() const { return (*this)[Output::tokens]; }  // (T, C), after the final norm
  TensorView<const float> embedded() const { return (*this)[Output::embedded]; }  // (T, C), entering block 0
  /// (T, C), leaving a block.
  TensorView<const float> block(std::size_t block) const { return (*this)[{Output::block, block}]; }
  /// (heads, T, T) of a block.
  TensorView<const float> attention(std::size_t block) const { return (*this)[{Output::attention, block}]; }

  /// The image and its position in the pixels that were computed. Throws Error if the outputs have no such
  /// image.
  ImageFrame frame() const;
  /// These outputs as those of another image: for pixels that the caller preprocessed, the image that they
  /// were made from. Throws Error for a size of an image that overflows.
  ImageOutputs of(const ImageFrame& frame) const;
  /// The dense head that gave its outputs, null without one; it lives as long as these outputs.
  const DenseConfig* head() const noexcept { return outputs_->head_.get(); }
  GridSize grid() const noexcept { return outputs_->grid(); }  // h x w, of each step
  /// As Outputs::num_steps().
  std::size_t num_steps() const noexcept { return outputs_->num_steps(); }
  std::size_t num_windows() const noexcept { return outputs_->num_windows(); }  // as Outputs::num_windows()
  /// Late, class, distillation and register tokens, which come before the patches after the last block.
  std::size_t num_prefix_tokens() const noexcept { return outputs_->num_prefix_tokens(); }

 private:
  const Outputs* outputs_;
  std::size_t index_;
  std::optional<ImageFrame> frame_{};  // instead of that of the pass
};

/// Results of images of any sizes, in input order. Reusing the object for images of the same sizes allocates
/// nothing.
class VIT_API BatchOutputs {
 public:
  std::size_t size() const noexcept { return places_.size(); }  // images
  bool empty() const noexcept { return places_.empty(); }       // nothing was run
  /// The outputs of input `index`, valid until this object is used for another run.
  ImageOutputs operator[](std::size_t index) const&;
  ImageOutputs operator[](std::size_t index) const&& = delete;  // it would point into destroyed results

 private:
  friend class Session;
  struct Place {
    std::size_t pass = 0;
    std::size_t index = 0;
  };
  std::vector<Outputs> passes_;  // images of one size each; those after the last one used keep their memory
  std::vector<Place> places_;    // the location of each image
};

/// Cosine of the angle between two vectors of equal size, in double; 0 if one of them is zero.
VIT_API double cosine_similarity(std::span<const float> a, std::span<const float> b);

/// Scales a vector to length 1; a zero vector stays zero.
VIT_API void normalize_vector(std::span<float> vector);

// ------------------------------------------------------------------------------------------------------ time

/// Parts of a forward pass.
enum class Stage {
  patchify,   // pixels to rows of patches
  embed,      // their projection, positions and prefix tokens
  norms,      // before attention and MLP, including the rounding of rows for bfloat16 and int8
  qkv,        // projection to queries, keys and values
  attention,  // rotation, products, softmax
  proj,       // projection after attention
  mlp,        // of the blocks
  head,       // final norm, pooling, projection and classifier
  dense,      // maps of a dense head
};

/// Names of the stages, in the order of Stage.
inline constexpr std::array<const char*, 9> kStageNames{"patchify", "embed", "norms", "qkv",  "attention",
                                                        "proj",     "mlp",   "head",  "dense"};

/// Seconds of wall clock per stage, summed over passes.
struct StageTimes {
  std::array<double, kStageNames.size()> seconds{};  // in the order of Stage
};

}  // namespace vit
