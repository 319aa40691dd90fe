// Whole tokenizers against the libraries that they follow.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "tests/text/strings.h"
#include "vit/text/tokenizer.h"

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
