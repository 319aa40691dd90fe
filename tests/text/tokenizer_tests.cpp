// Whole tokenizers against the libraries that they follow.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "tests/text/strings.h"
#include "vit/text/added_tokens.h"
#include "vit/text/tokenizer.h"
#include "vit/text_encoder.h"

using namespace vit;
using namespace vit::test;

namespace {

struct Case {
  const char* folder;
  TextLibrary library;
  const char* name;
};

void check_case(const std::filesystem::path& folder, const std::string& file, const Case& expected) {
  CAPTURE(expected.folder);
  CAPTURE(to_string(expected.library));
  const Tokenizer tokenizer = Tokenizer::load(folder, {.library = expected.library});
  CHECK(tokenizer.name() == expected.name);
  CHECK(tokenizer.library() == expected.library);
  const auto strings = read_strings(folder / file);
  REQUIRE(strings.size() > 40);
  REQUIRE(strings.front().ids.contains(to_string(expected.library)));
  const auto wrong = wrong_strings(tokenizer, strings);
  CHECK(wrong.empty());
  for (const TokenizedString* string : wrong) MESSAGE(string->text);
}

constexpr auto kTransformers = TextLibrary::transformers;
constexpr auto kOpenClip = TextLibrary::open_clip;

}  // namespace

TEST_CASE("text: golden tokenizers give the ids of their libraries") {
  for (const Case& expected : {Case{"clip", kTransformers, "CLIPTokenizer"},
                               {"clip", kOpenClip, "SimpleTokenizer"},
                               {"clip-split", kTransformers, "CLIPTokenizer"},
                               {"clip-split", kOpenClip, "SimpleTokenizer"},
                               {"clip-merges", kTransformers, "CLIPTokenizer"},
                               {"clip-merges", kOpenClip, "SimpleTokenizer"},
                               {"t5", kTransformers, "T5Tokenizer"},
                               {"t5", kOpenClip, "T5Tokenizer"},
                               {"xlm-roberta", kTransformers, "XLMRobertaTokenizer"},
                               {"xlm-roberta", kOpenClip, "XLMRobertaTokenizer"},
                               {"xlm-roberta-model", kTransformers, "XLMRobertaTokenizer"},
                               {"bert", kTransformers, "BertTokenizer"},
                               {"bert-list", kTransformers, "BertTokenizer"},
                               {"siglip", kTransformers, "SiglipTokenizer"},
                               {"gemma", kTransformers, "GemmaTokenizer"},
                               {"gemma", kOpenClip, "GemmaTokenizer"},
                               {"siglip2", kTransformers, "Siglip2Tokenizer"},
                               {"tipsv2", kTransformers, "Tipsv2Tokenizer"}}) {
    check_case(data_path("golden/tokenizers") / expected.folder, "strings.jsonl", expected);
  }
}

TEST_CASE("text: tokenizers as published give the ids of their libraries") {
  SKIP_WITHOUT_SHARED("fixtures/text/tokenizers");
  for (const Case& expected : {Case{"clip", kTransformers, "CLIPTokenizer"},
                               {"clip", kOpenClip, "SimpleTokenizer"},
                               {"siglip", kTransformers, "SiglipTokenizer"},
                               {"siglip-timm", kOpenClip, "T5Tokenizer"},
                               {"siglip2", kTransformers, "GemmaTokenizer"},
                               {"siglip2", kOpenClip, "GemmaTokenizer"},
                               {"siglip2-naflex", kTransformers, "Siglip2Tokenizer"},
                               {"metaclip2", kTransformers, "XLMRobertaTokenizer"},
                               {"metaclip2", kOpenClip, "XLMRobertaTokenizer"},
                               {"mt5", kTransformers, "T5Tokenizer"},
                               {"mt5", kOpenClip, "T5Tokenizer"},
                               {"tipsv2", kTransformers, "Tipsv2Tokenizer"}}) {
    check_case(shared_path("fixtures/text/tokenizers") / expected.folder, "strings.jsonl.gz", expected);
  }
  // Sums of scores that tie in float32 only: SentencePiece keeps the path it found first.
  const Tokenizer siglip =
      Tokenizer::load(shared_path("fixtures/text/tokenizers/siglip"), {.library = kTransformers});
  using Ids = std::vector<std::int32_t>;
  CHECK(siglip.encode("xaaooo") == Ids{307, 98, 98, 144, 2232, 1});
  CHECK(siglip.encode("so ooooo cute") == Ids{442, 5, 144, 2232, 2232, 456, 2547, 87, 1});
}

