// The small parts of tokenizer.json: normalizer, pre-tokenizer, post-processor.
#include <string>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/text/tokenizer_json.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::unsupported};

using NormalizerSteps = std::vector<NormalizerStep>;
using SplitterSteps = std::vector<SplitterStep>;

[[noreturn]] void refuse(const Json& value, std::string_view what) {
  fail(kWhere, value.where(), ": ", what, " is not known");
}

std::string base64(const Json& value) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string_view text = value.as_string();
  const Where where = kWhere.with(ErrorKind::format);
  VIT_CHECK(text.size() % 4 == 0, where, value.where(), " is not base64");
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    VIT_CHECK(digit != std::string_view::npos, where, value.where(), " is not base64");
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xFFu);
  }
  return bytes;
}

NormalizerStep replace_step(const Json& step) {
  using Kind = NormalizerStep::Kind;
  const Json pattern = step.at("pattern");
  const std::string content(step.at("content").as_string());
  if (const auto literal = pattern.find_string("String")) {
    VIT_CHECK(!literal->empty(), kWhere, pattern.where(), " is empty");
    return {.kind = Kind::replace, .pattern = *literal, .content = content};
  }
  const std::string expression = pattern.find_string("Regex").value_or("");
  if (expression == "\\s+") return {.kind = Kind::replace_spaces, .content = content, .least = 1};
  if (expression == " {2,}") return {.kind = Kind::replace_spaces, .content = content, .least = 2};
  refuse(step, "the regular expression " + in_quotes(expression));
}

void append_normalizer(const Json& step, NormalizerSteps& steps) {
  using Kind = NormalizerStep::Kind;
  if (step.is_null()) return;
  const std::string type(step.at("type").as_string());
  if (type == "Sequence") {
    const Json list = step.at("normalizers");
    for (std::size_t i = 0; i < list.size(); ++i) append_normalizer(list[i], steps);
  } else if (type == "NFC") {
    steps.push_back({.kind = Kind::nfc});
  } else if (type == "NFKC") {
    steps.push_back({.kind = Kind::nfkc});
  } else if (type == "Lowercase") {
    steps.push_back({.kind = Kind::lower_letters});
  } else if (type == "Replace") {
    steps.push_back(replace_step(step));
  } else if (type == "Strip") {
    if (step.find_bool("strip_left").value_or(true)) steps.push_back({.kind = Kind::strip_left});
    if (step.find_bool("strip_right").value_or(true)) steps.push_back({.kind = Kind::strip_right});
  } else if (type == "Prepend") {
    steps.push_back({.kind = Kind::prepend, .content = std::string(step.at("prepend").as_string())});
  } else if (type == "Precompiled") {
    const Json map = step.at("precompiled_charsmap");
    steps.push_back({.kind = Kind::charsmap,
                     .charsmap = Charsmap(base64(map), kWhere.with(ErrorKind::format), map.where())});
  } else if (type == "BertNormalizer") {
    const bool lower = step.find_bool("lowercase").value_or(true);
    append_bert_steps({.clean = step.find_bool("clean_text").value_or(true),
                       .ideographs = step.find_bool("handle_chinese_chars").value_or(true),
                       .accents = step.find_bool("strip_accents").value_or(lower),
                       .lower = lower},
                      steps);
  } else {
    refuse(step, "the normalizer " + plain_or_quoted(type));
  }
}

SplitterStep metaspace_step(const Json& step) {
  VIT_CHECK(step.find_string("replacement").value_or("\u2581") == "\u2581", kWhere, step.where(),
            ".replacement is not U+2581");
  SplitterStep made{.kind = SplitterStep::Kind::space_mark};
  const std::string scheme = step.find_string("prepend_scheme").value_or("always");
  if (scheme == "first") {
    made.prepend = SplitterStep::Prepend::first;
  } else if (scheme == "never" || !step.find_bool("add_prefix_space").value_or(true)) {
    made.prepend = SplitterStep::Prepend::never;
  } else if (scheme != "always") {
    refuse(step, "the prepend_scheme " + plain_or_quoted(scheme));
  }
  made.cut = step.find_bool("split").value_or(true);
  return made;
}

/// CLIP's special tokens as its expression may have them in front. In the text they have been extracted
/// already, but lower case makes them of capitals.
constexpr std::string_view kClipSpecial = R"(<\|startoftext\|>|<\|endoftext\|>|)";

bool is_clip_expression(std::string_view expression) {
  if (expression.starts_with(kClipSpecial)) expression.remove_prefix(kClipSpecial.size());
  return expression == R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";
}

