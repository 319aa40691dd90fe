// What a dense head is: numbers of every pixel (depth, normals, classes), heat maps or boxes, made of the
// tokens that leave some blocks. Plain data, filled by an adapter of weights/families. Letters: K taps, from
// shallow to deep; c_K = channels of the map of a tap, F = channels of the fused map, h x w patches of edge
// P, N = boxes of an image.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/outputs.h"

namespace vit {

/// Most taps of a branch.
inline constexpr std::size_t kMaxTaps = 8;

/// How the last layer's numbers become those of the map.
enum class MapFinish {
  none,         // as they are
  relu,         // max(0, x)
  sigmoid,      // times `scale`
  exponential,  // exp(x)
  linear_bins,  // mean of evenly spaced depths, weighted by ReLU + offset
  log_bins,     // mean of depths that go over from logarithmic to even spacing, weighted in the same way
};

/// One map that a branch outputs, and what is done with its numbers.
struct MapOutput {
  Output meaning = Output::depth;      // of its numbers
  std::size_t channels = 1;            // that the last layer gives: bins, classes, 3 of a normal
  MapFinish finish = MapFinish::relu;  // applied to the numbers of the last layer
  float scale = 1.0f;                  // multiplies the result
  float offset = 0.0f;                 // is added after that; of bins, to the ReLU of a weight
  float lowest = 0.0f;                 // of bins; the result is not below
  float highest = 0.0f;                // of bins; the result is not above; 0 = no bounds
};

/// What is made of the class token of a tap.
enum class ClassReadout {
  dropped,       // patches only
  projected,     // patch = activation(W (patch, class) + b)
  added,         // patch + class
  concatenated,  // (patch, class), twice as wide
};

/// The height and width that a fusion layer leaves.
enum class FusionSize {
  next_map,  // those of the next map; of the last layer twice its own
  doubled,   // twice its own; a map of another size is resized to it, edges aligned
};

/// The height and width of the map before the last layers.
enum class HeadSize {
  fused,    // of the fused map
  doubled,  // twice of it
  patches,  // of the patches: (h P, w P)
};

/// What follows the fused map.
enum class HeadLayersKind {
  convolutions,  // 3x3 to half the channels, HeadSize, 3x3 to `hidden`, ReLU, 1x1: one pair of these for each
                 // output
  classes,       // 3x3 without bias, batch norm, ReLU, 1x1, HeadSize
  linear,        // a product of each pixel
};

/// Dense Prediction Transformer (Ranftl et al. 2021) in the dialects of its users.
struct DptConfig {
  ClassReadout readout = ClassReadout::dropped;          // use of the class token
  Activation readout_activation = Activation::gelu;      // after the readout projection
  std::vector<std::size_t> channels;                     // c_K of four taps
  std::size_t features = 0;                              // F
  bool residual_bias = true;                             // of the 3x3 convolutions of the residual units
  bool residual_batch_norm = false;                      // after each of them
  FusionSize fusion_size = FusionSize::next_map;         // size of a fused map
  std::size_t extra_channels = 0;                        // a 3x3 convolution after the fusion; 0 = none
  bool extra_bias = true;                                // of it
  bool extra_relu = true;                                // after it
  HeadLayersKind layers = HeadLayersKind::convolutions;  // the last layers
  HeadSize head_size = HeadSize::patches;                // of the map before the last layers
  std::size_t hidden = 32;                               // channels before the last layer
};

/// A product of each patch, as DINOv2's linear heads have it: the maps of the taps side by side, each
/// resized.
struct LinearMapConfig {
  ClassReadout readout = ClassReadout::dropped;  // use of the class token
  std::size_t enlarged = 1;  // rows and columns of the maps become so many times more, edges aligned
  bool batch_norm = false;   // before the product
};

/// Queries among the tokens, each with classes and a mask (EoMT): the product of what an MLP makes of it and
/// of the enlarged map of the patches.
struct MaskConfig {
  std::size_t queries = 0;                   // Q: the first tokens
  std::size_t doublings = 0;                 // of rows and columns of the map
  Activation activation = Activation::gelu;  // of both
  float map_norm_eps = 1e-6f;                // of the norms over the channels of a pixel
};

/// How a map of patches becomes heat maps (ViTPose).
enum class HeatmapDecoder {
  simple,   // ReLU, enlarged, 3x3
  classic,  // two transposed convolutions of 4x4 with stride 2, batch norm and ReLU after each, then 1x1
};

/// A map of patches becomes heat maps of keypoints (ViTPose).
struct HeatmapConfig {
  HeatmapDecoder decoder = HeatmapDecoder::simple;  // how
  std::size_t enlarged = 4;    // of simple: rows and columns become so many times more, edges aligned
  std::size_t channels = 256;  // of classic: those of the maps in between
};

/// Which tokens give a box each.
enum class BoxTokens {
  registers,  // YOLOS calls them detection tokens
  patches,    // one each
};

/// Small perceptrons of some tokens: their boxes and what is in them (YOLOS, OWL-ViT).
struct BoxConfig {
  BoxTokens tokens = BoxTokens::registers;   // which tokens give a box each
  Activation activation = Activation::relu;  // between the three layers of a perceptron
  bool times_class_token = false;            // each token is multiplied by it, then normalized
  float times_norm_eps = 1e-5f;              // of that norm
  bool from_patch = false;                   // boxes are corrections of the patch's place and size
};

/// A map of the patches that queries sample: its edges next to those of the grid.
enum class MapScale {
  half,   // half the height and width, rounded up
  same,   // as it is
  twice,  // twice the height and width
};

/// Queries that sample maps of the patches where they expect objects, in two stages: the best places of the
/// maps, then a decoder (LW-DETR, RF-DETR).
struct QueryBoxConfig {
  std::vector<MapScale> levels{MapScale::same};  // maps, each joined from all taps
  std::size_t width = 256;                       // D: channels of maps and queries
  std::size_t inner = 128;                       // channels of the convolutions that join taps
  std::size_t pairs = 3;                         // of 3x3 convolutions among them
  Activation activation = Activation::silu;      // after each of them
  bool batch_norm = false;                       // before it; else LayerNorm over the channels of a pixel
  float norm_eps = 1e-5f;                        // of either
  std::size_t queries = 300;                     // Q
  std::size_t stored_groups = 1;                 // of Q queries; only training uses more than the first
  std::size_t layers = 3;                        // of the decoder
  std::size_t heads = 8;                         // of attention between queries
  bool attention_bias = true;                    // of that attention
  std::size_t sampling_heads = 16;               // of attention to the maps
  std::size_t points = 4;                        // of a map, sampled by each head
  std::size_t mlp_dim = 2048;                    // of the decoder
  Activation mlp_activation = Activation::relu;  // of the decoder
};

/// One map or several on a way of their own from the tokens.
struct DenseBranch {
  std::string name;               // in front of its tensors' names
  std::vector<std::size_t> taps;  // tokens that leave these blocks, from 0
  bool tap_norm = true;           // a norm of its own on these tokens
  float tap_norm_eps = 1e-6f;     // epsilon of that norm
  std::variant<DptConfig, LinearMapConfig, MaskConfig, HeatmapConfig, BoxConfig, QueryBoxConfig>
      layers;                      // kind of the branch
  std::vector<MapOutput> outputs;  // in the order of the last layer
};

/// How a map comes to the size of an image, without antialias.
enum class ImageResize {
  bicubic,           // a = -0.75, edges aligned
  bilinear,          // edges aligned
  bilinear_corners,  // corners aligned
};

/// What depths are.
enum class DepthUnit {
  meter,     // distances, larger is farther
  inverse,   // affine-invariant inverse depth: larger is nearer, neither zero nor unit are known
  relative,  // affine-invariant depth: larger is farther, no unit
};

/// Colors of classes in the order of their indices, R, G, B; empty if no file defines any.
using Palette = std::vector<std::array<unsigned char, 3>>;

/// The dense head of a model: branches from tapped blocks to maps, and how maps are brought to the image.
struct DenseConfig {
  std::string family;                           // adapter that read it
  std::vector<DenseBranch> branches;            // each with taps of its own
  DepthUnit depth_unit = DepthUnit::inverse;    // of Output::depth
  ImageResize to_image = ImageResize::bicubic;  // how maps get the size of the image
  /// Pixels whose edges are no whole patches are padded in the middle with zeros, as the publisher's model
  /// does it.
  bool pads_pixels = false;
  /// With Output::masks: an image as long as several of the model's squares is computed as squares along its
  /// longer edge. false if the preprocessing of the checkpoint has one square an image.
  bool cuts_windows = true;
  /// Depths where Output::sky is at least 0.3 become the 0.99 quantile of the others.
  bool sky_is_farthest = false;
  /// Boxes are parts of the square of the image's longer edge, at whose upper left corner the image lies.
  bool boxes_of_square = false;
  float box_threshold = 0.5f;  // of scores, as the library's post-processing has it
  /// Each class of a box has a score for itself, none is "no object", and so many of all boxes and classes
  /// are results, the best first; 0 = the best class of each box.
  std::size_t best_boxes = 0;
  /// Of classes, of pixels, queries or boxes, or of keypoints; empty = numbers.
  std::vector<std::string> labels;

