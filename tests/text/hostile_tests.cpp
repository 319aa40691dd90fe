// Files of tokenizers that are damaged or made to harm.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/text/charsmap.h"
#include "vit/text/clip_files.h"
#include "vit/text/sentencepiece.h"
#include "vit/text/tokenizer.h"
#include "vit/text/tokenizer_json.h"
#include "vit/text/word_piece.h"

using namespace vit;
using namespace vit::internal;

namespace {

TokenizerJson parse(const std::string& text) {
  return parse_tokenizer_json(text, "tokenizer.json");
}

std::string pairs_model(const std::string& vocabulary, const std::string& merges,
                        const std::string& more = "") {
  return R"({"model": {"type": "BPE", "vocab": )" + vocabulary + R"(, "merges": )" + merges + more + "}}";
}

std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  return out + static_cast<char>(bytes.size()) + bytes;
}

std::string piece(const std::string& text, int type) {
  return field(1, field(1, text) + std::string("\x15\0\0\x80\xBF", 5) + '\x18' + static_cast<char>(type));
}

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

TEST_CASE("text: tokenizer.json, valid still loads") {
  const TokenizerJson file = parse(pairs_model(R"({"a": 0, "b": 1, "ab": 2})", R"([["a", "b"]])"));
  std::vector<TokenId> ids;
  file.model.encode("abab", ids);
  CHECK(ids == std::vector<TokenId>{2, 2});
  // Merges in front of the vocabulary, and as one string.
  CHECK_NOTHROW(
      parse(R"({"model": {"merges": ["a b"], "vocab": {"a": 0, "b": 1, "ab": 2}, "type": "BPE"}})"));
  CHECK_NOTHROW(parse(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["u", 0.0], ["a", -1.5]]}})"));
}

TEST_CASE("text: WordPiece takes the longest token first, or nothing of a word") {
  const TokenizerJson file = parse(
      R"({"model": {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 6, "continuing_subword_prefix": "##",
          "vocab": {"[UNK]": 0, "a": 1, "ab": 2, "##b": 3, "##bc": 4, "##\u00e9": 5, "##": 6}}})");
  const auto ids_of = [&](const std::string& word) {
    std::vector<TokenId> ids;
    file.model.encode(word, ids);
    return ids;
  };
  CHECK(ids_of("abbc") == std::vector<TokenId>{2, 4});
  CHECK(ids_of("ab\u00e9") == std::vector<TokenId>{2, 5});
  CHECK(ids_of("abca") ==
        std::vector<TokenId>{0});  // "ab", then nothing begins with c, though "a" and "##bc" fit
  CHECK(ids_of("ba") == std::vector<TokenId>{0});
  CHECK(ids_of("abbbbb") == std::vector<TokenId>{2, 3, 3, 3, 3});
  CHECK(ids_of("abbbbbb") == std::vector<TokenId>{0});  // seven characters
  CHECK(ids_of("").empty());
}

TEST_CASE("text: a list of tokens, damaged or strange") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "vocab.txt";
  const auto load = [&](const std::string& text) {
    test::write_text(path, text);
    return load_token_list(path);
  };
  const Vocabulary list = load("[UNK]\r\na\n\nb\na\n");
  CHECK(list.find("[UNK]") == 0);
  CHECK(list.find("a") == 4);  // the last of equal lines, as in the library
  CHECK(list.find("b") == 3);
  CHECK_FALSE(list.has(2));
  CHECK_ERROR(ErrorKind::format, ("UTF-8"), load("a\n\xff\n"));
  CHECK_ERROR(ErrorKind::format, ("empty"), load(""));
  CHECK_ERROR(ErrorKind::io, ("vocab.txt"), load_token_list(folder.path() / "none" / "vocab.txt"));
}

