#include "apps/vit/run/run_texts.h"

#include <algorithm>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kTextsAtOnce = 64;  // between two updates of progress and checks for interrupts

constexpr const char* kNotFinite = "the vector is not finite; damaged weights?";

/// Warns once that texts are truncated.
class TruncationNotice {
 public:
  explicit TruncationNotice(const TextTower& tower) : tower_(tower) {}
  bool is_given() const { return is_given_; }
  void check(const TokenRow& row, std::string_view text, Progress& progress) {
    if (!row.cut || std::exchange(is_given_, true)) return;
    progress.clear();
    warn_truncated(tower_.config().context_length, tower_.tokenizer(), text);
  }

 private:
  const TextTower& tower_;
  bool is_given_ = false;
};

/// encode_classes() of the library; after an interrupt, only the first classes.
ClassVectors encode_averages(TextEncoder& encoder, std::vector<std::string> classes,
                             std::span<const std::string> templates, Progress& progress) {
  const TextTower& tower = encoder.tower();
  TruncationNotice notice(tower);
  for (std::size_t i = 0; i < classes.size() && !notice.is_given(); ++i) {
    for (const std::string& pattern : templates) {
      const std::string text = fill_template(pattern, classes[i]);
      notice.check(tower.tokenize(text), text, progress);
    }
  }
  std::size_t shown = 0;
  const auto show = [&](double done, std::size_t) {
    progress.add_done(static_cast<std::size_t>(done) - shown);
    shown = static_cast<std::size_t>(done);
  };
  ClassVectors found = vit::encode_classes(encoder, std::move(classes), templates,
                                           {.on_progress = show, .is_cancelled = interrupted});
  for (std::size_t i = 0; i < found.names.size(); ++i) {
    VIT_CHECK(are_finite(found.vectors.view()[i].flat()), (Where{"texts", ErrorKind::format}), found.names[i],
              ": ", kNotFinite);
  }
  return found;
}

/// The vectors of texts called `names`.
NamedVectors encode_named(TextEncoder& encoder, std::span<const std::string> texts,
                          std::span<const std::string> names, Progress& progress) {
  const TextTower& tower = encoder.tower();
  NamedVectors out{.names = {}, .numbers = {}, .width = tower.config().embedding_dim()};
  out.numbers.reserve(texts.size() * out.width);
  TruncationNotice notice(tower);
  std::vector<TokenRow> rows;
  std::vector<const std::string*> tokenized;  // the names of the rows
  for (std::size_t i = 0; i < texts.size() && !interrupted(); i += kTextsAtOnce) {
    rows.clear();
    tokenized.clear();
    for (std::size_t j = i; j < std::min(i + kTextsAtOnce, texts.size()); ++j) {
      try {
        rows.push_back(tower.tokenize(texts[j]));
      } catch (const Error& error) {
        progress.add_failed(names[j], error.what());
        continue;
      }
      notice.check(rows.back(), texts[j], progress);
      tokenized.push_back(&names[j]);
    }
    const Tensor<float> vectors = encoder.encode_ids(rows);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::span<const float> vector = vectors.view()[row].flat();
      if (!are_finite(vector)) {
        progress.add_failed(*tokenized[row], kNotFinite);
        continue;
      }
      out.names.push_back(*tokenized[row]);
      out.numbers.insert(out.numbers.end(), vector.begin(), vector.end());
      progress.add_done(1);
    }
  }
  return out;
}

/// The vectors of texts called by themselves.
NamedVectors encode_all(TextEncoder& encoder, std::span<const std::string> texts,
                        std::span<const std::string> templates, Progress& progress) {
  if (templates.empty()) return encode_named(encoder, texts, texts, progress);
  if (templates.size() > 1) {
    ClassVectors found = encode_averages(encoder, {texts.begin(), texts.end()}, templates, progress);
    return {.names = std::move(found.names),
            .numbers = {found.vectors.flat().begin(), found.vectors.flat().end()},
            .width = encoder.tower().config().embedding_dim()};
  }
  std::vector<std::string> filled;
  for (const std::string& text : texts) filled.push_back(fill_template(templates.front(), text));
  return encode_named(encoder, filled, texts, progress);
}

}  // namespace

void warn_truncated(std::size_t places, const Tokenizer& tokenizer, std::string_view text) {
  print_failure("", vit::text("texts of more than ", places, " tokens are truncated, as in ",
                              to_string(tokenizer.library()), "; the first: ", text));
}

int encode_texts(const TextJob& job, std::shared_ptr<const TextTower> tower, const TakeVectors& take) {
  Progress progress(job.name, job.texts.size(), job.common.progress_mode(), "texts");
  TextEncoder encoder(std::move(tower), {.threads = job.common.session.threads});
  take(encode_all(encoder, job.texts, job.templates, progress));
  progress.finish("");
  return exit_code(progress);
}

int run_texts(const TextJob& job, const std::function<std::shared_ptr<const TextTower>()>& load,
              const TakeVectors& take) {
  for (const std::filesystem::path& file : job.writes) {
    if (!file.empty()) check_output_place(file);
  }
  confine(job.common, {}, job.reads, job.writes);
  std::shared_ptr<const TextTower> tower = load();
  check_no_weights(job.writes, tower->report().files);
  hold_interrupts();
  return encode_texts(job, std::move(tower), take);
}

std::optional<ClassVectors> encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                                           std::span<const std::string> templates,
                                           const CommonOptions& common) {
  const std::size_t count = classes.size();
  Progress progress("classes", count, common.progress_mode(), "classes");
  ClassVectors found = encode_averages(encoder, std::move(classes), templates, progress);
  if (found.names.size() < count) return std::nullopt;
  return found;
}

}  // namespace vit::app
