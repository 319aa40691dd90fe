// vit tokenize: the token ids of texts, as JSON lines.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"
#include "vit/text/tokenizer.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "One JSON object per line: {\"text\": ..., \"ids\": [...], \"tokens\": [...]}. With --model ids are "
    "padded and cut to the context length of the model, with only --tokenizer neither.\n"
    "Libraries clean texts differently: open_clip repairs them as ftfy does, decodes HTML and removes "
    "punctuation for some models; transformers does none of that. The default is the library of the folder.\n"
    "Examples:\n"
    "  vit tokenize --model siglip2/ --text \"a photo of a cat\"\n"
    "  vit tokenize --model PE-Core-B16-224.pt --tokenizer bpe_simple_vocab_16e6.txt.gz --text-file "
    "captions.txt\n"
    "  vit tokenize --tokenizer clip-vit-base-patch32/ --library open_clip --text-file captions.jsonl";

struct TokenizeOptions {
  CommonOptions common;
  TextInputs inputs;
};

Tokenizer load_tokenizer(const TokenizeOptions& options) {
  const std::filesystem::path& tokenizer = options.common.tokenizer;
  if (options.common.model.empty() && tokenizer.empty()) fail_usage("--model or --tokenizer is required");
  const TokenizerOptions rules{.library = options.common.library};
  if (options.common.model.empty()) return Tokenizer::load(tokenizer, rules);
  return Tokenizer::load_for_model(options.common.model, tokenizer, rules);
}

std::string json_line(std::string_view text, const std::vector<std::int32_t>& ids,
                      const Tokenizer& tokenizer) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("text", text).array("ids", ids).key("tokens").begin_array();
  for (const std::int32_t id : ids) json.value(tokenizer.token(id));
  json.end_array().end_object();
  return line + "\n";
}

int tokenize(const TokenizeOptions& options) {
  const std::vector<std::string> texts = read_texts(options.inputs);
  const Tokenizer tokenizer = load_tokenizer(options);
  const std::size_t places = options.common.model.empty() ? 0 : tokenizer.context_length();
  if (!options.common.model.empty() && places == 0) {
    fail("tokenize", options.common.model.string(), ": no file gives the context length of the text tower");
  }
  std::string lines;
  bool is_warned = false, failed = false;
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (const std::string& text : texts) {
    try {
      if (places == 0) {
        lines += json_line(text, tokenizer.encode(text), tokenizer);
      } else {
        const TokenRow row = tokenizer.encode(text, places);
        if (row.cut && !std::exchange(is_warned, true)) warn_truncated(places, tokenizer, text);
        lines += json_line(text, row.ids, tokenizer);
      }
    } catch (const Error& error) {
      // A damaged text does not stop the others.
      print_failure(text, error.message());
      failed = true;
    }
    if (lines.size() > kChunk) {
      print_result(lines);
      lines.clear();
    }
  }
  print_result(lines);
  return failed ? 1 : 0;
}

}  // namespace

Command tokenize_command() {
  const auto options = std::make_shared<TokenizeOptions>();
  Command command{.name = "tokenize",
                  .summary = "Write the token ids of texts as JSON lines",
                  .footer = kFooter,
                  .options = {},
                  .run = [options] { return tokenize(*options); }};
  add_text_options(command.options, options->inputs);
  add_model_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
