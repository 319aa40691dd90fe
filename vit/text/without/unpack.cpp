// Replaces unpack.cpp in builds without zlib (-DVIT_TEXT=OFF).
#include "vit/base/check.h"
#include "vit/text/clip_files.h"

namespace vit::internal {

std::string unpack(std::string_view bytes, std::size_t max_bytes, const std::string& name) {
  const bool is_packed = bytes.starts_with("\x1F\x8B");
  VIT_CHECK(!is_packed && bytes.size() <= max_bytes, (Where{"load_tokenizer", ErrorKind::unsupported}), name,
            ": vit was built without texts (-DVIT_TEXT=OFF) and unpacks no files");
  return std::string(bytes);
}

}  // namespace vit::internal