TEST_CASE("text: rows are padded and cut as the library does it") {
  const auto folder = data_path("golden/tokenizers");
  const Tokenizer clip = Tokenizer::load(folder / "clip");
  const std::int32_t start = clip.find("<|startoftext|>"), end = clip.find("<|endoftext|>");
  const auto whole = clip.encode("the model");
  const TokenRow padded = clip.encode("the model", 16);
  CHECK(padded.ids.size() == 16);
  CHECK(padded.count == whole.size());
  CHECK(std::equal(whole.begin(), whole.end(), padded.ids.begin()));
  CHECK(padded.ids.back() == end);  // transformers pads CLIP with the end token
  CHECK_FALSE(padded.cut);
  const TokenRow cut = clip.encode("the model of the images", 4);
  CHECK(cut.ids.front() == start);
  CHECK(cut.ids.back() == end);
  CHECK(cut.cut);
  const Tokenizer simple = Tokenizer::load(folder / "clip", {.library = TextLibrary::open_clip});
  CHECK(simple.encode("the model", 16).ids.back() == 0);
  CHECK(Tokenizer::load(folder / "t5").encode("a", 8).ids.back() == 1);
  // Gemma's classes pad on the left unless the folder says otherwise, as this one does.
  CHECK_FALSE(Tokenizer::load(folder / "gemma").pads_left());
  const Tokenizer tips = Tokenizer::load(folder / "tipsv2");
  CHECK(tips.encode("", 4).ids == std::vector<std::int32_t>(4, 0));
  CHECK(tips.encode("", 4).count == 0);
  CHECK_ERROR(ErrorKind::argument, ("context length", "2"), clip.encode("a", 1));
}

TEST_CASE("text: models of the fixtures get the rows of their libraries") {
  SKIP_WITHOUT_SHARED("fixtures/text");
  const auto root = shared_path("fixtures/text");
  CHECK(Tokenizer::load_for_model(root / "hf-clip-eos").context_length() == 40);
  CHECK(Tokenizer::load_for_model(root / "openclip-siglip").context_length() == 16);
  // Without a vocabulary of its own: the weights say how many tokens and places there are, and whose they
  // are.
  const Tokenizer openai = Tokenizer::load_for_model(root / "openai-clip/ViT-B-32.pt", root / "vocabulary");
  CHECK(openai.vocabulary_size() == 2014);
  CHECK(openai.context_length() == 77);
  CHECK(openai.library() == TextLibrary::openai);
  const Tokenizer pe = Tokenizer::load_for_model(root / "meta-pe", root / "vocabulary");
  CHECK(pe.vocabulary_size() == 49408);
  CHECK(pe.context_length() == 32);
  CHECK(pe.library() == TextLibrary::open_clip);
  CHECK(Tokenizer::load_for_model(root / "dinotxt", root / "vocabulary").library() == TextLibrary::openai);
  CHECK_ERROR(ErrorKind::io, ("bpe_simple_vocab_16e6.txt.gz", "openai/CLIP"),
              Tokenizer::load_for_model(root / "meta-pe"));
  CHECK_ERROR(ErrorKind::io, ("bpe_simple_vocab_16e6.txt.gz"),
              Tokenizer::load_for_model(root / "openclip-full"));
}

TEST_CASE("text: a vocabulary next to a publisher's weights is read as that publisher's code does") {
  const auto tokenizers = data_path("golden/tokenizers");
  for (const bool is_pe : {true, false}) {
    CAPTURE(is_pe);
    const TextLibrary library = is_pe ? kOpenClip : TextLibrary::openai;
    const auto weights =
        data_path(is_pe ? "golden/text/meta-pe/PE-Core-T16-384.pt" : "golden/text/openai-clip/ViT-B-32.pt");
    const std::size_t rows = Tokenizer::load_for_model(weights, tokenizers / "clip-merges").context_length();
    for (const char* const name : {"clip", "clip-split", "clip-merges"}) {
      CAPTURE(std::string(name));
      const TemporaryFolder folder;
      std::filesystem::copy(tokenizers / name, folder.path());
      std::filesystem::copy(weights, folder.path());
      for (const Tokenizer& found : {Tokenizer::load_for_model(folder.path()),
                                     Tokenizer::load_for_model(folder.path() / weights.filename()),
                                     Tokenizer::load_for_model(weights, tokenizers / name)}) {
        CHECK(found.library() == library);
        CHECK(found.name() == "SimpleTokenizer");
        CHECK(found.context_length() == rows);
      }
      CHECK(Tokenizer::load_for_model(folder.path(), {}, {.library = kTransformers}).library() ==
            kTransformers);
    }
  }
}

