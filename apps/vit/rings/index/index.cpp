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

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/thumbnails.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/index/index_run.h"
#include "apps/vit/rings/index/index_search.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "FOLDER contains vectors.safetensors (vectors of length 1), files.jsonl (one object per vector), "
    "index.json and vectors.faiss (for faiss.read_index; inner products). A second run embeds new and "
    "changed images and reports and drops entries that are no longer among the inputs; to resume an "
    "interrupted run, run the same command again.\n"
    "--type takes FAISS factory strings: Flat (exact) and SQfp16 (half the memory), which need no FAISS, "
    "HNSW32 (fast), IVF1024,PQ32 (small), ... largest_error in index.json bounds the error of a cosine.\n"
    "With --pages files.jsonl has the number of vectors of each file, and there is no vectors.faiss.\n"
    "FAISS reads vectors.faiss back only if the same user wrote it; otherwise it is rebuilt from the "
    "vectors.\n"
    "Examples:\n"
    "  vit index photos/ --output photos.index\n"
    "  vit index --model clip/ --type SQfp16 photos/ --output photos.index\n"
    "  vit index --model colmodernvbert/ --pages scans/ --output scans.index";

struct IndexOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::optional<std::string> type{};  // none: that of an index that is there, or Flat

  std::string type_name() const { return type.value_or("Flat"); }
  std::string features;
  bool pages = false;
  bool trusts_index = false;
};

/// The location of the vectors of a file: in the existing index, or among the newly embedded ones.
struct Place {
  enum class Store { none, index, partial };
  Store store = Store::none;
  std::size_t file = 0;   // there
  std::size_t first = 0;  // of its vectors
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
    file.vectors = known.vectors;
    return found->second;
  }
  /// Whether a complete index has exactly these files in this order, in files of this release and user.
  bool is_complete(std::span<const IndexedFile> files, const IndexFacts& facts, const IndexSeal& seal) const {
    if (!contents_ || !contents_->is_current || contents_->facts.type != facts.type ||
        contents_->facts.model.options != facts.model.options || contents_->files.size() != files.size())
      return false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (index_line(contents_->files[i]) != index_line(files[i])) return false;
    }
    return facts.model.has_pages() || has_own_faiss_file(folder_, contents_->facts, seal);
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
    const std::vector<std::size_t> starts = vector_starts(files);
    for (std::size_t i = 0; i < files.size(); ++i) by_name_[files[i].file] = {store, i, starts[i]};
  }
  const IndexedFile& file_at(Place place) const {
    return place.store == Place::Store::index ? contents_->files[place.file] : partial_[place.file];
  }

  std::filesystem::path folder_;
  std::optional<IndexContents> contents_;
  std::vector<IndexedFile> partial_;
  std::unordered_map<std::string_view, Place> by_name_;  // names of contents_ and partial_
};

std::string loss_text(const IndexFacts& facts) {
  if (facts.largest_error == 0) return "vectors exact";
  if (facts.largest_error < 0) return "vectors compressed";
  return text("error of cosines at most ", static_cast<float>(facts.largest_error));
}

/// Embeds what the index lacks, and writes the index anew.
class Indexing : public IndexWork {
 public:
  explicit Indexing(const IndexOptions& options) : options_(options) {}

  std::optional<Request> load(ImageRun& run) override {
    if (options_.pages) {
      pages_ = load_page_vectors(options_.common);
      run.set_model(pages_->image());
      facts_ = {.model = index_model(options_.common, *pages_), .type = options_.type_name()};
    } else {
      feature_.emplace(options_.features, *run.load());
      facts_ = {.model = index_model(options_.common, run.model(), *feature_), .type = options_.type_name()};
    }
    if (!plain_type(facts_.type)) VectorIndex::check_type(facts_.type, facts_.model.dim);
    check_preprocessing(run.inputs(), run.model());
    hold_interrupts();
    writer_.emplace(options_.output);
    existing_.emplace(options_.output, index_trust(options_.trusts_index), facts_.model, *writer_);
    keep_missing(run.list());
    num_new_ = run.inputs().size();
    return Request(pages_ ? Output::merged : feature_->output);
  }

  int finish(ImageRun& run) override {
    run.progress().finish(finish_index(run.progress()));
    return 0;
  }

 private:
  /// Fills the rows of the new index, in the order of the inputs, and keeps those in the list whose vector is
  /// still missing.
  void keep_missing(InputList& list) {
    std::vector<Input> missing;
    for (Input& input : list.inputs) {
      if (!internal::is_utf8(input.name)) {
        list.failures.push_back(
            {input.name, "the name is not UTF-8, in which an index keeps names; rename the file"});
        continue;
      }
      IndexRow row;
      const std::string failure = failure_of([&] {
        row.file = describe_input(input);
        row.place = existing_->find(row.file);
      });
      if (!failure.empty()) row.place = {};  // reported when it is read
      if (row.place.store == Place::Store::none) {
        missing_rows_.push_back(rows_.size());
        missing.push_back(std::move(input));
        before_.push_back(row.file);
      }
      rows_.push_back(std::move(row));
    }
    list.inputs = std::move(missing);
    if (std::string dropped = existing_->dropped(rows_); !dropped.empty())
      list.notes.push_back({options_.output.string(), std::move(dropped)});
  }

