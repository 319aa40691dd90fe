// The order of open_clip's cleaning.
#include "vit/text/clean.h"

#include "vit/text/unicode.h"

namespace vit::internal {

std::string remove_punctuation(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const bool punctuation =
        (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    if (!punctuation) result += c;
  }
  return result;
}

std::string clean(std::string_view text, Cleaning cleaning) {
  if (cleaning == Cleaning::none) return std::string(text);
  std::string basic = fix_text(text);
  basic = unescape_html(unescape_html(basic));
  switch (cleaning) {
    case Cleaning::none: break;
    case Cleaning::lower: return lower_text(join_words(basic));
    case Cleaning::whitespace: return join_words(basic);
    case Cleaning::canonicalize: {
      const std::string lower = lower_text(remove_punctuation(replace_all(strip_python(basic), "_", " ")));
      return join_words(lower);
    }
  }
  return basic;
}

}  // namespace vit::internal
