// Image files: each format by its own decoder, all of them by decode_bytes(), and the metadata in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// Any format.
void run_decode(std::string_view input);
/// From a file, which has to give what its bytes give; but for AVIF and HEIF.
void run_decode_file(std::string_view input);
void run_decode_rows(std::string_view input);
std::vector<std::string> decode_seeds();

/// The seeds of one format; run_decode() recognizes it by the first bytes.
std::vector<std::string> jpeg_seeds();
std::vector<std::string> png_seeds();
std::vector<std::string> tiff_seeds();
std::vector<std::string> webp_seeds();
std::vector<std::string> bmp_seeds();
std::vector<std::string> ico_seeds();
std::vector<std::string> pnm_seeds();
std::vector<std::string> gif_seeds();
std::vector<std::string> jpeg2000_seeds();
std::vector<std::string> codestream_seeds();
std::vector<std::string> avif_seeds();
std::vector<std::string> heif_seeds();

/// The input is a block of EXIF or a packet of XMP.
void run_metadata(std::string_view input);
std::vector<std::string> metadata_seeds();

}  // namespace vit::fuzz