TEST_CASE("text: CLIP's special tokens in capitals are cut by both expressions of transformers") {
  const Tokenizer clip = Tokenizer::load(data_path("golden/tokenizers/clip"), {.library = kTransformers});
  const auto words = [&](const std::string& text) {
    const auto ids = clip.encode(text);
    return std::vector(ids.begin() + 1, ids.end() - 1);
  };
  // "|>" is a word that the comma does not join.
  auto expected = words("a <| endoftext |>");
  for (const std::int32_t id : words(", b")) expected.push_back(id);
  CHECK(words("a <|ENDOFTEXT|>, b") == expected);
  CHECK(words("a <| endoftext |>, b") != expected);
}

TEST_CASE("text: Python's expression for CLIP drops the Greek subscript") {
  const auto folder = data_path("golden/tokenizers/clip");
  const Tokenizer simple = Tokenizer::load(folder, {.library = kOpenClip});
  CHECK(simple.encode("a\u0345b .\u0345!") == simple.encode("a b . !"));
  const Tokenizer clip = Tokenizer::load(folder, {.library = kTransformers});
  CHECK(clip.encode("a\u0345b") != clip.encode("a b"));
}

TEST_CASE("text: a video model's folder states the context length in its detector's part") {
  const Tokenizer tokenizer = Tokenizer::load_for_model(data_path("golden/prompts/sam3"));
  CHECK(tokenizer.context_length() == 32);
}

TEST_CASE("text: an end token that no vocabulary has is refused, not wrapped to another") {
  const TemporaryFolder folder;
  const auto source = data_path("golden/text/hf-clip-eos");
  for (const char* name : {"model.safetensors", "vocab.json", "merges.txt"})
    std::filesystem::copy_file(source / name, folder / name);
  const std::string config = read_text(source / "config.json");
  const auto with = [&](const std::string& id) {
    write_text(folder / "config.json", replaced(config, "\"eos_token_id\": 713", "\"eos_token_id\": " + id));
    return TextTower::load(folder.path());
  };
  CHECK_NOTHROW(with("713"));
  CHECK_ERROR(ErrorKind::format, ("eos_token_id"), with("4294967298"));  // 2 of 32 bits
  CHECK_ERROR(ErrorKind::format, ("eos_token_id"), with("-1"));
}

namespace {

/// A tokenizer.json of no known class, which is read as written.
Tokenizer load_as_written(const TemporaryFolder& folder, const std::string& json) {
  write_text(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  write_text(folder.path() / "tokenizer.json", json);
  return Tokenizer::load(folder.path());
}

}  // namespace

TEST_CASE("text: Unigram falls back to bytes where all of a text exist") {
  const TemporaryFolder folder;
  using Ids = std::vector<std::int32_t>;
  const auto model = [&](bool falls_back, int absent) {
    std::string vocabulary =
        R"(["<unk>", 0.0], ["\u2581", -2.0], ["a", -2.5], ["b", -3.0], ["ab", -3.5], ["\u00e9", -4.0])";
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
      if (byte == absent) continue;
      vocabulary += R"(, ["<0x)";
      vocabulary += kDigits[static_cast<std::size_t>(byte / 16)];
      vocabulary += kDigits[static_cast<std::size_t>(byte % 16)];
      vocabulary += R"(>", -9.0])";
    }
    return load_as_written(folder, R"({"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": )" +
                                       std::string(falls_back ? "true" : "false") + R"(, "vocab": [)" +
                                       vocabulary + R"(]}, "pre_tokenizer": {"type": "Metaspace"}})");
  };
  // Of the library tokenizers.
  const Tokenizer all = model(true, -1);
  CHECK(all.encode("ab \u6C34a") == Ids{1, 4, 1, 236, 182, 186, 2});
  CHECK(all.encode("\u00E9\u6C34\u706Bx ab") == Ids{1, 5, 236, 182, 186, 237, 135, 177, 126, 1, 4});
  const Tokenizer some = model(true, 0x98);
  CHECK(some.encode("\U0001F600") == Ids{1, 0});
  CHECK(some.encode("\u6C34") == Ids{1, 235, 181, 185});
  CHECK(model(false, -1).encode("ab \u6C34a") == Ids{1, 4, 1, 0, 2});
}

