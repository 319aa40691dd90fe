// JPEG through libjpeg: the same library and calls as Pillow, so the same bytes; truncated data is an Error
// as in Pillow.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include "vit/base/check.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// libjpeg's state with an error handler that jumps back instead of printing and exiting.
struct Jpeg {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr input{};
  jpeg_progress_mgr progress{};
  double num_visits = 0.0;
  double max_visits = 0.0;
  std::jmp_buf on_error{};
  char message[JMSG_LENGTH_MAX] = {};
};

Jpeg& owner(j_common_ptr common) {
  return *static_cast<Jpeg*>(common->client_data);
}

[[noreturn]] void on_error_exit(j_common_ptr common) {
  common->err->format_message(common, owner(common).message);
  std::longjmp(owner(common).on_error, 1);
}

void keep_silent(j_common_ptr) {}
void count_silently(j_common_ptr common, int level) {
  if (level < 0) ++common->err->num_warnings;
}
void start_input(j_decompress_ptr) {}
boolean no_more_input(j_decompress_ptr) {
  return FALSE;
}  // suspends: reads like a file that ends
void skip_input(j_decompress_ptr state, long count) {
  if (count <= 0) return;
  const std::size_t rest = state->src->bytes_in_buffer;
  const std::size_t skipped = static_cast<std::size_t>(count) < rest ? static_cast<std::size_t>(count) : rest;
  state->src->next_input_byte += skipped;
  state->src->bytes_in_buffer -= skipped;
}

// Every scan visits all pixels again, and needs a few bytes per 32767 blocks if it changes nothing: a
// small file could keep a processor busy for hours. Encoders write about ten scans, never hundreds.
constexpr int kMaxScans = 500;

/// Limit on block visits, about 5 ns each, of all scans of an image together. The 18 scans that
/// libjpeg writes of four components visit each block 6 times, 2 of them to refine: 22 visits, 1.4 per pixel.
double max_visits(const Source& source) {
  return std::max(0x1p24, 1.5 * static_cast<double>(source.max_pixels));
}

/// Visits needed for the next row of blocks of the current scan. Most end with the first code of a block, or
/// of a run of blocks; refinement and arithmetic coding process every coefficient, eight in the time of a
/// visit.
double row_visits(const jpeg_decompress_struct& state) {
  const int num_rows = state.comps_in_scan == 1 ? state.cur_comp_info[0]->v_samp_factor : 1;
  const double num_blocks =
      static_cast<double>(state.MCUs_per_row) * static_cast<double>(state.blocks_in_MCU * num_rows);
  const bool progressive = state.progressive_mode == TRUE;
  const bool every_coefficient = state.arith_code == TRUE || (progressive && state.Ss > 0 && state.Ah > 0);
  const int num_coefficients = progressive ? state.Se - state.Ss + 1 : DCTSIZE2;
  return every_coefficient ? num_blocks * (1.0 + num_coefficients / 8.0) : num_blocks;
}

/// Called between rows of blocks while all scans are read before the first row is output.
void check_progress(j_common_ptr common) {
  const jpeg_decompress_struct& state = *reinterpret_cast<j_decompress_ptr>(common);
  Jpeg& jpeg = owner(common);
  jpeg.num_visits += row_visits(state);
  if (state.input_scan_number > kMaxScans) {
    std::snprintf(jpeg.message, sizeof jpeg.message, "it has more than %d scans", kMaxScans);
  } else if (jpeg.num_visits > jpeg.max_visits) {
    std::snprintf(jpeg.message, sizeof jpeg.message, "it has too many scans for its size");
  } else {
    return;
  }
  std::longjmp(jpeg.on_error, 1);
}

enum class Outcome { done, truncated, failed };

/// Runs `step`, which libjpeg may leave by longjmp; `step` must own nothing that needs a destructor.
template <typename Step>
Outcome guarded(Jpeg& jpeg, Step step) {
  if (setjmp(jpeg.on_error) != 0) return Outcome::failed;
  return step() ? Outcome::done : Outcome::truncated;
}

void check(const Source& source, const Jpeg& jpeg, Outcome outcome) {
  if (outcome == Outcome::truncated) refuse(source, "truncated JPEG: the data end before the image does");
  if (outcome == Outcome::failed) refuse(source, "corrupt or unsupported JPEG: ", jpeg.message);
}

/// The data that Pillow checks before decoding: segments up to the first scan.
struct Headers {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t bits = 0;
  std::uint32_t num_components = 0;
  int orientation = 0;
};

bool is_frame(std::uint8_t marker) {
  return (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) ||
         marker == 0xDE;
}

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

