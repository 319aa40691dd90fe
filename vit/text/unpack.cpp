// zlib for packed files of merges.
#include <zlib.h>

#include <memory>

#include "vit/base/check.h"
#include "vit/text/clip_files.h"

namespace vit::internal {
namespace {

constexpr Where kUnpack{"load_tokenizer", ErrorKind::format};

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

}  // namespace

std::string unpack(std::string_view bytes, std::size_t max_bytes, const std::string& name) {
  VIT_CHECK(bytes.size() <= max_bytes, kUnpack.with(ErrorKind::unsupported), name, ": more than ", max_bytes,
            " bytes");
  if (!bytes.starts_with("\x1F\x8B")) return std::string(bytes);
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  VIT_CHECK(inflateInit2(&stream, kGzip) == Z_OK, kUnpack.with(ErrorKind::io), name,
            ": zlib cannot be initialized");
  const std::unique_ptr<z_stream, EndInflate> guard(&stream);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    const std::size_t done = text.size();
    VIT_CHECK(done < max_bytes, kUnpack.with(ErrorKind::unsupported), name, ": unpacks to more than ",
              max_bytes, " bytes");
    text.resize(done + (std::size_t{1} << 16));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + done);
    stream.avail_out = static_cast<uInt>(text.size() - done);
    status = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    VIT_CHECK(status == Z_STREAM_END || (status == Z_OK && text.size() > done), kUnpack, name,
              ": damaged gzip data (incomplete download?)");
  }
  return text;
}

}  // namespace vit::internal
