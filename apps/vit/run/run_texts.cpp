#include "apps/vit/run/run_texts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"

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

/// What a text is encoded as.
std::vector<std::string> forms_of(const std::string& text, std::span<const std::string> templates) {
  if (templates.empty()) return {text};
  std::vector<std::string> forms;
  for (const std::string& pattern : templates) forms.push_back(fill_template(pattern, text));
  return forms;
}

/// The vectors of texts, called by themselves.
NamedVectors encode_all(TextEncoder& encoder, std::span<const std::string> texts,
                        std::span<const std::string> templates, Progress& progress) {
  const TextTower& tower = encoder.tower();
  const std::size_t num_forms = std::max<std::size_t>(templates.size(), 1);
  const std::size_t at_once = std::max<std::size_t>(kTextsAtOnce / num_forms, 1);
  NamedVectors out{.names = {}, .numbers = {}, .width = tower.config().embedding_dim()};
  out.numbers.reserve(texts.size() * out.width);
  TruncationNotice notice(tower);
  std::vector<TokenRow> rows, of_text;
  std::vector<const std::string*> tokenized;  // the texts of the rows
  std::vector<float> vector(out.width);
  for (std::size_t i = 0; i < texts.size() && !interrupted(); i += at_once) {
    rows.clear();
    tokenized.clear();
    for (std::size_t j = i; j < std::min(i + at_once, texts.size()); ++j) {
      of_text.clear();
      const std::string failure = failure_of([&] {
        for (const std::string& form : forms_of(texts[j], templates)) {
          of_text.push_back(tower.tokenize(form));
          notice.check(of_text.back(), form, progress);
        }
      });
      if (!failure.empty()) {
        progress.add_failed(texts[j], failure);
        continue;
      }
      std::ranges::move(of_text, std::back_inserter(rows));
      tokenized.push_back(&texts[j]);
    }
    const Tensor<float> vectors = encoder.encode_ids(rows);
    for (std::size_t k = 0; k < tokenized.size(); ++k) {
      if (num_forms == 1) {
        std::ranges::copy(vectors.view()[k].flat(), vector.begin());
      } else {
        mean_direction(vectors.view().part(k * num_forms, num_forms), vector);
        normalize_vector(vector);
      }
      if (!are_finite(vector)) {
        progress.add_failed(*tokenized[k], kNotFinite);
        continue;
      }
      out.names.push_back(*tokenized[k]);
      out.numbers.insert(out.numbers.end(), vector.begin(), vector.end());
      progress.add_done(1);
    }
  }
  return out;
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
  confine_run(job.common, {}, job.reads, job.writes);
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
  if (found.names.size() < count) return std::nullopt;
  return found;
}

}  // namespace vit::app
