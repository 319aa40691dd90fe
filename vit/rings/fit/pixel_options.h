// What the options of features of pixels are in messages and files.
#pragma once

#include <cstdint>
#include <string>

#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/outputs.h"
#include "vit/pixels.h"

namespace vit::internal {

inline constexpr std::int32_t kMostPixelClasses = 1 << 16;

/// The outputs by name, with commas: "patches", "block.3,block.7".
std::string features_name(const PixelOptions& options);
/// "block.3,block.7, size 518x518, scale 1, bilinear, color": for messages.
std::string described(const PixelOptions& options);

/// Whether features of both can be compared.
bool are_same(const PixelOptions& a, const PixelOptions& b);

/// The tokens of patches (h w, C) of options.layers[index], or the patches after the final norm.
TensorView<const float> patches_of_layer(const ImageOutputs& outputs, const PixelOptions& options,
                                         std::size_t index);

/// Members of a JSON object, without its braces.
void write_members(JsonWriter& json, const PixelOptions& options);
/// Throws Error that names the place of what is wrong.
PixelOptions parse_pixel_options(const Json& json);

}  // namespace vit::internal
