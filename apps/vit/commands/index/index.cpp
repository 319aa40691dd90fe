// vit index: vectors of images, for searching.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "apps/vit/commands/command.h"
#include "apps/vit/commands/index/index_run.h"
#include "apps/vit/commands/index/index_search.h"
#include "apps/vit/html/thumbnails.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "FOLDER contains vectors.safetensors (vectors of length 1), files.jsonl (one object per vector), "
    "index.json "
    "and\n"
    "vectors.faiss (for faiss.read_index; inner products). A second run embeds new and changed images and "
    "reports\n"
    "and drops entries that are no longer among the inputs; to resume an interrupted run, run the same "
    "command\n"
    "again.\n"
    "--type takes FAISS factory strings: Flat (exact) and SQfp16 (half the memory), which need no FAISS,\n"
    "HNSW32 (fast), IVF1024,PQ32 (small), ... largest_error in index.json bounds the error of a "
    "cosine.\n"
    "FAISS reads vectors.faiss back only if the same user wrote it; otherwise it is rebuilt from the "
    "vectors.\n"
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

/// The location of a vector: in the existing index, or among the newly embedded ones.
struct Place {
  enum class Store { none, index, partial };
  Store store = Store::none;
  std::size_t row = 0;
};

struct IndexRow {
  IndexedFile file;
  Place place;
};

/// The results of earlier runs.
class ExistingIndex {
 public:
  /// Reads a complete index, if there is one of this model, and the results of an interrupted run.
  ExistingIndex(const std::filesystem::path& folder, IndexTrust trust, const IndexModel& model,
                IndexWriter& writer)
      : folder_(folder) {
    if (std::filesystem::exists(folder / "index.json")) {
      contents_.emplace(read_index_folder(folder, trust));
      contents_->facts.model.check_same(model, folder.string());
      add(contents_->files, Place::Store::index);
    }
    partial_ = writer.take_partial(model);
    add(partial_, Place::Store::partial);
  }

  /// The vector of an unchanged file. Completes `file`.
  Place find(IndexedFile& file) const {
    const auto found = by_name_.find(file.file);
    if (found == by_name_.end()) return {};
    const IndexedFile& known = file_at(found->second);
    if (!known.is_same(file)) return {};
    file.width = known.width;
    file.height = known.height;
    return found->second;
  }
  /// Whether a complete index has exactly these files in this order, in files of this release and user.
  bool is_complete(std::span<const IndexedFile> files, const IndexFacts& facts, const IndexSeal& seal) const {
    if (!contents_ || !contents_->is_current || contents_->facts.type != facts.type ||
        contents_->facts.options != facts.options || contents_->files.size() != files.size())
      return false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (index_line(contents_->files[i]) != index_line(files[i])) return false;
    }
    return has_own_faiss_file(folder_, contents_->facts, seal);
  }
  /// One line for the user about files of the index that are not among `rows`; "" if there are
  /// none.
  std::string dropped(std::span<const IndexRow> rows) const {
    if (!contents_) return "";
    std::unordered_set<std::string_view> kept;
    for (const IndexRow& row : rows) kept.insert(row.file.file);
    std::size_t count = 0, num_left = 0;
    std::string first;
    for (const IndexedFile& file : contents_->files) {
      if (kept.contains(file.file)) continue;
      if (count++ == 0) first = file.file;
      for (const Input& input : find_inputs(std::vector{file.file})) {
        std::error_code error;
        num_left += std::filesystem::exists(input.path, error) ? 1 : 0;
      }
    }
    if (count == 0) return "";
    return text(count == 1 ? "dropping an image that is" : text("dropping ", count, " images that are"),
                " not among the inputs: ", first, count > 1 ? ", ..." : "",
                num_left == 0 ? "" : "; to keep existing files, list their folders too");
  }
  /// The vectors of the complete index; empty without one.
  StoredVectors vectors() const { return contents_ ? contents_->vectors : StoredVectors(); }
  /// Largest error of vectors(); 0 if they are exact.
  double stored_error() const {
    return contents_ && contents_->vectors.are_rounded() ? std::max(0.0, contents_->facts.largest_error)
                                                         : 0.0;
  }

 private:
  void add(const std::vector<IndexedFile>& files, Place::Store store) {
    for (std::size_t i = 0; i < files.size(); ++i) by_name_[files[i].file] = {store, i};
  }
  const IndexedFile& file_at(Place place) const {
    return place.store == Place::Store::index ? contents_->files[place.row] : partial_[place.row];
  }

  std::filesystem::path folder_;
  std::optional<IndexContents> contents_;
  std::vector<IndexedFile> partial_;
  std::unordered_map<std::string_view, Place> by_name_;  // names of contents_ and partial_
};