  void take(std::size_t index, const IndexedFile& file, std::vector<float> vectors) override {
    rows_[missing_rows_[index]] = {file, {Place::Store::partial, 0, writer_->add_partial(file, vectors)}};
  }

  /// Writes the index if all images are embedded and it has changed. Returns the summary.
  std::string finish_index(const Progress& progress) {
    const std::string name = options_.output.string();
    if (interrupted()) return name + ": interrupted; run the same command again to resume";
    std::erase_if(rows_, [](const IndexRow& row) { return row.place.store == Place::Store::none; });
    VIT_CHECK(!rows_.empty() || progress.num_failed() > 0, "index", "there are no images");
    if (rows_.empty()) return "";
    std::vector<IndexedFile> files;
    files.reserve(rows_.size());
    for (IndexRow& row : rows_) files.push_back(std::move(row.file));
    if (existing_->is_complete(files, facts_, seal_)) {
      writer_->drop_partial();
      return text(name, ": ", files.size(), " images, unchanged");
    }
    const IndexFacts written = write_rows(files);
    return text(name, ": ", files.size(), " images, ", num_new_, " newly embedded; ", facts_.type, ", ",
                loss_text(written));
  }

  /// Replaces the index by the rows, whose vectors are on disk; none of them is kept in memory.
  IndexFacts write_rows(std::span<const IndexedFile> files) {
    const StoredVectors old = existing_->vectors(), fresh = writer_->partial();
    const std::size_t dim = facts_.model.dim;
    const std::vector<std::size_t> starts = vector_starts(files);
    const auto read_rows = [&](std::size_t first, std::span<float> out) {
      auto file = static_cast<std::size_t>(std::ranges::upper_bound(starts, first) - starts.begin()) - 1;
      for (const std::size_t end = first + out.size() / dim; first < end; ++file) {
        const std::size_t count = std::min(starts[file + 1], end) - first;
        const Place place = rows_[file].place;
        (place.store == Place::Store::index ? old : fresh)
            .read(place.first + first - starts[file], out.first(count * dim));
        out = out.subspan(count * dim);
        first += count;
      }
    };
    facts_.largest_error = existing_->stored_error();
    return writer_->commit(facts_, files, read_rows, seal_);
  }

  const IndexOptions& options_;
  const IndexSeal seal_ = IndexSeal::of_user();  // before the sandbox closes
  IndexFacts facts_;
  std::optional<IndexWriter> writer_;
  std::optional<ExistingIndex> existing_;
  std::vector<IndexRow> rows_;             // of the new index
  std::vector<std::size_t> missing_rows_;  // place in rows_ of each input that is run
  std::size_t num_new_ = 0;
};

/// What an index that is there already was made with, where the command line does not say it.
void take_existing(IndexOptions& options) {
  const std::filesystem::path facts = options.output / "index.json";
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(facts, unknown)) return;
  const internal::Json json = internal::load_json(facts);
  const RunModel made = parse_run_model(json);
  const std::string type(json.at("type").as_string());
  if (options.type && *options.type != type && !options.common.quiet)
    print_failure(options.output.string(), text("the type changes from ", type, " to ", *options.type));
  if (!options.type) options.type = type;
  take_record(made, facts.string(), options.common);
  if (made.features == kPageFeature) {
    if (!options.features.empty())
      fail_usage("--features: ", options.output.string(), " is an index of pages, whose feature is page");
    options.pages = true;
  } else if (options.features.empty()) {
    options.features = made.features;
  }
}

int index(IndexOptions& options) {
  take_existing(options);
  if (options.pages && !options.features.empty()) fail_usage("--features: --pages takes the feature page");
  const std::string type = options.type_name();
  if (options.pages && !plain_type(type))
    fail_usage("--type: pages have many vectors each, which are searched exactly: Flat or SQfp16");
  if (!plain_type(type) && !VectorIndex::is_available()) VectorIndex::check_type(type, 0);  // throws
  Indexing work(options);
  return run_images({.name = "index",
                     .common = options.common,
                     .list = [&] { return list_once(options.inputs, std::cin); },
                     .writes = {options.output}},
                    work);
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
            .help = "Type of index, a FAISS factory string; of an index that is there its own",
            .target = parsed_target(
                options->type, [](const std::string& value) { return not_empty(value); }, "Flat")},
           {.name = "--features",
            .type_name = "NAME",
            .help = "pooled, projected, cls or logits; default: projected if the model has it, else pooled",
            .target = offering(text_target(options->features), vector_names())},
           {.name = "--pages",
            .type_name = "",
            .help = "Many vectors of each page, of a model that gives them (ColModernVBERT)",
            .flag = &options->pages},
           trust_option(options->trusts_index)},
      .run = [options] { return index(*options); }};
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
