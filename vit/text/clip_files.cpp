// Vocabularies and lines of merges; unpack.cpp reads the packed file.
#include "vit/text/clip_files.h"

#include <limits>
#include <memory>

#include "vit/base/check.h"
#include "vit/io/json_stream.h"
#include "vit/io/source_file.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::format};
constexpr std::size_t kMaxText = std::size_t{1} << 26;
/// open_clip and OpenAI read this many merges of their file, which holds more.
constexpr std::size_t kMerges = 49152 - 256 - 2;

/// Calls each(left, right) for the lines of a list of merges until it returns false.
template <typename Each>
void each_merge(std::string_view text, const std::string& name, Each each) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 0 && line.starts_with('#')) || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    VIT_CHECK(space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos, kWhere,
              name, ": line ", number + 1, " is not two tokens separated by a space; not a list of merges?");
    if (!each(line.substr(0, space), line.substr(space + 1))) return;
  }
}

void check_text(std::string_view text, const std::string& name) {
  VIT_CHECK(is_utf8(text), kWhere, name, ": is not valid UTF-8");
}

}  // namespace

TextModel parse_vocabulary_and_merges(std::string_view vocabulary_text, std::string_view merges_text,
                                      const std::string& name) {
  Vocabulary vocabulary(kWhere, name);
  JsonStream json(vocabulary_text, name, kWhere);
  std::string token;
  for (json.enter_object(); json.next_member(token);) vocabulary.add(token, json.index());
  json.finish();
  vocabulary.finish();
  check_text(merges_text, name + " and merges.txt");
  std::vector<MergeTable::Pair> merges;
  each_merge(merges_text, "merges.txt", [&](std::string_view left, std::string_view right) {
    merges.push_back(merge_pair(vocabulary, left, right, kWhere));
    return true;
  });
  return clip_model(std::move(vocabulary), MergeTable(merges, kWhere, "merges.txt"));
}

TextModel load_vocabulary_and_merges(const std::filesystem::path& vocabulary,
                                     const std::filesystem::path& merges) {
  const SourceFile vocabulary_file(vocabulary, kWhere);
  const SourceFile merges_file(merges, kWhere);
  for (const SourceFile* file : {&vocabulary_file, &merges_file}) {
    refuse_download_leftovers(*file, file->path().string(), kWhere);
    VIT_CHECK(file->size() <= kMaxText, kWhere.with(ErrorKind::unsupported), file->path().string(), ": ",
              file->size(), " bytes, more than the ", kMaxText, " allowed");
  }
  return parse_vocabulary_and_merges(vocabulary_file.text(), merges_file.text(),
                                     vocabulary.filename().string());
}

TextModel parse_merges(std::string_view bytes, const std::string& name, const MergesOptions& options) {
  // Bytes, bytes that end a word, and two special tokens are not merges.
  constexpr std::size_t kOthers = 2 * 256 + 2;
  VIT_CHECK(options.vocabulary_size == 0 || options.vocabulary_size > kOthers,
            kWhere.with(ErrorKind::mismatch), name, ": a model of ", options.vocabulary_size,
            " tokens does not use CLIP's vocabulary");
  // A table with more rows than tokens has spare ones at its end; the file goes on where the libraries stop.
  const std::size_t most =
      options.vocabulary_size == 0 ? kMerges : std::min(kMerges, options.vocabulary_size - kOthers);
  const std::string text = unpack(bytes, kMaxText, name);
  check_text(text, name);
  Vocabulary vocabulary(kWhere, name);
  TokenId next = 0;
  const auto order = byte_order();
  for (const std::string_view suffix : {"", "</w>"}) {
    for (const unsigned char byte : order) vocabulary.add(byte_symbols()[byte] + std::string(suffix), next++);
  }
  std::vector<MergeTable::Pair> merges;
  const std::size_t version = std::min(text.find('\n'), text.size());
  each_merge(std::string_view(text).substr(version), name,
             [&](std::string_view left, std::string_view right) {
               vocabulary.add(std::string(left) + std::string(right), next++);
               merges.push_back(merge_pair(vocabulary, left, right, kWhere));
               return merges.size() < most;
             });
  VIT_CHECK(!merges.empty(), kWhere, name, ": contains no merges");
  vocabulary.add(options.start, next++);
  vocabulary.add(options.end, next++);
  vocabulary.finish();
  return clip_model(std::move(vocabulary), MergeTable(merges, kWhere, name));
}

TextModel load_merges(const std::filesystem::path& path, const MergesOptions& options) {
  const SourceFile file(path, kWhere);
  refuse_download_leftovers(file, path.string(), kWhere);
  return parse_merges(file.text(0, kMaxText + 1), path.filename().string(), options);
}

}  // namespace vit::internal
