// JPEG files of every layout that libjpeg writes, of pixels that a formula or a generator gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>

namespace vit::test {

/// How write_jpeg() writes.
struct JpegLayout {
  std::size_t width = 64;
  std::size_t height = 64;
  int components = 3;  // 1 grey, 3 YCbCr, 4 CMYK
  int h_samples = 2;   // of the first component; the others have one
  int v_samples = 2;
  int quality = 80;
  unsigned restart_interval = 0;  // in blocks of the scan
  bool progressive = false;
  bool separate_scans = false;  // sequential, one component to a scan
  bool arithmetic = false;
};

/// `samples` (height, width, components).
inline std::vector<std::uint8_t> write_jpeg(const JpegLayout& layout,
                                            const std::vector<std::uint8_t>& samples) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &data, &size);
  state.image_width = static_cast<JDIMENSION>(layout.width);
  state.image_height = static_cast<JDIMENSION>(layout.height);
  state.input_components = layout.components;
  state.in_color_space = layout.components == 1 ? JCS_GRAYSCALE : layout.components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, layout.quality, TRUE);
  state.comp_info[0].h_samp_factor = layout.h_samples;
  state.comp_info[0].v_samp_factor = layout.v_samples;
  state.restart_interval = layout.restart_interval;
  state.arith_code = layout.arithmetic ? TRUE : FALSE;
  jpeg_scan_info scans[4] = {};
  for (int c = 0; c < layout.components; ++c) {
    scans[c].comps_in_scan = 1;
    scans[c].component_index[0] = c;
    scans[c].Se = 63;
  }
  if (layout.separate_scans) {
    state.scan_info = scans;
    state.num_scans = layout.components;
  }
  if (layout.progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  const std::size_t row_bytes = layout.width * static_cast<std::size_t>(layout.components);
  while (state.next_scanline < state.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(samples.data() + state.next_scanline * row_bytes);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  std::vector<std::uint8_t> bytes(data, data + size);
  std::free(data);
  return bytes;
}

}  // namespace vit::test