Headers read_headers(const Source& source) {
  using namespace std::string_view_literals;
  Headers headers;
  const auto bytes = source.bytes;
  std::vector<std::uint8_t> exif;  // may be spread over several segments
  int xmp = 0;
  for (std::size_t at = 2; at + 1 < bytes.size();) {
    if (bytes[at] != 0xFF || bytes[at + 1] == 0xFF) {
      ++at;
      continue;
    }
    const std::uint8_t marker = bytes[at + 1];
    at += 2;
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD9))
      continue;  // no length follows
    if (at + 2 > bytes.size()) break;
    const std::size_t length = be16(bytes.data() + at);
    if (length < 2 || length > bytes.size() - at)
      refuse(source, "truncated JPEG: a header segment extends beyond the file");
    const auto segment = bytes.subspan(at + 2, length - 2);
    at += length;
    if (is_frame(marker) && segment.size() >= 6) {
      headers.bits = segment[0];
      headers.height = be16(segment.data() + 1);
      headers.width = be16(segment.data() + 3);
      headers.num_components = segment[5];
    } else if (marker == 0xE1 && begins_with(segment, "Exif\0\0"sv)) {
      exif.insert(exif.end(), segment.begin() + (exif.empty() ? 0 : 6), segment.end());
    } else if (marker == 0xE1 && begins_with(segment, "http://ns.adobe.com/xap/1.0/\0"sv)) {
      xmp = xmp_orientation(segment);
    } else if (marker == 0xDA) {
      const int tag = exif_orientation(exif);
      headers.orientation = tag != 0 ? tag : xmp;
      return headers;
    }
  }
  refuse(source, "truncated JPEG: it has no scan");
}

void cmyk_row_to_rgb(const std::uint8_t* inverted, std::size_t width, std::uint8_t* rgb) {
  for (std::size_t x = 0; x < width; ++x) {
    std::uint8_t ink[4];
    for (int c = 0; c < 4; ++c)
      ink[c] = static_cast<std::uint8_t>(255 - inverted[4 * x + static_cast<std::size_t>(c)]);
    cmyk_to_rgb(ink, rgb + 3 * x);
  }
}

/// Fancy upsampling uses neighboring color samples, but none beyond the edge of a part: a part starts
/// and ends this many pixels outside the wanted area, the width of the widest block of samples.
constexpr std::size_t kMargin = 32;

class JpegRows final : public RowSource {
 public:
  JpegRows(const Source& source, const Headers& headers)
      : bytes_(source), headers_(headers), columns_{0, headers.width} {
    jpeg_.state.err = jpeg_std_error(&jpeg_.errors);
    jpeg_.errors.error_exit = on_error_exit;
    jpeg_.errors.output_message = keep_silent;
    jpeg_.errors.emit_message = count_silently;
    jpeg_.state.client_data = &jpeg_;
    run([&] {
      jpeg_create_decompress(&jpeg_.state);
      return true;
    });
    jpeg_.input.init_source = start_input;
    jpeg_.input.fill_input_buffer = no_more_input;
    jpeg_.input.skip_input_data = skip_input;
    jpeg_.input.resync_to_restart = jpeg_resync_to_restart;
    jpeg_.input.term_source = start_input;
    jpeg_.input.next_input_byte = source.bytes.data();
    jpeg_.input.bytes_in_buffer = source.bytes.size();
    jpeg_.state.src = &jpeg_.input;
    jpeg_.progress.progress_monitor = check_progress;
    jpeg_.max_visits = max_visits(source);
  }
  ~JpegRows() override { jpeg_destroy_decompress(&jpeg_.state); }

  ImageSize size() const override { return {headers_.height, headers_.width}; }
  int orientation() const override { return headers_.orientation == 0 ? 1 : headers_.orientation; }

