// From an image to the model input: resize, crop, pad, normalize, by the rules of the library that a
// checkpoint comes from. The rules are PreprocessConfig; the loader reads them from a checkpoint's
// files.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit {

// ----------------------------------------------------------------------------------------------------- rules

/// Kernel of the resampling.
enum class ResizeFilter {  // Pillow's enum order 0..5
  nearest,                 // the pixel whose area contains the center
  lanczos,                 // sinc with a sinc window, radius 3
  bilinear,                // triangle, radius 1
  bicubic,                 // a = -0.5, radius 2
  box,                     // mean of an area
  hamming,                 // sinc with a Hamming window, radius 1
  opencv_cubic,            // a = -0.75, radius 2 also where the image shrinks: INTER_CUBIC, on float data
  /// Two neighbors, after a Gaussian blur of sigma (factor - 1) / 2 where both edges shrink: OWLv2, on float
  /// data.
  blurred_bilinear,
  near_bilinear,  // two neighbors also where the image shrinks, on float data: RF-DETR
};

/// The library whose resizing is reproduced.
enum class Resampler {
  pillow,             // 22-bit fixed point, two 8-bit passes
  torchvision_uint8,  // torch antialias kernel on 8-bit data
  torchvision_float,  // torch antialias kernel on float data, after rescaling (DINOv3)
};

/// Order of Pillow's two passes, which changed between releases.
enum class PillowRelease {
  up_to_12_1,  // columns first
  from_12_2,   // rows first for images more than 100 times as high as wide
  from_13_0,   // rows first if they shrink more than twice as much as columns
};

/// The size to which an image is resized before it is cropped.
enum class ResizeRule {
  none,                   // kept as it is
  squash,                 // straight to (resize_height, resize_width)
  shortest_edge,          // shortest edge to resize_height, other edge = trunc(S * long / short)
  shortest_edge_floored,  // the same, then both edges down to multiples of size_multiple (YOLOS)
  cover,          // scale so that both edges cover the target, half-even rounding (timm center, non-square)
  contain,        // scale so that both edges fit the target, half-even rounding (timm border)
  contain_trunc,  // the same, truncated (Hugging Face max_height, max_width)
  nearer_scale,   // scale by that of the two ratios to the target which is nearer to 1 (Hugging Face's DPT)
  patches,  // scale so that max_patches patches are not exceeded, edges rounded up to whole patches (NaFlex)
  area,     // edges to the nearest multiples of edge_multiple, scaled if the area is out of its limits
            // (Qwen-VL)
  longest,  // no edge above longest_edge, then up to multiples of edge_multiple (Pixtral)
  patch_limit,  // at most max_patches patches, never enlarged (MoonViT)
  token_count,  // about max_patches patches, down to multiples of edge_multiple (Gemma 4)
  /// A box of the image, by default all of it: widened to the aspect ratio of (resize_height, resize_width)
  /// and by a quarter, and warped to it; what lies outside of the image is black (ViTPose)
  box,
  /// Into a canvas of whole tiles of resize_height x resize_width; those in turn are the result, row by row,
  /// and the image squashed into one more (TileCanvas, TileOverview)
  tiles,
};

/// The canvas of ResizeRule::tiles, and how the image is brought into it.
enum class TileCanvas {
  least_change,   // that which changes the image least without making it smaller, at most max_tiles; the
                  // aspect ratio is kept, and the canvas filled up at the bottom and right (Llama 4)
  nearest_ratio,  // min_tiles to max_tiles with the nearest aspect ratio, of equals the largest of which the
                  // image fills more than half; stretched to it (GOT-OCR, InternVL, Aya Vision, DeepSeek-OCR)
  least_enlarged,  // at most max_tiles, that which changes the image least; stretched (Command A Vision)
  listed,  // of `canvases` that which keeps most of the image's pixels, of equals that which wastes least;
           // the aspect ratio is kept, and the image centered (LLaVA-NeXT, LLaVA-OneVision)
  whole_edges,  // after a resize of the longest edge to longest_edge both up to whole tiles (Idefics 3)
};

/// The whole image squashed into one more tile.
enum class TileOverview {
  last_of_several,  // after the tiles if there are several
  always_first,     // before them
};