/// The rows of the new index, in the order of the inputs; rows whose vector is still missing have no
/// place.
struct UpdatePlan {
  std::vector<IndexRow> rows;
  InputList missing;
  std::vector<std::size_t> missing_rows;  // places of missing.inputs in `rows`
};

UpdatePlan plan_rows(InputList list, const ExistingIndex& existing) {
  UpdatePlan plan;
  plan.missing.failures = std::move(list.failures);
  plan.missing.notes = std::move(list.notes);
  for (Input& input : list.inputs) {
    IndexRow row;
    try {
      row.file = describe_input(input);
      row.place = existing.find(row.file);
    } catch (const Error&) {
      row.place = {};  // reported when it is read
    }
    if (row.place.store == Place::Store::none) {
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
  return text("error of cosines at most ", static_cast<float>(facts.largest_error));
}

/// Replaces the index by `rows`, whose vectors are on disk; none of them is kept in memory.
IndexFacts write_index(IndexWriter& writer, IndexFacts facts, std::span<const IndexRow> rows,
                       std::span<const IndexedFile> files, const ExistingIndex& existing,
                       const IndexSeal& seal) {
  const StoredVectors old = existing.vectors(), fresh = writer.partial();
  const std::size_t dim = facts.model.dim;
  const auto read = [&](std::size_t first, std::span<float> out) {
    for (std::size_t i = 0; i * dim < out.size(); ++i) {
      const Place place = rows[first + i].place;
      (place.store == Place::Store::index ? old : fresh).read(place.row, out.subspan(i * dim, dim));
    }
  };
  facts.largest_error = existing.stored_error();
  return writer.commit(std::move(facts), files, read, seal);
}

int index(const IndexOptions& options) {
  if (!plain_type(options.type) && !VectorIndex::is_available())
    VectorIndex::check_type(options.type, 0);  // throws
  InputList list = list_inputs(options.inputs, std::cin);
  take_once(list);
  const IndexSeal seal = IndexSeal::of_user();  // before the sandbox closes
  confine(options.common, list.inputs, {}, {options.output});
  ImageRun run("index", options.common);
  const VectorFeature feature(options.features, run.model().config());
  const IndexFacts facts{.model = index_model(options.common, run.model(), feature),
                         .type = options.type,
                         .options = options.common.given};
  if (!plain_type(options.type)) VectorIndex::check_type(options.type, facts.model.dim);
  check_preprocessing(list.inputs, run.model());
  hold_interrupts();
  IndexWriter writer(options.output);
  const ExistingIndex existing(options.output, index_trust(options.trusts_index), facts.model, writer);
  UpdatePlan plan = plan_rows(std::move(list), existing);
  if (const std::string dropped = existing.dropped(plan.rows); !dropped.empty())
    plan.missing.notes.push_back({options.output.string(), dropped});
  const std::size_t num_new = plan.missing.inputs.size();
  run.start(std::move(plan.missing));
  embed_all(run, feature, [&](std::size_t i, const IndexedFile& file, std::vector<float> vector) {
    const std::size_t row = writer.add_partial(file, vector);
    plan.rows[plan.missing_rows[i]] = {file, {Place::Store::partial, row}};
  });
  if (interrupted())
    return run.finish(options.output.string() + ": interrupted; run the same command again to resume");
  std::erase_if(plan.rows, [](const IndexRow& row) { return row.place.store == Place::Store::none; });
  if (plan.rows.empty()) {
    const int code = run.finish();
    VIT_CHECK(code != 0, "index", "there are no images");
    return code;
  }
  std::vector<IndexedFile> files;
  files.reserve(plan.rows.size());
  for (IndexRow& row : plan.rows) files.push_back(std::move(row.file));
  if (existing.is_complete(files, facts, seal)) {
    writer.drop_partial();
    return run.finish(text(options.output.string(), ": ", files.size(), " images, unchanged"));
  }
  const IndexFacts written = write_index(writer, facts, plan.rows, files, existing, seal);
  return run.finish(text(options.output.string(), ": ", files.size(), " images, ", num_new,
                         " newly embedded; ", options.type, ", ", loss_text(written)));
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
            .help = "Index folder, created if missing",
            .target = text_target(options->output),
            .is_required = true},
           {.name = "--type",
            .type_name = "FACTORY",
            .help = "Type of index, a FAISS factory string",
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