TEST_CASE("text: tokenizer.json, refused by name") {
  const std::string vocabulary = R"({"a": 0, "b": 1, "ab": 2})";
  CHECK_ERROR(ErrorKind::format, (R"("a")", "twice"), parse(pairs_model(R"({"a": 0, "a": 1})", "[]")));
  CHECK_ERROR(ErrorKind::format, ("id 0"), parse(pairs_model(R"({"a": 0, "b": 0})", "[]")));
  CHECK_ERROR(ErrorKind::format, ("1000000000"), parse(pairs_model(R"({"a": 1000000000})", "[]")));
  CHECK_ERROR(ErrorKind::format, ("5000000"), parse(pairs_model(R"({"a": 5000000})", "[]")));
  CHECK_ERROR(ErrorKind::format, (R"("c")"), parse(pairs_model(vocabulary, R"([["a", "c"]])")));
  CHECK_ERROR(ErrorKind::format, (R"("ba")"), parse(pairs_model(vocabulary, R"([["b", "a"]])")));
  CHECK_ERROR(ErrorKind::format, ("empty"), parse(pairs_model(R"({"": 0, "a": 1})", R"([["", "a"]])")));
  CHECK_ERROR(ErrorKind::format, ("merges 0 and 1"),
              parse(pairs_model(vocabulary, R"([["a", "b"], ["a", "b"]])")));
  CHECK_ERROR(ErrorKind::format, ("merge"), parse(pairs_model(vocabulary, R"(["a b b"])")));
  CHECK_ERROR(ErrorKind::format, ("empty"), parse(pairs_model("{}", "[]")));
  CHECK_ERROR(ErrorKind::format, ("model"), parse("{}"));
  CHECK_ERROR(ErrorKind::format, ("merges"), parse(R"({"model": {"type": "BPE", "vocab": {"a": 0}}})"));
  CHECK_ERROR(ErrorKind::unsupported, ("dropout"),
              parse(pairs_model(vocabulary, "[]", R"(, "dropout": 0.1)")));
  CHECK_ERROR(ErrorKind::unsupported, ("WordLevel"),
              parse(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})"));
  CHECK_ERROR(ErrorKind::format, ("unk_token"),
              parse(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})"));
  CHECK_ERROR(ErrorKind::format, (R"("[UNK]")"),
              parse(R"({"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"a": 0}}})"));
  CHECK_ERROR(ErrorKind::format, ("WordPiece"),
              parse(R"({"model": {"type": "WordPiece", "unk_token": "a", "vocab": [["a", 0.0]]}})"));
  CHECK_ERROR(ErrorKind::unsupported, ("continuing_subword_prefix"),
              parse(pairs_model(vocabulary, "[]", R"(, "continuing_subword_prefix": "##")")));
  CHECK_ERROR(ErrorKind::unsupported, ("model.novelty"),
              parse(pairs_model(vocabulary, "[]", R"(, "novelty": 1)")));
  CHECK_ERROR(ErrorKind::unsupported, ("novelty"), parse(R"({"novelty": 1})"));
  CHECK_ERROR(ErrorKind::format, ("score"),
              parse(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a"]]}})"));
  CHECK_ERROR(ErrorKind::format, ("unknown"),
              parse(R"({"model": {"type": "Unigram", "unk_id": 7, "vocab": [["a", 0]]}})"));
  CHECK_ERROR(ErrorKind::format, ("UTF-8"), parse(pairs_model("{\"\xFF\": 0}", "[]")));
  CHECK_ERROR(ErrorKind::format, ("too early"), parse("{\"model\": {\"vocab\": {\"a"));
  CHECK_ERROR(ErrorKind::unsupported, ("nested"), parse("{\"decoder\": " + std::string(100, '[')));
  TokenizerJson file = parse(pairs_model(vocabulary, "[]"));
  file.normalizer = R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})";
  CHECK_ERROR(ErrorKind::unsupported, ("a+"), normalizer_steps(file));
  file.pre_tokenizer = R"({"type": "Digits"})";
  CHECK_ERROR(ErrorKind::unsupported, ("Digits"), splitter_steps(file));
  file.post_processor = R"({"type": "Surprise"})";
  CHECK_ERROR(ErrorKind::unsupported, ("Surprise"), frame_of(file));
}

TEST_CASE("text: tokenizer.json, messages stay one line whatever its keys are") {
  CHECK_ERROR(ErrorKind::unsupported, (R"("a\x0ab")"), parse(R"({"a\nb": 1})"));
  CHECK_ERROR(ErrorKind::unsupported, (R"("a\x0ab")"), parse(R"({"model": {"type": "BPE", "a\nb": 1}})"));
  TokenizerJson file = parse(pairs_model(R"({"a": 0})", "[]"));
  file.normalizer = R"({"type": "a\nb"})";
  CHECK_ERROR(ErrorKind::unsupported, (R"("a\x0ab")"), normalizer_steps(file));
}

TEST_CASE("text: sums of scores are float32 where SentencePiece's are, before they are compared") {
  const std::string scores =
      R"([["u", 0], ["\u2581", -2.5], ["x", -6.21000003814697265625], ["o", -6.17999982833862304688],
      ["oo", -6.90000009536743164062]])";
  TokenizerJson file = parse(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": )" + scores + "}}");
  auto& model = std::get<UnigramModel>(file.model.algorithm);
  const auto ids_of = [&] {
    std::vector<TokenId> ids;
    file.model.encode("\u2581xxooo", ids);
    return ids;
  };
  model.sums = UnigramModel::Sums::float32;
  CHECK(ids_of() == std::vector<TokenId>{1, 2, 2, 3, 4});  // of the library
}

