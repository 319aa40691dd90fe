#include "vit/text/mojibake.h"
namespace vit::internal {
std::string fix_mojibake(std::string_view text) { return std::string(text); }
}  // namespace vit::internal
