// vit embed --features page: vectors of pages, or of questions, to a file.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/page_vectors.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

std::unique_ptr<ResultWriter> open_writer(const EmbedPages& job, const PageVectors& pages, const char* array,
                                          bool resume) {
  ResultWriterOptions options{.path = job.output, .format = job.format, .names = {array}, .resume = resume};
  if (job.format == ResultFormat::jsonl || job.format == ResultFormat::safetensors)
    options.facts = RunFacts{.model = pages.record(job.common), .others = {}};
  return make_result_writer(options);
}

/// Writes the vectors of each page.
class PageEmbedding : public ImageWork {
 public:
  explicit PageEmbedding(const EmbedPages& job) : job_(job) {}

  std::optional<Request> load(ImageRun& run) override {
    pages_ = load_page_vectors(job_.common);
    run.set_model(pages_->image());
    check_preprocessing(run.inputs(), run.model());
    hold_interrupts();
    writer_ = open_writer(job_, *pages_, kPageFeature, job_.resume);
    std::erase_if(run.list().inputs, [&](const Input& input) { return writer_->take_done(input.name); });
    return Output::merged;
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    Tensor<float> vectors;
    const std::string failure = failure_of([&] { vectors = pages_->page(*image.outputs); });
    if (!failure.empty()) return failure;
    const ResultArray array = ResultArray::of(vectors);
    return writer_->add(run.inputs()[image.index].name, std::span(&array, 1));
  }

  int finish(ImageRun& run) override {
    writer_->finish();
    run.progress().finish(job_.output.string() + ": " + writer_->summary());
    return 0;
  }

 private:
  const EmbedPages& job_;
  std::unique_ptr<PageVectors> pages_;
  std::unique_ptr<ResultWriter> writer_;
};

int embed_questions(const EmbedPages& job) {
  check_output_place(job.output);
  confine_run(job.common, {}, job.reads, {job.output});
  const std::unique_ptr<PageVectors> pages = load_page_vectors(job.common);
  check_no_weights(std::array{job.output}, pages->image()->report().files);
  hold_interrupts();
  const std::unique_ptr<ResultWriter> writer = open_writer(job, *pages, "question", /*resume=*/false);
  Progress progress("embed", job.texts.size(), job.common.progress_mode(), "texts");
  for (const std::string& text : job.texts) {
    if (interrupted()) break;
    Tensor<float> vectors;
    std::string failure = failure_of([&] { vectors = pages->question(text); });
    if (failure.empty()) {
      const ResultArray array = ResultArray::of(vectors);
      failure = writer->add(text, std::span(&array, 1));
    }
    if (failure.empty()) {
      progress.add_done(1);
    } else {
      progress.add_failed(text, failure);
    }
  }
  writer->finish();
  progress.finish(job.output.string() + ": " + writer->summary());
  return exit_code(progress);
}

}  // namespace

int embed_pages(const EmbedPages& job) {
  if (job.inputs.empty()) return embed_questions(job);
  if (!job.texts.empty())
    fail_usage("--features page: pages or questions (--text), not both; encode questions in a separate run");
  PageEmbedding work(job);
  return run_images({.name = "embed",
                     .common = job.common,
                     .inputs = job.inputs,
                     .shard = job.shard,
                     .reads = job.reads,
                     .files = {job.output}},
                    work);
}

}  // namespace vit::app