/// The first step of ResizeRule::area for edges shorter than edge_multiple.
enum class ShortEdges {
  kept,  // nothing
  each,  // each is enlarged to it, and the other edge in proportion (PaddleOCR-VL)
  both,  // both are multiplied so that none is shorter (GLM-4V)
};

/// Start of the crop if an odd number of pixels is removed.
enum class CropRounding {
  half_even,  // timm, torchvision
  floor,      // Hugging Face
};

/// Side of an odd pixel of padding if the image is smaller than the crop.
enum class PadRounding {
  extra_bottom_right,  // below and to the right of the image: timm, Hugging Face torchvision
  extra_top_left,      // above and to the left of it: Hugging Face pil
};

/// How 8-bit values are converted to normalized floats; each form is bit-exact to its library.
enum class NormalizeRule {
  divide_then_normalize,  // (float(x) / 255 - mean) / std: timm; Hugging Face pil
  fused,          // (float(x) - mean * 255) / (std * 255), products in float32: Hugging Face torchvision
  rescale_first,  // x * float(1 / 255), resize in float, then (x - mean) / std: DINOv3
  in_bfloat16,    // divide_then_normalize, each result rounded to bfloat16: Llama 4
};

/// Which of the frames of a video make a clip: n of N.
enum class FrameSampling {
  even,          // i N / n, rounded down: transformers' default, V-JEPA 2
  even_float32,  // the same computed in float32, n a multiple of the frames of a patch: Qwen2-VL, Qwen2.5-VL
  end_to_end,    // i (N - 1) / (n - 1), to the nearest, half to even: Qwen3-VL
};

/// Order of the planes of the model input. Mean and standard deviation stay assigned to their color.
enum class ChannelOrder {
  rgb,  // R, G, B
  bgr,  // B, G, R
};

/// The size of preprocessed images.
struct InputSize {
  /// Rule for the size.
  enum class Kind {
    model,   // that of the checkpoint's preprocessing
    native,  // each image in its own size, edges floored to a multiple of the patch size by a center crop
    fixed,   // the checkpoint's resize and crop rules with another target
  };
  Kind kind = Kind::model;  // rule for the size
  std::size_t height = 0;   // of fixed, pixels
  std::size_t width = 0;    // of fixed, pixels
};

/// How an image is converted to the model input (K, H, W): K = 3, red, green and blue; K = 1, gray as
/// in Pillow's convert("L"); any K, the bands of a TIFF with that many (also one, if it has more than
/// 8 bits). Bands are resized in float32 by torch's antialias kernel; 8-bit bands are rescaled by
/// rescale_factor, others are unchanged; then (x - mean) / std.
struct PreprocessConfig {
  Resampler resampler = Resampler::pillow;          // library that is reproduced
  PillowRelease pillow = PillowRelease::from_13_0;  // of Resampler::pillow
  ResizeFilter filter = ResizeFilter::bicubic;      // kernel of the resampling

  ResizeRule resize = ResizeRule::shortest_edge;  // the size before the crop
  std::size_t resize_height = 256;                // pixels; the edge of shortest_edge
  std::size_t resize_width = 256;                 // pixels
  std::size_t longest_edge = 0;                   // upper bound for shortest_edge, 0 = none; of longest
  double box_unit = 0.0;                          // of box: sizes are rounded in this unit, as float32
  /// > 0: of squash, cover and nearer_scale, edges are rounded to the nearest multiple of it, of cover not
  /// below the target.
  std::size_t size_multiple = 0;
  std::size_t max_patches = 0;                            // of patches, patch_limit and token_count
  std::size_t patch_size = 0;                             // of the same: their edge in pixels
  std::size_t max_tiles = 0;                              // of tiles, without the squashed one
  std::size_t min_tiles = 0;                              // of nearest_ratio; 0 = 1
  TileCanvas canvas = TileCanvas::least_change;           // of tiles
  TileOverview overview = TileOverview::last_of_several;  // of tiles
  std::vector<std::size_t> canvases{};  // of listed: height and width of each in turn, pixels
  bool fills_canvas = false;            // of least_change: the largest canvas, and images enlarged to it
  std::size_t max_side = 0;             // of patch_limit: patches of one edge; 0 = no limit
  std::size_t edge_multiple = 0;        // of area, longest and token_count, pixels
  std::size_t min_area = 0;             // of area, pixels
  std::size_t max_area = 0;             // of area, pixels
  std::size_t area_frames = 1;          // of area: frames that its limits count (GLM-4V, Qwen3-VL's clips)
  ShortEdges short_edges = ShortEdges::kept;  // of area
  /// timm: for another target the resize is to floor(target / crop_pct). 0: the ratio of resize to crop is
  /// kept.
  double crop_pct = 0.0;

