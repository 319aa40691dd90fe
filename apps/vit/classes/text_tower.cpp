#include "apps/vit/classes/text_tower.h"

#include <algorithm>
#include <utility>

#include "apps/vit/options/option_values.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kTextsAtOnce = 64;  // between two looks at progress and interrupts

constexpr Named<TextLibrary> kLibraries[] = {{"auto", TextLibrary::automatic},
                                             {"transformers", TextLibrary::transformers},
                                             {"open_clip", TextLibrary::open_clip},
                                             {"openai", TextLibrary::openai}};

/// Tells once that texts are cut.
class CutNotice {
 public:
  explicit CutNotice(const TextTower& tower) : tower_(tower) {}
  void look_at(const TokenRow& row, std::string_view text, Progress& progress) {
    if (!row.cut || std::exchange(is_told_, true)) return;
    progress.clear();
    tell_cut(tower_.config().context_length, tower_.tokenizer(), text);
  }

 private:
  const TextTower& tower_;
  bool is_told_ = false;
};

}  // namespace

void add_tokenizer_options(std::vector<Option>& list, TextTowerOptions& options) {
  list.push_back(
      {.name = "--tokenizer",
       .type_name = "PATH",
       .help = "Folder of a tokenizer, or file with CLIP's merges; supplies the vocabulary where the model "
               "comes without one",
       .target = text_target(options.tokenizer)});
  list.push_back({.name = "--library",
                  .type_name = "NAME",
                  .help = "Whose rules clean the texts: auto (the model's), transformers, open_clip, openai",
                  .target = choice_target(options.library, kLibraries)});
}

TextOptions text_options(const CommonOptions& common, const TextTowerOptions& options) {
  const ModelOptions& model = common.model_options;
  return {.architecture = model.architecture,
          .tokenizer = options.tokenizer,
          .library = options.library,
          .kernels = model.kernels,
          .precision = model.precision};
}

void tell_cut(std::size_t places, const Tokenizer& tokenizer, std::string_view text) {
  print_failure("", vit::text("texts of more than ", places, " tokens are cut, as ",
                              to_string(tokenizer.library()), " cuts them; the first: ", text));
}

NamedVectors encode_texts(TextEncoder& encoder, std::span<const std::string> texts,
                          std::span<const std::string> names, Progress& progress) {
  const TextTower& tower = encoder.tower();
  NamedVectors out{.names = {}, .numbers = {}, .width = tower.config().embedding_dim()};
  out.numbers.reserve(texts.size() * out.width);
  CutNotice notice(tower);
  std::vector<TokenRow> rows;
  for (std::size_t i = 0; i < texts.size() && !interrupted(); i += kTextsAtOnce) {
    rows.clear();
    for (std::size_t j = i; j < std::min(i + kTextsAtOnce, texts.size()); ++j) {
      try {
        rows.push_back(tower.tokenize(texts[j]));
      } catch (const Error& error) {
        progress.add_failed(names[j], error.what());
        continue;
      }
      notice.look_at(rows.back(), texts[j], progress);
      out.names.push_back(names[j]);
    }
    const Tensor<float> vectors = encoder.encode_ids(rows);
    out.numbers.insert(out.numbers.end(), vectors.flat().begin(), vectors.flat().end());
    progress.add_done(rows.size());
  }
  return out;
}

ClassVectors encode_classes(TextEncoder& encoder, const std::vector<std::string>& classes,
                            std::span<const std::string> templates, Progress& progress) {
  const TextTower& tower = encoder.tower();
  const std::size_t width = tower.config().embedding_dim();
  const std::size_t at_once = std::max<std::size_t>(kTextsAtOnce / templates.size(), 1);
  CutNotice notice(tower);
  std::vector<std::string> names;
  std::vector<float> numbers;
  for (std::size_t i = 0; i < classes.size() && !interrupted(); i += at_once) {
    const std::vector<std::string> some(
        classes.begin() + static_cast<std::ptrdiff_t>(i),
        classes.begin() + static_cast<std::ptrdiff_t>(std::min(i + at_once, classes.size())));
    for (const std::string& name : some) {
      for (const std::string& pattern : templates) {
        const std::string text = fill_template(pattern, name);
        notice.look_at(tower.tokenize(text), text, progress);
      }
    }
    const ClassVectors found = vit::encode_classes(encoder, some, templates);
    names.insert(names.end(), found.names.begin(), found.names.end());
    numbers.insert(numbers.end(), found.vectors.flat().begin(), found.vectors.flat().end());
    progress.add_done(some.size());
  }
  ClassVectors out{.names = std::move(names), .vectors = {}};
  out.vectors = Tensor<float>(Shape{out.names.size(), width});
  std::ranges::copy(numbers, out.vectors.data());
  return out;
}

}  // namespace vit::app
