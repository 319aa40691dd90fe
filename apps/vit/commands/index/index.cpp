// vit index: vectors of images, to be searched.
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "apps/vit/commands/command.h"
#include "apps/vit/commands/index/index_run.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "FOLDER holds vectors.faiss (faiss.read_index opens it; inner products of vectors of length 1), "
    "files.jsonl (one\n"
    "object a vector) and index.json. Run again, what is new or changed is embedded, and what is not among "
    "the inputs\n"
    "any more is dropped; after an interruption the same command goes on where it stopped.\n"
    "--type takes FAISS's factory strings: Flat (exact), SQfp16 (half the memory), HNSW32 (fast), "
    "IVF1024,PQ32 (small).\n"
    "index.json tells as largest_error how far a stored vector may be from the exact one: no cosine differs "
    "by more.\n"
    "Types that do not give exact vectors back keep them in vectors.npy.\n"
    "FAISS reads an index that was looked through: its type is made of Flat, SQ, PQ, HNSW, IVF, PCA, OPQ, "
    "RR,\n"
    "L2norm, Pad and RFlat. One of another type is read with --trust-index alone.\n"
    "Examples:\n"
    "  vit index photos/ --output photos.index\n"
    "  vit index --model clip/ --type SQfp16 photos/ --output photos.index";

struct IndexOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::string type = "Flat";
  std::string features;
  bool trusts_index = false;
};

/// A file and its vector, which lies elsewhere.
struct KnownVector {
  IndexedFile file;
  const float* vector = nullptr;
};

/// What earlier runs have embedded.
class Known {
 public:
  /// Takes a complete index, if there is one of this model, and what an interrupted run has left.
  Known(const std::filesystem::path& folder, IndexTrust trust, const IndexModel& model, IndexWriter& writer) {
    if (std::filesystem::exists(folder / "index.json")) {
      contents_.emplace(read_index_folder(folder, trust));
      contents_->facts.model.check_same(model, folder.string());
      exact_ = read_exact_vectors(folder, *contents_);
      for (std::size_t i = 0; i < contents_->files.size(); ++i)
        add(contents_->files[i], exact_.view().row(i));
    }
    partial_ = writer.take_partial(model);
    for (const auto& [file, vector] : partial_) add(file, vector.data());
  }

  /// The vector of a file that has not changed; null if there is none. Completes `file`.
  const float* find(IndexedFile& file) const {
    const auto found = by_name_.find(file.file);
    if (found == by_name_.end() || !found->second.file.is_same(file)) return nullptr;
    file.width = found->second.file.width;
    file.height = found->second.file.height;
    return found->second.vector;
  }
  /// Whether a complete index holds exactly these files in this order.
  bool is_complete(std::span<const IndexedFile> files, const std::string& type) const {
    if (!contents_ || contents_->facts.type != type || contents_->files.size() != files.size()) return false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (index_line(contents_->files[i]) != index_line(files[i])) return false;
    }
    return true;
  }

 private:
  void add(const IndexedFile& file, const float* vector) { by_name_[file.file] = {file, vector}; }

  std::optional<IndexContents> contents_;
  Tensor<float> exact_;
  std::vector<std::pair<IndexedFile, std::vector<float>>> partial_;
  std::map<std::string, KnownVector> by_name_;
};

/// The files of the index to be, in the order of the inputs; those whose vector is still missing are null.
struct Plan {
  std::vector<KnownVector> rows;
  InputList missing;
  std::vector<std::size_t> missing_rows;  // places of missing.inputs in `rows`
};

Plan plan_rows(InputList list, const Known& known) {
  Plan plan;
  plan.missing.failures = std::move(list.failures);
  std::set<std::string> names;
  for (Input& input : list.inputs) {
    if (!names.insert(input.name).second) continue;
    KnownVector row;
    try {
      row.file = describe_input(input);
      row.vector = known.find(row.file);
    } catch (const Error&) {
      row.vector = nullptr;  // reported when it is read
    }
    if (row.vector == nullptr) {
      plan.missing_rows.push_back(plan.rows.size());
      plan.missing.inputs.push_back(std::move(input));
    }
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

std::string loss_text(const IndexFacts& facts) {
  if (facts.largest_error == 0) return "vectors exact";
  if (facts.largest_error < 0) return "vectors compressed";
  return text("no cosine off by more than ", static_cast<float>(facts.largest_error));
}

int index(const IndexOptions& options) {
  VectorIndex::check_available();
  InputList list = list_inputs(options.inputs, std::cin);
  confine(options.common, list.inputs, {}, {options.output});
  ImageRun run("index", options.common);
  const VectorFeature feature(options.features, run.model().config());
  const IndexModel model = index_model(options.common, run.model(), feature);
  VectorIndex::check_type(options.type, model.dim);
  check_preprocessing(list.inputs, run.model());
  hold_interrupts();
  IndexWriter writer(options.output);
  const Known known(options.output, index_trust(options.trusts_index), model, writer);
  Plan plan = plan_rows(std::move(list), known);
  const std::size_t num_new = plan.missing.inputs.size();
  run.start(std::move(plan.missing));
  std::vector<std::vector<float>> fresh(num_new);  // (d) each
  embed_all(run, feature, [&](std::size_t i, const IndexedFile& file, std::vector<float> vector) {
    writer.add_partial(file, vector);
    fresh[i] = std::move(vector);
    plan.rows[plan.missing_rows[i]] = {file, fresh[i].data()};
  });
  if (interrupted()) return run.finish(options.output.string() + ": interrupted; the same command goes on");
  std::erase_if(plan.rows, [](const KnownVector& row) { return row.vector == nullptr; });
  if (plan.rows.empty()) {
    const int code = run.finish();
    VIT_CHECK(code != 0, "index", "there are no images");
    return code;
  }
  std::vector<IndexedFile> files;
  Tensor<float> vectors(Shape{plan.rows.size(), model.dim});
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    files.push_back(plan.rows[i].file);
    std::copy_n(plan.rows[i].vector, model.dim, vectors.view().row(i));
  }
  if (known.is_complete(files, options.type)) {
    writer.drop_partial();
    return run.finish(text(options.output.string(), ": ", files.size(), " images, nothing has changed"));
  }
  const IndexFacts facts = writer.commit(model, options.type, files, vectors);
  return run.finish(text(options.output.string(), ": ", files.size(), " images, ", num_new, " embedded now; ",
                         options.type, ", ", loss_text(facts)));
}

}  // namespace

Command index_command() {
  const auto options = std::make_shared<IndexOptions>();
  Command command{
      .name = "index",
      .summary = "Embed images into an index for search and duplicates",
      .footer = kFooter,
      .options =
          {inputs_option(options->inputs),
           {.name = "-o,--output",
            .type_name = "FOLDER",
            .help = "Folder of the index; is made",
            .target = text_target(options->output),
            .is_required = true},
           {.name = "--type",
            .type_name = "FACTORY",
            .help = "Kind of index, a factory string of FAISS",
            .target = parsed_target(
                options->type, [](const std::string& value) { return not_empty(value); }, "Flat")},
           {.name = "--features",
            .type_name = "NAME",
            .help = "pooled, projected, cls or logits; default: projected if the model has it, else pooled",
            .target = offering(text_target(options->features), vector_names())},
           trust_option(options->trusts_index)},
      .run = [options] { return index(*options); }};
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