  bool crop = true;               // to crop_height x crop_width around the center, or pad to it
  std::size_t crop_height = 224;  // pixels
  std::size_t crop_width = 224;   // pixels
  std::size_t crop_multiple = 0;  // > 0: crop to the largest multiples of it instead
  /// > 0: first the longest edge is resized to this, then both edges to the nearest multiples of
  /// size_multiple, each time by OpenCV's area filter or, if an edge grows, by its cubic one (Depth
  /// Anything 3).
  std::size_t opencv_longest_edge = 0;
  std::size_t pad_multiple = 0;  // > 0, without crop: pad to the next multiples of it
  bool pad_normalized = false;   // padding is 0 after normalization, not pad_color before it
  bool pad_at_end = false;       // to these multiples at the bottom and right, not around the image
  /// The model computes the result as overlapping squares along its longer edge and merges their outputs
  /// (EoMT for classes).
  bool windows = false;
  CropRounding crop_rounding = CropRounding::half_even;        // of an odd margin
  PadRounding pad_rounding = PadRounding::extra_bottom_right;  // of an odd margin
  std::array<unsigned char, 3> crop_pad_color{0, 0, 0};  // R, G, B around an image smaller than the crop

  NormalizeRule normalize = NormalizeRule::divide_then_normalize;  // order of the operations below
  bool rescale = true;                                             // false: pixel values stay 0..255
  double rescale_factor = 1.0 / 255.0;                             // of pixel values
  bool subtract_mean = true;                                       // false: no normalization
  /// One for each channel of the result: R, G, B; a single one for gray models; or one for each band
  /// of other images.
  std::vector<double> mean{0.485, 0.456, 0.406};
  std::vector<double> std{0.229, 0.224, 0.225};  // as `mean`

  bool apply_orientation = false;  // rotate by the EXIF tag before anything else
  bool alpha_on_white = false;     // composite transparency on white instead of dropping it
  /// Before the resize the image is centered in a square of its longer edge, an odd pixel of the
  /// padding at the bottom or right, as published taggers do with Image.paste.
  bool pad_to_square = false;
  bool square_at_corner = false;  // into the upper left corner of that square instead (OWLv2)
  std::array<unsigned char, 3> square_pad_color{0, 0, 0};  // R, G, B
  ChannelOrder channels = ChannelOrder::rgb;               // of the planes of the model input
  std::size_t max_pixels = kMaxImagePixels;                // of an image file; larger ones are an Error

  /// > 0: these rules are those of frames of clips of so many.
  std::size_t clip_frames = 0;
  /// Clips are filled up to multiples of it with their last frame.
  std::size_t frames_of_patch = 1;
  FrameSampling sampling = FrameSampling::even;  // of a video

  std::string source;  // file and class it was read from, for messages and `vit info`

  /// K: planes of the result.
  std::size_t num_channels() const noexcept { return mean.size(); }
};

/// Throws Error naming the first field that is out of range or contradicts another.
VIT_API void validate(const PreprocessConfig& config);

/// Limits of the area of an image, in pixels.
struct AreaLimits {
  std::size_t least = 0;  // pixels
  std::size_t most = 0;   // pixels
};

/// A box in an image: edges in pixels from the upper left corner.
struct Box {
  double x0 = 0;  // left edge, pixels
  double y0 = 0;  // upper edge
  double x1 = 0;  // right edge
  double y1 = 0;  // lower edge
  /// The box of a whole image.
  static Box whole(ImageSize image) {
    return {.x1 = static_cast<double>(image.width), .y1 = static_cast<double>(image.height)};
  }
  bool operator==(const Box&) const = default;
};