SplitterStep split_step(const Json& step) {
  const Json pattern = step.at("pattern");
  const std::string behavior(step.at("behavior").as_string());
  const bool invert = step.find_bool("invert").value_or(false);
  const std::string expression = pattern.find_string("Regex").value_or("");
  if (is_clip_expression(expression) && behavior == "Removed" && invert) {
    return {.kind = SplitterStep::Kind::clip_words, .special = expression.starts_with(kClipSpecial)};
  }
  if (pattern.find_string("String") == " " && behavior == "MergedWithPrevious" && !invert) {
    return {.kind = SplitterStep::Kind::space_with_previous};
  }
  refuse(step, "this split");
}

void append_splitter(const Json& step, SplitterSteps& steps) {
  if (step.is_null()) return;
  const std::string type(step.at("type").as_string());
  if (type == "Sequence") {
    const Json list = step.at("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i) append_splitter(list[i], steps);
  } else if (type == "WhitespaceSplit") {
    steps.push_back({.kind = SplitterStep::Kind::white_space});
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_step(step));
  } else if (type == "Split") {
    steps.push_back(split_step(step));
  } else if (type == "ByteLevel") {
    VIT_CHECK(!step.find_bool("add_prefix_space").value_or(true), kWhere, step.where(),
              ".add_prefix_space is not known");
    const bool uses_regex = step.find_bool("use_regex").value_or(true);
    // Part of clip_words; of what CLIP's expression has split, its own splits only special tokens.
    if (!steps.empty() && steps.back().kind == SplitterStep::Kind::clip_words) {
      steps.back().cut_special = uses_regex;
      return;
    }
    VIT_CHECK(steps.empty() && uses_regex, kWhere, step.where(),
              ": ByteLevel is supported by itself with its own expression (GPT-2's), and after CLIP's");
    steps.push_back({.kind = SplitterStep::Kind::gpt2_words});
  } else if (type == "BertPreTokenizer") {
    steps.push_back({.kind = SplitterStep::Kind::bert_words});
  } else {
    refuse(step, "the pre-tokenizer " + plain_or_quoted(type));
  }
}

TokenId template_id(const Json& special, std::string_view token) {
  const Json entry = special.at(token);
  const Json ids = entry.at("ids");
  VIT_CHECK(ids.size() == 1, kWhere, ids.where(), " has ", ids.size(), " ids, expected one");
  return static_cast<TokenId>(ids[0].as_size({.max = 2 * kMaxVocabulary}));
}

Frame template_frame(const Json& processor) {
  const Json single = processor.at("single");
  Frame frame;
  bool seen = false;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const Json item = single[i];
    if (item.find("Sequence")) {
      VIT_CHECK(!seen, kWhere, item.where(), ": the text occurs twice");
      seen = true;
      continue;
    }
    const TokenId id =
        template_id(processor.at("special_tokens"), item.at("SpecialToken").at("id").as_string());
    (seen ? frame.back : frame.front).push_back(id);
  }
  VIT_CHECK(seen, kWhere, single.where(), ": the text does not occur");
  return frame;
}

}  // namespace

std::vector<NormalizerStep> normalizer_steps(const TokenizerJson& file) {
  NormalizerSteps steps;
  append_normalizer(parse_json(file.normalizer, file.name + ": normalizer"), steps);
  return steps;
}

std::vector<SplitterStep> splitter_steps(const TokenizerJson& file) {
  SplitterSteps steps;
  append_splitter(parse_json(file.pre_tokenizer, file.name + ": pre_tokenizer"), steps);
  return steps;
}

Charsmap charsmap_of(const TokenizerJson& file) {
  const Json normalizer = parse_json(file.normalizer, file.name + ": normalizer");
  if (normalizer.is_null()) return {};
  NormalizerSteps steps;
  const auto take = [&steps](const Json& step) {
    if (step.find_string("type") == "Precompiled") append_normalizer(step, steps);
  };
  take(normalizer);
  if (const auto list = normalizer.find("normalizers")) {
    for (std::size_t i = 0; i < list->size(); ++i) take((*list)[i]);
  }
  return steps.empty() ? Charsmap{} : steps.front().charsmap;
}

Frame frame_of(const TokenizerJson& file) {
  const Json processor = parse_json(file.post_processor, file.name + ": post_processor");
  if (processor.is_null()) return {};
  const std::string type(processor.at("type").as_string());
  if (type == "TemplateProcessing") return template_frame(processor);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    const auto id = [&](const char* key) {
      return static_cast<TokenId>(processor.at(key)[1].as_size({.max = 2 * kMaxVocabulary}));
    };
    return {{id("cls")}, {id("sep")}};
  }
  if (type == "ByteLevel") return {};
  refuse(processor, "the post-processor " + plain_or_quoted(type));
}

}  // namespace vit::internal
