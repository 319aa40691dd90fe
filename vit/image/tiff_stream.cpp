#include "vit/image/tiff_layout.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace vit::internal::codecs {

namespace {

TiffStream& stream_of(thandle_t handle) {
  return *static_cast<TiffStream*>(handle);
}

tmsize_t read_stream(thandle_t handle, void* out, tmsize_t count) {
  TiffStream& stream = stream_of(handle);
  if (count < 0 || stream.position >= stream.bytes.size()) return 0;
  const std::uint64_t rest = stream.bytes.size() - stream.position;
  const std::uint64_t got = std::min<std::uint64_t>(rest, static_cast<std::uint64_t>(count));
  std::memcpy(out, stream.bytes.data() + stream.position, got);
  stream.position += got;
  return static_cast<tmsize_t>(got);
}

tmsize_t write_stream(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t seek_stream(thandle_t handle, toff_t offset, int whence) {
  TiffStream& stream = stream_of(handle);
  if (whence == SEEK_CUR) offset += stream.position;
  if (whence == SEEK_END) offset += stream.bytes.size();
  return stream.position = offset;
}

int close_stream(thandle_t) {
  return 0;
}
toff_t size_of_stream(thandle_t handle) {
  return stream_of(handle).bytes.size();
}

int map_stream(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<std::uint8_t*>(stream_of(handle).bytes.data());  // libtiff only reads it in mode "r"
  *size = stream_of(handle).bytes.size();
  return 1;
}

void unmap_stream(thandle_t, void*, toff_t) {}

int keep_message(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  TiffStream& stream = *static_cast<TiffStream*>(user);
  std::vsnprintf(stream.message, sizeof stream.message, format, arguments);
  return 1;  // nothing is printed
}

/// Warnings are ignored except one: libtiff treats an image whose palette it cannot read as gray.
int note_lost_palette(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  TiffStream& stream = *static_cast<TiffStream*>(user);
  char message[sizeof stream.message];
  std::vsnprintf(message, sizeof message, format, arguments);
  if (std::strstr(message, "\"ColorMap\"") == nullptr) return 1;
  stream.lost_palette = true;
  std::memcpy(stream.message, message, sizeof message);
  return 1;
}

}  // namespace

TiffPointer open_tiff_stream(const Source& source, TiffStream& stream) {
  const std::unique_ptr<TIFFOpenOptions, TiffClose> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) refuse_data(source, stream);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_message, &stream);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_lost_palette, &stream);
  TiffPointer tiff(TIFFClientOpenExt("image", "r", &stream, read_stream, write_stream, seek_stream,
                                     close_stream, size_of_stream, map_stream, unmap_stream, options.get()));
  if (tiff == nullptr || stream.lost_palette) refuse_data(source, stream);
  return tiff;
}

void refuse_data(const Source& source, const TiffStream& stream) {
  refuse(source, "truncated or corrupt TIFF: ", stream.message);
}

}  // namespace vit::internal::codecs