  /// The output of that meaning, or null.
  VIT_API const MapOutput* find(Output meaning) const;
  /// Of Output::box_classes, without "no object"; 0 without that output.
  VIT_API std::size_t num_box_classes() const;
  /// All its outputs.
  VIT_API Request request() const;
};

/// Whose rules resize images and maps where the library of the files and the publisher's code differ.
enum class ResizeRuleChoice {
  automatic,   // of the files: transformers' for its folders, the publisher's for the publisher's
  library,     // transformers
  repository,  // the publisher's code
};

/// What the files of a dense head do not say.
struct DenseOptions {
  std::filesystem::path head{};                       // a publisher's file for the backbone; "" = none
  std::vector<std::size_t> taps{};                    // blocks, from 0; none = as published
  std::optional<std::array<float, 2>> depth_range{};  // of bins, metres
  std::optional<float> max_depth{};                   // of metric depth, metres
  ResizeRuleChoice resize_rule = ResizeRuleChoice::automatic;  // whose sizes images have
  std::size_t expert = 0;  // of models with experts: that of the data set of this index (ViTPose+: 0 = COCO)
};

/// Throws Error naming the first field that is out of range or contradicts another. `depth`: blocks of the
/// backbone.
VIT_API void validate(const DenseConfig& config, std::size_t depth);

/// "metre" for DepthUnit::meter, "inverse", "relative".
VIT_API const char* to_string(DepthUnit unit);

}  // namespace vit