/// Whose arithmetic resizes images.
enum class ResamplerChoice {
  automatic,    // that of the checkpoint's own library: timm and OpenCLIP Pillow, Hugging Face torchvision
  pillow,       // timm's rules, or those of Hugging Face's pil backend
  torchvision,  // the 8-bit kernel of torch
};

/// Treatment of the EXIF orientation.
enum class ExifChoice {
  automatic,  // timm and OpenCLIP ignore the orientation, Hugging Face applies it
  apply,      // always
  ignore,     // never
};

// ---------------------------------------------------------------------------------------------------- images

/// The rules of `config` for another target (see InputSize), H x W below. `patch_size` is used only for
/// native. All divisions round down:
///
///   target  crop  crop_pct  resize                resize to                       crop to
///   native  any   any       any                   no resize                       multiples of patch_size
///   H x W   no    any       shortest_edge         shortest edge H, must equal W   no crop
///   H x W   no    any       none                  Error: nothing to replace       no crop
///   H x W   no    any       any other             H x W by the same rule          no crop
///   H x W   yes   > 0       shortest_edge, cover  (H x W) / crop_pct: shortest    H x W
///                                                 edge if equal, else cover
///   H x W   yes   > 0       other                 (H x W) / crop_pct, same rule   H x W
///   H x W   yes   0         shortest_edge         resize_height max(H, W) /       H x W
///                                                 max(crop height, width)
///   H x W   yes   0         other                 resize_height H / crop_height   H x W
///                                                 by resize_width W / crop_width
///
/// For a resize to a number of patches, H must equal W, and the number becomes that of such a square: the
/// aspect ratio is kept. Rules with limits of area or edges become a squash to H x W, each rounded to the
/// nearest multiple of edge_multiple or pad_multiple, at least one. A bound on the longest edge is dropped
/// with the old target, unless crop_pct is used.
VIT_API PreprocessConfig with_input_size(const PreprocessConfig& config, const InputSize& size,
                                         std::size_t patch_size);

/// The rules with other limits of area, for ResizeRule::area. Throws Error for other rules (mismatch)
/// and for limits that contradict each other.
VIT_API PreprocessConfig with_area_limits(const PreprocessConfig& config, const AreaLimits& limits);

/// Indices of config.clip_frames frames of a video of `num_frames`, in increasing order, by config.sampling.
/// Throws Error (argument) if the video has fewer.
VIT_API std::vector<std::size_t> sample_frames(const PreprocessConfig& config, std::size_t num_frames);

/// "bicubic" for ResizeFilter::bicubic, as spelled in Pillow's documentation.
VIT_API const char* filter_name(ResizeFilter filter);

/// Buffers and tables of weights shared by a caller's runs: after an image of one size and format, others
/// like it are preprocessed without allocation. Tables of the last few sizes are kept; above 256 MiB
/// everything is released at the end of a run. Must not be shared between threads.
class VIT_API PreprocessMemory {
 public:
  PreprocessMemory();
  ~PreprocessMemory();
  PreprocessMemory(PreprocessMemory&&) noexcept;
  PreprocessMemory& operator=(PreprocessMemory&&) noexcept;

  /// Bytes in use.
  std::size_t bytes() const noexcept;

 private:
  friend class Preprocessor;
  struct Buffers;
  Buffers& buffers();
  std::unique_ptr<Buffers> buffers_;
};

/// The map from preprocessed pixels to the source image. Points are measured in pixels from the upper left
/// corner, so the center of pixel 0 is at 0.5. The point (x, y) of the result is the point (left + x *
/// x_step, top + y * y_step) of the source; padding maps to points outside of it.
struct SourceMap {
  double left = 0;    // source pixels
  double top = 0;     // source pixels
  double x_step = 1;  // source pixels per pixel of the result
  double y_step = 1;  // source pixels per pixel of the result
};

/// The preprocessed pixels of an image file.
struct FilePixels {
  Tensor<float> pixels;  // (K, H, W), normalized
  ImageSize image_size;  // of the image, upright if the rules rotate it
};

