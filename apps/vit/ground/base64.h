// Base64 (RFC 4648) and data URIs (RFC 2397), which clients send images in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vit::app {

/// The bytes of base64 text, with or without padding, in the alphabet of RFC 4648 section 4 or 5; ASCII white
/// space is passed over. Nothing for any other character, for what follows the padding, and for a length that
/// no bytes have.
std::optional<std::string> decode_base64(std::string_view text);
/// With padding, without line breaks.
std::string encode_base64(std::string_view bytes);

/// A data URI, and how its data are written.
struct DataUri {
  std::string_view media_type;  // "image/png", perhaps with parameters; "" where it is left out
  std::string_view data;
  bool is_base64 = false;
};
/// Nothing unless `text` begins with "data:" and has the comma before the data.
std::optional<DataUri> split_data_uri(std::string_view text);

/// Whether the text names something elsewhere: "https://...", "file:...".
bool is_url(std::string_view text);

}  // namespace vit::app
