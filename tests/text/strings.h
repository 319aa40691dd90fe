// Strings with the ids that libraries give to them, as tests/golden/make_tokenizer_golden.py and the shared
// fixtures write them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"
#include "vit/io/json.h"
#include "vit/text/clip_files.h"
#include "vit/text/tokenizer.h"

namespace vit::test {

struct TokenizedString {
  std::string text;
  std::map<std::string, std::vector<std::int32_t>, std::less<>> ids;  // by library
};

/// The lines of strings.jsonl, packed or not.
inline std::vector<TokenizedString> read_strings(const std::filesystem::path& path) {
  const std::string file = internal::unpack(read_text(path), std::size_t{1} << 26, path.string());
  std::vector<TokenizedString> strings;
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t end = std::min(file.find('\n', at), file.size());
    const auto line = internal::parse_json(std::string_view(file).substr(at, end - at), path.string());
    at = end + 1;
    TokenizedString read{std::string(line.at("text").as_string()), {}};
    const auto libraries = line.at("ids");
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      auto& ids = read.ids[std::string(libraries[i].key())];
      for (std::size_t j = 0; j < libraries[i].size(); ++j) {
        ids.push_back(static_cast<std::int32_t>(libraries[i][j].as_integer()));
      }
    }
    strings.push_back(std::move(read));
  }
  return strings;
}

/// The strings whose ids differ from the library's.
inline std::vector<const TokenizedString*> wrong_strings(const Tokenizer& tokenizer,
                                                         const std::vector<TokenizedString>& strings) {
  std::vector<const TokenizedString*> wrong;
  for (const TokenizedString& string : strings) {
    const auto expected = string.ids.find(to_string(tokenizer.library()));
    if (expected != string.ids.end() && tokenizer.encode(string.text) != expected->second)
      wrong.push_back(&string);
  }
  return wrong;
}

}  // namespace vit::test