TEST_CASE("text: Metaspace marks the word at the start of the text, not the first that remains") {
  const TemporaryFolder folder;
  using Ids = std::vector<std::int32_t>;
  const auto with = [&](const std::string& normalizer, const std::string& splitter) {
    return load_as_written(
        folder,
        R"({"model": {"type": "BPE", "unk_token": "u", "merges": [], "vocab": {"u": 0, "\u2581": 1, "a": 2, "b": 3}}, "normalizer": )" +
            normalizer + R"(, "pre_tokenizer": )" + splitter + "}");
  };
  const std::string first =
      R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true})";
  const std::string words =
      R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, )" + first + "]}";
  // Of the library tokenizers.
  const Tokenizer plain = with("null", first);
  CHECK(plain.encode("a") == Ids{1, 2});
  CHECK(plain.encode("  a") == Ids{1, 1, 2});
  const Tokenizer split = with("null", words);
  CHECK(split.encode("a b") == Ids{1, 2, 3});
  CHECK(split.encode("  a") == Ids{2});
  const Tokenizer stripped = with(R"({"type": "Strip", "strip_left": true, "strip_right": true})", first);
  CHECK(stripped.encode("a") == Ids{1, 2});
  CHECK(stripped.encode(" a") == Ids{2});
  const Tokenizer replaced =
      with(R"({"type": "Replace", "pattern": {"String": "ab"}, "content": ""})", first);
  CHECK(replaced.encode("ab b") == Ids{1, 3});
  CHECK(replaced.encode("aba") == Ids{2});
}

TEST_CASE("text: a text's added tokens are found in no quadratic time, and too many are refused") {
  const TemporaryFolder folder;
  const auto with = [&](std::size_t count) {
    std::string added;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      if (i > 0) added += ", ";
      added += R"({"content": "<)" + number + R"(>", "id": )" + std::to_string(i + 2) +
               R"(, "special": true, "normalized": false})";
    }
    return load_as_written(
        folder, R"({"model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "<": 1}}, "added_tokens": [)" +
                    added + "]}");
  };
  const Tokenizer many = with(40'000);
  CHECK(many.encode("a<39999><7>") == std::vector<std::int32_t>{0, 40'001, 9});
  // Each could start any of the tokens.
  CHECK(many.encode(std::string(std::size_t{1} << 20, '<')).size() == std::size_t{1} << 20);
  CHECK_ERROR(ErrorKind::unsupported, ("200001", "added tokens"), with(200'001));
}

namespace {

using Ids = std::vector<std::int32_t>;

/// A copy of a golden tokenizer with one more file.
Tokenizer load_with(const std::string& name, const std::string& file, const std::string& contents) {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("golden/tokenizers/" + name))) {
    if (entry.path().filename() != file)
      std::filesystem::copy_file(entry.path(), folder / entry.path().filename().string());
  }
  write_text(folder / file, contents);
  return Tokenizer::load(folder.path(), {.library = kTransformers});
}

}  // namespace

TEST_CASE("text: added_tokens.json of older releases") {
  // Of transformers 5.24. The file is in no order; CLIP's tokens are lower case when they are searched.
  const std::string two = R"({"<late>": 715, "<new>": 714})";
  const Tokenizer clip = load_with("clip-split", "added_tokens.json", two);
  CHECK(clip.encode("hello <new> a<new>NEW<late>") ==
        Ids{712, 71, 603, 75, 334, 714, 320, 714, 77, 68, 342, 715, 713});
  CHECK(clip.encode("<NEW>") == Ids{712, 714, 713});
  const Tokenizer bert = load_with("bert-list", "added_tokens.json", R"({"<late>": 470, "<new>": 469})");
  CHECK(bert.encode("hello <new> a<new>NEW<late>") ==
        Ids{2, 72, 331, 177, 180, 469, 65, 469, 47, 139, 157, 470, 3});
  // A tokenizer.json holds them itself.
  const Tokenizer whole = load_with("clip", "added_tokens.json", two);
  CHECK(whole.encode("<new>") == Tokenizer::load(data_path("golden/tokenizers/clip")).encode("<new>"));
}

TEST_CASE("text: XLM-RoBERTa without add_prefix_space marks no words") {
  const Tokenizer plain =
      load_with("xlm-roberta", "tokenizer_config.json",
                R"({"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": false})");
  // Of transformers 5.24.
  CHECK(plain.encode("a photo of a cat") == Ids{0, 23, 30, 37, 20, 17, 20, 20, 54, 23, 35, 23, 17, 2});
  CHECK(plain.encode(" ab") == Ids{0, 23, 59, 2});
}

TEST_CASE("text: T5's sentinels are tokens unless the configuration lists tokens without a role") {
  const auto with = [](const std::string& more) {
    const Tokenizer t5 = load_with("t5", "tokenizer_config.json",
                                   R"({"tokenizer_class": "T5Tokenizer", "pad_token": "</s>")" + more + "}");
    return std::pair(t5.encode("a <extra_id_0> b").size(), t5.encode("<x> <y>").size());
  };
  // Of transformers 5.24.
  CHECK(with("") == std::pair<std::size_t, std::size_t>(4, 7));
  for (const char* const list : {"[]", "null"}) {
    for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
      CAPTURE(std::string(key));
      CAPTURE(std::string(list));
      CHECK(with(R"(, "extra_ids": 10, ")" + std::string(key) + "\": " + list).first == 15);
    }
  }
  const std::string former = R"(, "additional_special_tokens": ["<x>"])";
  CHECK(with(former) == std::pair<std::size_t, std::size_t>(15, 5));
  CHECK(with(former + R"(, "extra_special_tokens": [])").second == 5);
}

