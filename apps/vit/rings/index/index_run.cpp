#include "apps/vit/rings/index/index_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/thumbnails.h"
#include "apps/vit/options/record.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"
#include "vit/config/output_table.h"

namespace vit::app {
VectorFeature::VectorFeature(const std::string& features, const Model& model)
    : output(parse_vector_feature(features, model)) {}

std::vector<float> VectorFeature::vector(const ImageOutputs& outputs) const {
  const std::span<const float> numbers = outputs[output].flat();
  std::vector<float> out(numbers.begin(), numbers.end());
  check_finite(out, "embed", "the features are");
  normalize_vector(out);
  VIT_CHECK(std::ranges::any_of(out, [](float x) { return x != 0; }), "embed",
            "the features are all zero: no direction to compare");
  return out;
}

IndexModel index_model(const CommonOptions& options, const Model& model, const VectorFeature& feature) {
  const std::string name = to_string(feature.output);
  return {run_model(options, model, std::span(&name, 1)), feature.dim(model.config())};
}

IndexModel index_model(const CommonOptions& options, const PageVectors& pages) {
  return {pages.record(options), pages.dim()};
}

Option trust_option(bool& trusts_index) {
  return {.name = "--trust-index",
          .type_name = "",
          .help =
              "Let FAISS read the files of an index of 0.2; only for your own files. Indexes of this release "
              "do not need it",
          .flag = &trusts_index};
}

std::vector<std::filesystem::path> files_of_index(const CommonOptions& options,
                                                  const std::filesystem::path& folder,
                                                  std::span<const IndexedFile> indexed,
                                                  const std::filesystem::path& html) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (html.empty() || !(options.sandbox || std::filesystem::exists(html, error))) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::vector<std::string> names;
  for (const IndexedFile& file : indexed) names.push_back(file.file);
  for (const Input& input : find_inputs(names)) files.emplace_back(input.path);
  return files;
}

IndexedFile describe_input(const Input& input) {
  struct stat status;
  VIT_CHECK(::stat(input.path.c_str(), &status) == 0, (Where{"open", ErrorKind::io}), std::strerror(errno));
  return {.file = input.name,
          .size = input.archive ? input.member.size : static_cast<std::uintmax_t>(status.st_size),
          .modified = static_cast<double>(status.st_mtim.tv_sec) +
                      1e-9 * static_cast<double>(status.st_mtim.tv_nsec)};
}

std::string IndexWork::add(ImageRun& run, const StreamedImage& image) {
  IndexedFile file;
  std::vector<float> vector;
  const Input& input = run.inputs()[image.index];
  bool has_changed = false;
  const std::string failure = failure_of([&] {
    file = describe_input(input);
    if (image.index < before_.size() && !before_[image.index].file.empty()) {
      has_changed = !before_[image.index].is_same(file);
      file = before_[image.index];
    }
    if (!pages_) {
      vector = feature_->vector(*image.outputs);
      return;
    }
    const Tensor<float> page = pages_->page(*image.outputs);
    file.vectors = page.dim(0);
    vector.assign(page.flat().begin(), page.flat().end());
  });
  if (!failure.empty()) return failure;
  file.width = image.size.width;
  file.height = image.size.height;
  if (has_changed) {
    run.progress().clear();
    print_failure(input.name, "changed while the index was made; the next run embeds it again");
  }
  take(image.index, file, std::move(vector));  // what fails here, such as a full disk, ends the run
  return "";
}

}  // namespace vit::app
