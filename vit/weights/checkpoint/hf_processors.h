// The image processors of transformers: which class a file means, and its defaults.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "vit/image/preprocess.h"
#include "vit/io/json.h"

namespace vit::internal {

/// Classes with steps of their own, by their names without "ImageProcessor".
inline constexpr std::string_view kNaFlex = "Siglip2", kLlama4 = "Llama4", kOwlv2 = "Owlv2",
                                  kVitPose = "VitPose", kRfDetr = "RfDetr";

/// What few classes have otherwise.
struct RareDefaults {
  bool normalizes = true;
  bool resizes = true;
  bool can_crop = true;         // false: do_center_crop is ignored
  std::size_t unused_crop = 0;  // crop_size of a class that crops only if the file asks for it
  std::size_t width = 0;        // of a rectangle; 0 = size
};

/// Defaults of a class for values missing in the file.
struct ProcessorClass {
  std::string_view name;
  ResizeFilter filter;
  std::size_t size;
  bool square_default;   // the class' own size is a squash
  bool square_from_int;  // an integer in the file is a squash
  std::size_t crop;      // 0 = no crop
  std::array<double, 3> mean;
  std::array<double, 3> std;
  RareDefaults rare{};
};

/// A switch of a processor. null is the None that the library gets for it: false, whatever the class says.
bool read_switch(const Json& file, std::string_view key, bool if_absent);

/// The class that the file names, else the one of `model_type` ("" where unknown), of images or of clips.
/// Throws Error if it is not implemented.
const ProcessorClass& find_processor(const Json& file, const std::string& model_type, bool of_clips);

/// What single classes have in addition to a size for all images, for files and for results.
struct OwnSizes {
  std::string_view processor;
  void (*read)(const Json& file, PreprocessConfig& config);
  bool pads = false;          // do_pad is a step of theirs
  bool divides = false;       // size_divisor too
  std::string_view splits{};  // the key by which it cuts images into tiles
  bool reads_size = false;    // only `read` reads size
};

/// GotOcr2ImageProcessor with crop_to_patches, which the processors of InternVL and Aya Vision ask for
/// whatever the file says.
void read_got_ocr_tiles(const Json& file, PreprocessConfig& config);

/// Null for a class without any: hf_own_sizes.cpp.
const OwnSizes* find_own_sizes(std::string_view processor);

}  // namespace vit::internal