TEST_CASE("text: white space that an added token strips may hold the next one") {
  // What tokenizers 0.23 finds, with the places of its tokens.
  internal::AddedTokens tokens;
  tokens.add({"<x>", 7, false, true});
  tokens.add({" <y>", 8});
  tokens.add({"\n\n", 5, false, true});
  tokens.add({"\n", 3});
  tokens.finish();
  const auto found = [&](std::string_view text) {
    std::vector<std::pair<internal::TokenId, std::pair<std::size_t, std::size_t>>> out;
    for (const internal::Stretch& stretch : tokens.split(text, false)) {
      const auto begin = static_cast<std::size_t>(stretch.text.data() - text.data());
      out.push_back({stretch.id, {begin, begin + stretch.text.size()}});
    }
    return out;
  };
  using Found = decltype(found(""));
  CHECK(found("\n\n\n") == Found{{5, {0, 3}}, {3, {2, 3}}});
  CHECK(found("\n\n\n\n\n") == Found{{5, {0, 5}}, {5, {2, 5}}, {3, {4, 5}}});
  CHECK(found("<x> <y>b") == Found{{7, {0, 4}}, {8, {3, 7}}, {internal::kNoToken, {7, 8}}});
  // Each stretch of white space is searched once.
  const std::string many(std::size_t{1} << 18, '\n');
  CHECK(found(many).size() == many.size() / 2);
}

TEST_CASE("text: special tokens that are to be split are refused") {
  CHECK_ERROR(ErrorKind::unsupported, ("split_special_tokens"),
              load_with("clip", "tokenizer_config.json",
                        R"({"tokenizer_class": "CLIPTokenizer", "split_special_tokens": true})"));
}

TEST_CASE("text: an empty hf_tokenizer_name is none") {
  const TemporaryFolder folder;
  for (const char* name : {"vocab.json", "merges.txt"})
    std::filesystem::copy_file(data_path("golden/tokenizers/clip-split") / name, folder / name);
  write_text(folder / "open_clip_config.json",
             R"({"model_cfg": {"text_cfg": {"hf_tokenizer_name": "", "context_length": 9}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  CHECK(tokenizer.name() == "SimpleTokenizer");
  CHECK(tokenizer.context_length() == 9);
}

TEST_CASE("text: what a folder lacks is named") {
  TemporaryFolder folder;
  CHECK_ERROR(ErrorKind::io, ("tokenizer_config.json"), Tokenizer::load(folder.path()));
  CHECK_ERROR(ErrorKind::io, ("no such file"), Tokenizer::load(folder.path() / "absent"));
  const auto with_class = [&](const std::string& name) {
    write_text(folder.path() / "tokenizer_config.json", "{\"tokenizer_class\": \"" + name + "\"}");
    return Tokenizer::load(folder.path());
  };
  CHECK_ERROR(ErrorKind::io, ("SiglipTokenizer", "spiece.model"), with_class("SiglipTokenizer"));
  CHECK_ERROR(ErrorKind::io, ("GemmaTokenizer", "tokenizer.json"), with_class("GemmaTokenizer"));
  CHECK_ERROR(ErrorKind::io, ("sentencepiece.bpe.model"), with_class("XLMRobertaTokenizer"));
  CHECK_ERROR(ErrorKind::io, ("vocab.json", "merges.txt"), with_class("CLIPTokenizer"));
  CHECK_ERROR(ErrorKind::io, ("tokenizer.model"), with_class("Tipsv2Tokenizer"));
  CHECK_ERROR(ErrorKind::io, ("BertTokenizer", "vocab.txt"), with_class("BertTokenizer"));
  CHECK_ERROR(ErrorKind::unsupported, ("MarkupLMTokenizer"), with_class("MarkupLMTokenizer"));
  CHECK_ERROR(ErrorKind::argument, ("byte 1"),
              Tokenizer::load(data_path("golden/tokenizers/clip")).encode("a\xFF"));
}