TEST_CASE("text: SentencePiece models") {
  const std::string valid = piece("<unk>", 2) + piece("a", 1) + piece("\u2581", 1);
  CHECK(parse_sentencepiece(valid, "m").vocabulary.count() == 3);
  CHECK(SentencePieceEncoder(parse_sentencepiece(valid, "m")).encode("aa").size() == 3);
  CHECK_ERROR(ErrorKind::format, ("twice"), parse_sentencepiece(valid + piece("a", 1), "m"));
  CHECK_ERROR(ErrorKind::format, ("unknown pieces"), parse_sentencepiece(piece("a", 1), "m"));
  CHECK_ERROR(ErrorKind::unsupported, ("type 9"), parse_sentencepiece(piece("a", 9), "m"));
  CHECK_ERROR(ErrorKind::format, ("too early"), parse_sentencepiece(valid.substr(0, valid.size() - 1), "m"));
  CHECK_ERROR(ErrorKind::format, ("m"), parse_sentencepiece("not a model at all", "m"));
  CHECK_ERROR(ErrorKind::format, ("empty"), parse_sentencepiece("", "m"));
}

TEST_CASE("text: maps of characters") {
  const Where where{"load", ErrorKind::format};
  const auto map = [&](const std::string& bytes) { return Charsmap(bytes, where, "m"); };
  CHECK_ERROR(ErrorKind::format, ("m"), map("abc"));
  CHECK_ERROR(ErrorKind::format, ("m"), map(little_endian(1u << 30) + "abcdefgh"));
  CHECK_ERROR(ErrorKind::format, ("m", "9"), map(little_endian(4) + little_endian(0x80000009u) + "abc"));
  CHECK_ERROR(ErrorKind::format, ("UTF-8"), map(little_endian(4) + little_endian(0) + "\xFF"));
  // Offsets that lead out of the array end the search.
  CHECK(map(little_endian(4) + little_endian(0x7FFFFC00u) + "abc").normalize_clusters("xyz") == "xyz");
}

TEST_CASE("text: of a list of merges no more are read than the libraries read, however large the model is") {
  std::string merges = "version\n";
  std::size_t count = 0;
  for (char first = '!'; first <= '~'; ++first) {
    for (char second = '!'; second <= '~'; ++second) {
      const std::string pair{first, second};
      merges += pair.substr(0, 1) + " " + pair.substr(1) + "\n";
      for (char third = 'a'; third <= 'e'; ++third) merges += pair + " " + std::string(1, third) + "\n";
      count += 6;
    }
  }
  REQUIRE(count > 49408);
  const auto tokens = [&](std::size_t rows) {
    return parse_merges(merges, "m", {.vocabulary_size = rows}).vocabulary.count();
  };
  CHECK(tokens(0) == 49408);
  CHECK(tokens(49408) == 49408);
  CHECK(tokens(49500) == 49408);
  CHECK(tokens(600) == 600);
}

TEST_CASE("text: lists of merges") {
  CHECK(parse_merges("version\na b\nab c</w>\n", "m").vocabulary.count() == 512 + 2 + 2);
  CHECK_ERROR(ErrorKind::format, ("line 2"), parse_merges("version\na b c\n", "m"));
  CHECK_ERROR(ErrorKind::format, ("no merges"), parse_merges("version\n", "m"));
  CHECK_ERROR(ErrorKind::format, (R"("xyz")"), parse_merges("version\nxyz a\n", "m"));
  CHECK_ERROR(ErrorKind::format, ("gzip"), parse_merges("\x1F\x8B\x08 damaged", "m"));
  CHECK_ERROR(ErrorKind::unsupported, ("more than"), unpack(std::string(100, 'a'), 10, "m"));
  CHECK_ERROR(ErrorKind::format, (R"("a")"),
              parse_vocabulary_and_merges(R"({"a": 0, "a": 1})", "", "vocab.json"));
  CHECK_ERROR(ErrorKind::format, ("lacks"), parse_vocabulary_and_merges(R"({"a": 0})", "", "vocab.json"));
}

TEST_CASE("text: long words and runs take no quadratic time") {
  // 1 MB of one letter: a scan of all pairs for each merge would take minutes.
  const TokenizerJson file =
      parse(pairs_model(R"({"a": 0, "aa": 1, "aaaa": 2})", R"([["a", "a"], ["aa", "aa"]])"));
  std::vector<TokenId> ids;
  file.model.encode(std::string(std::size_t{1} << 20, 'a'), ids);
  CHECK(ids.size() == (std::size_t{1} << 18));
}

TEST_CASE("text: a file of a tokenizer that the system has no information about") {
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("tokenizer_config.json", folder / "tokenizer_config.json");
  CHECK_ERROR(ErrorKind::io, ("tokenizer_config.json", "cannot be examined"), Tokenizer::load(folder.path()));
}