  ColumnRange start(ColumnRange wanted) override {
    jpeg_decompress_struct& state = jpeg_.state;
    bool has_scans = false;
    run([&] {
      if (jpeg_read_header(&state, TRUE) != JPEG_HEADER_OK) return false;
      state.out_color_space = state.num_components == 1   ? JCS_GRAYSCALE
                              : state.num_components == 4 ? JCS_CMYK
                                                          : JCS_RGB;
      has_scans = jpeg_has_multiple_scans(&state) == TRUE;
      if (has_scans) state.progress = &jpeg_.progress;
      return jpeg_start_decompress(&state) == TRUE;
    });
    state.progress = nullptr;
    if (state.output_width != headers_.width || state.output_height != headers_.height) {
      refuse(bytes_, "corrupt JPEG: two headers of different sizes");
    }
    // In these files libjpeg has already decoded all blocks, or smooths them with their neighbors.
    is_sequential_ = !has_scans && state.progressive_mode == FALSE && state.arith_code == FALSE;
    if (is_sequential_) narrow(wanted);
    row_.resize((jpeg_.state.out_color_components == 3 ? 3 : 4) * columns_.count());
    return columns_;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    const std::size_t row_bytes = 3 * columns_.count();
    if (jpeg_.state.out_color_components == 3) {
      for (std::size_t y = 0; y < count;) {
        JSAMPROW targets[kRowsPerCall];
        const std::size_t wanted = std::min(kRowsPerCall, count - y);
        for (std::size_t i = 0; i < wanted; ++i) targets[i] = rows + (y + i) * row_bytes;
        read_scanlines(targets, wanted);
        y += wanted;
      }
      return;
    }
    JSAMPROW target = row_.data();
    for (std::size_t y = 0; y < count; ++y) {
      std::uint8_t* const out = rows + y * row_bytes;
      read_scanlines(&target, 1);
      if (jpeg_.state.out_color_components == 1) {
        for (std::size_t x = 0; x < columns_.count(); ++x) std::memset(out + 3 * x, row_[x], 3);
      } else {
        cmyk_row_to_rgb(row_.data(), columns_.count(), out);
      }
    }
  }

  void skip(std::size_t count) override {
    if (is_sequential_) count -= jump(count);
    JSAMPROW target = row_.data();
    for (; count > 0; --count) read_scanlines(&target, 1);
  }

  void finish() override {
    skip(jpeg_.state.output_height - jpeg_.state.output_scanline);
    run([&] {
      jpeg_finish_decompress(&jpeg_.state);  // without an end marker it waits for more; all rows are there
      return true;
    });
  }

 private:
  static constexpr std::size_t kRowsPerCall = 16;

  /// Runs `step`, which owns nothing that needs a destructor, and refuses the file if it fails.
  template <typename Step>
  void run(Step step) {
    check(bytes_, jpeg_, guarded(jpeg_, step));
  }

  void read_scanlines(JSAMPARRAY targets, std::size_t count) {
    run([&] {
      for (std::size_t done = 0; done < count;) {
        const JDIMENSION got =
            jpeg_read_scanlines(&jpeg_.state, targets + done, static_cast<JDIMENSION>(count - done));
        if (got == 0) return false;
        done += got;
      }
      return true;
    });
  }

  void narrow(ColumnRange wanted) {
    JDIMENSION begin = static_cast<JDIMENSION>(wanted.begin - std::min(wanted.begin, kMargin));
    const std::size_t end = std::min<std::size_t>(wanted.end + kMargin, headers_.width);
    JDIMENSION width = static_cast<JDIMENSION>(end - begin);
    if (width == headers_.width) return;
    run([&] {
      jpeg_crop_scanline(&jpeg_.state, &begin, &width);
      return true;
    });
    columns_ = {begin, std::size_t{begin} + width};
  }

  /// Skips most of the next `count` rows without computing their pixels; returns how many were skipped. The
  /// rows before those read next provide their context. The last rows of the image are never
  /// skipped: libjpeg reports a truncated file when they are read.
  std::size_t jump(std::size_t count) {
    const jpeg_decompress_struct& state = jpeg_.state;
    const std::size_t context = 2 * DCTSIZE * static_cast<std::size_t>(state.max_v_samp_factor);
    const std::size_t rest = state.output_height - state.output_scanline;
    const std::size_t most = std::min(count, rest);
    if (most <= context) return 0;
    const std::size_t rows = most - context;
    run([&] {
      jpeg_skip_scanlines(&jpeg_.state, static_cast<JDIMENSION>(rows));
      return true;
    });
    return rows;
  }

  Source bytes_;
  Headers headers_;
  Jpeg jpeg_;
  ColumnRange columns_;            // of the rows
  bool is_sequential_ = false;     // rows are decoded one after another, blocks independently
  std::vector<std::uint8_t> row_;  // one row from libjpeg
};

}  // namespace

std::unique_ptr<RowSource> open_jpeg(const Source& source) {
  const Headers headers = read_headers(source);
  if (headers.bits == 0) refuse(source, "corrupt JPEG: a scan before any frame header");
  if (headers.bits != 8)
    refuse_unsupported(source, "JPEG with ", headers.bits, " bits per sample is not supported");
  const std::uint32_t count = headers.num_components;
  if (count != 1 && count != 3 && count != 4)
    refuse_unsupported(source, "JPEG with ", count, " components is not supported");
  check_size(source, headers.width, headers.height);
  return std::make_unique<JpegRows>(source, headers);
}

Decoded decode_jpeg(const Source& source) {
  return decode_rows(*open_jpeg(source));
}

}  // namespace vit::internal::codecs