/// Immutable; threads may share one object. Images may have any PixelFormat: the result is that of the
/// image converted to RGB, with transparency dropped or composited on white as the rules say, or of that
/// converted to gray. Letters: K = num_channels().
class VIT_API Preprocessor {
 public:
  /// Throws Error for rules that contradict each other or that no resampler supports.
  explicit Preprocessor(const PreprocessConfig& config);
  /// The rules of with_input_size().
  Preprocessor(const PreprocessConfig& config, const InputSize& size, std::size_t patch_size)
      : Preprocessor(with_input_size(config, size, patch_size)) {}

  const PreprocessConfig& config() const noexcept { return config_; }  // its rules
  /// K: planes of one image.
  std::size_t num_channels() const noexcept { return config_.num_channels(); }
  /// Options for decoding files for these rules.
  DecodeOptions decode_options() const noexcept;

  /// Size of the result for an image of `in`. Throws Error for an image that the rules cannot handle.
  ImageSize output_size(ImageSize in) const;
  /// Planes of the result: K, or K for each tile of ResizeRule::tiles. Throws Error as output_size() does.
  std::size_t num_planes(ImageSize in) const;
  /// The source positions of the pixels of the result. Throws Error as output_size() does.
  SourceMap source_map(ImageSize in) const;

  /// Normalized planes of `image`, R, G, B unless the rules change the order, written to `out` (K, H, W) with
  /// (H, W) = output_size() and K = num_planes(). `threads`: 0 = all; the result does not depend on it.
  /// Throws Error for another shape of `out`, one without memory or with rows that overlap, an image that the
  /// rules cannot handle, and one that would need excessive intermediate memory.
  void run(ImageView image, TensorView<float> out, PreprocessMemory& memory, int threads = 1) const;
  /// Writes the normalized planes of `image` to `out` with buffers that last for this call.
  void run(ImageView image, TensorView<float> out, int threads = 1) const;
  /// The normalized planes (K, H, W) of `image` as a new tensor.
  Tensor<float> run(ImageView image, int threads = 1) const;

  /// The normalized planes (K, H, W) of a box of `image`. Throws Error (mismatch) for rules other than
  /// ResizeRule::box, (argument) for a box that is empty, not finite or outside of the image.
  Tensor<float> run_box(ImageView image, const Box& box) const;

  /// The normalized planes of an image file in memory: run() of what decode_bytes() makes of it with
  /// decode_options(), bit by bit, and its errors. Where the decoder gives rows (JPEG, PNG, BMP, PNM, TIFF in
  /// strips), no image is in memory: rows are resized by one thread as they are decoded, and what the crop
  /// leaves out is skipped. Rules that pad to a square, and those that rotate the image and resize it in
  /// float or to the nearest pixel, take the whole image. messages call the file `name`.
  FilePixels run_bytes(std::span<const std::byte> file, const std::string& name, PreprocessMemory& memory,
                       int threads = 1) const;
  /// The normalized planes of an image file. Throws Error as decode_file() and run() do.
  FilePixels run_file(const std::filesystem::path& file, PreprocessMemory& memory, int threads = 1) const;

  /// The frames of a clip, one after the other, and the last again until they fill a patch: (F K, H, W).
  /// Throws Error for frames that become different sizes, and for none.
  Tensor<float> run_clip(std::span<const ImageView> frames, int threads = 1) const;

  /// Whether the rules have an 8-bit image before normalization.
  bool has_crop_stage() const noexcept { return config_.normalize != NormalizeRule::rescale_first; }
  /// The 8-bit image after resize, crop and padding, before normalization; RGB for any order of the planes.
  /// Throws Error for rules that resize in float (DINOv3 of Hugging Face), which have none.
  Image crop_stage(ImageView image, int threads = 1) const;

  /// The rules in words, a few lines without a newline at the end.
  std::string describe() const;

 private:
  struct VIT_HIDDEN Steps;  // from plans to bytes to floats
  Steps steps() const noexcept;

  PreprocessConfig config_;
  std::array<std::array<float, 256>, 3> levels_{};  // normalized value of every byte, per channel
};

}  // namespace vit
