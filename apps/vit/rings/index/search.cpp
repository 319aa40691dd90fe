// vit search: the images of an index that are most similar to others, or to texts.
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/index/index_run.h"
#include "apps/vit/rings/index/index_search.h"
#include "apps/vit/rings/index/page_search.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "FOLDER is an index from vit index; its model, features, size and loading options are used.\n"
    "Scores are cosines; ties are in the order of the index. Several queries are combined: the mean of their "
    "vectors is searched for. With --each every query is searched separately. Texts need an index of a model "
    "with a text tower, of the features that are compared with texts.\n"
    "Of an index of pages a score is the sum over the tokens of the query of their best match on the page.\n"
    "Examples:\n"
    "  vit search photos.index cat.jpg\n"
    "  vit search scans.index --text \"revenue by quarter\"\n"
    "  vit search photos.index cat1.jpg cat2.jpg --top 100 --format json\n"
    "  vit search clip.index --text \"a dog on a beach\"\n"
    "  vit search photos.index queries/ --each --format csv --parameters nprobe=32";

constexpr std::size_t kMaxTop = std::size_t{1} << 20;

struct SearchOptions {
  CommonOptions common;
  std::filesystem::path folder;
  std::vector<std::string> queries;
  TextInputs texts;
  std::size_t top = 10;
  PrintFormat format = PrintFormat::text;
  bool each = false;
  std::string parameters;
  bool trusts_index = false;
  std::filesystem::path html;
};

/// A vector to search for, and the names of the queries in it.
struct Query {
  std::vector<std::string> names;
  std::vector<float> vector;  // (d), of length 1; of pages those of all tokens, one after the other
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " + ") + name;
  return out;
}

std::string as_text(const Query& query, std::span<const Hit> hits, std::span<const IndexedFile> files) {
  std::string out = printable(joined(query.names)) + "\n";
  for (const Hit& hit : hits) {
    char number[32];
    std::snprintf(number, sizeof number, "  %7.4f  ", static_cast<double>(hit.score));
    out += number + printable(files[hit.index].file) + "\n";
  }
  return out;
}

std::string as_json(const Query& query, std::span<const Hit> hits, std::span<const IndexedFile> files) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("query");
  if (query.names.size() == 1) {
    json.value(query.names.front());
  } else {
    json.array(query.names);
  }
  json.key("results").begin_array();
  for (std::size_t i = 0; i < hits.size(); ++i) {
    json.begin_object().member("rank", i + 1).member("file", files[hits[i].index].file);
    json.member("score", hits[i].score).end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

std::string as_csv(const Query& query, std::span<const Hit> hits, std::span<const IndexedFile> files) {
  std::string out;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    out +=
        csv_field(joined(query.names)) + text(",", i + 1, ",") + csv_field(files[hits[i].index].file) + ",";
    append_json_float(out, hits[i].score);
    out += "\n";
  }
  return out;
}

PageSection page_section(const Query& query, bool are_images, std::span<const Hit> hits,
                         std::span<const IndexedFile> files) {
  PageSection section{.title = joined(query.names), .note = {}, .leads = {}, .items = {}};
  for (const std::string& name : query.names) {
    if (are_images) section.leads.push_back(named_item(name));
  }
  for (const Hit& hit : hits) {
    PageItem& item = section.items.emplace_back(named_item(files[hit.index].file));
    item.score = hit.score;
  }
  return section;
}

std::vector<std::span<const float>> vectors_of(std::span<const Query> queries) {
  std::vector<std::span<const float>> out;
  for (const Query& query : queries) out.emplace_back(query.vector);
  return out;
}

/// All queries as one.
Query mean_of(std::span<const Query> queries) {
  Query mean{.names = {}, .vector = mean_vector(vectors_of(queries))};
  for (const Query& query : queries) mean.names.push_back(query.names.front());
  return mean;
}

/// All queries as one: a page is to match all of their vectors.
Query all_vectors_of(std::span<const Query> queries) {
  Query all;
  for (const Query& query : queries) {
    all.names.push_back(query.names.front());
    all.vector.insert(all.vector.end(), query.vector.begin(), query.vector.end());
  }
  return all;
}

/// An index, the queries to it, and what is found.
class Search : public IndexWork {
 public:
  explicit Search(const SearchOptions& options)
      : options_(options), contents_(read_index_folder(options.folder, index_trust(options.trusts_index))) {
    if (contents_.facts.model.has_pages()) {
      if (!options.parameters.empty()) fail_usage("--parameters: an index of pages is searched exactly");
    } else {
      index_.emplace(options.folder, contents_, options.parameters);
    }
    if (index_ && !index_->note().empty() && !options.common.quiet)
      print_failure(options.folder.string(), index_->note());
    take_record(contents_.facts.model, (options.folder / "index.json").string(), options_.common);
  }

  int run() {
    std::vector<std::filesystem::path> reads =
        files_of_index(options_.common, options_.folder, contents_.files, options_.html);
    reads.push_back(options_.texts.file);
    if (options_.queries.empty()) return index_ ? run_of_texts(reads) : run_of_questions(reads);
    return run_images({.name = "search",
                       .common = options_.common,
                       .inputs = options_.queries,
                       .reads = reads,
                       .files = {options_.html}},
                      *this);
  }

  std::optional<Request> load(ImageRun& run) override {
    if (!index_) {
      load_pages();
      run.set_model(pages_->image());
      return Output::merged;
    }
    check_model(*run.load(), contents_.facts.model.features);
    return feature_->output;
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (is_answerable()) answer();
    return 0;
  }

 private:
  void take(std::size_t, const IndexedFile& file, std::vector<float> vector) override {
    queries_.push_back({{file.file}, std::move(vector)});
  }

  int run_of_texts(const std::vector<std::filesystem::path>& reads) {
    const std::vector<std::string> texts = read_texts(options_.texts);
    const auto load = [&] {
      ImageAndText towers = load_both_towers(options_.common);
      check_model(*towers.image, "");  // the default is the feature compared with texts
      return towers.text;
    };
    return run_texts({.name = "search",
                      .common = options_.common,
                      .texts = texts,
                      .reads = reads,
                      .writes = {options_.html}},
                     load, [&](const NamedVectors& vectors) { take_texts(vectors); });
  }

  /// The model of an index of pages. Throws Error unless the index was made with it.
  void load_pages() {
    pages_ = load_page_vectors(options_.common);
    contents_.facts.model.check_same(index_model(options_.common, *pages_), options_.folder.string());
  }

  int run_of_questions(const std::vector<std::filesystem::path>& reads) {
    const std::vector<std::string> texts = read_texts(options_.texts);
    if (!options_.html.empty()) check_output_place(options_.html);
    confine_run(options_.common, {}, reads, {options_.html});
    load_pages();
    Progress progress("search", texts.size(), options_.common.progress_mode(), "texts");
    for (const std::string& question : texts) {
      const std::string failure = failure_of([&] {
        const Tensor<float> vectors = pages_->question(question);
        queries_.push_back({{question}, {vectors.flat().begin(), vectors.flat().end()}});
      });
      if (failure.empty()) {
        progress.add_done(1);
      } else {
        progress.add_failed(question, failure);
      }
    }
    progress.finish("");
    if (!queries_.empty() && is_answerable()) answer();
    return exit_code(progress);
  }

  std::vector<std::vector<Hit>> find() const {
    const int threads = options_.common.session.threads;
    if (index_) return index_->search(vectors_of(queries_), options_.top, threads);
    std::vector<std::vector<Hit>> found;
    for (const Query& query : queries_)
      found.push_back(search_pages(contents_, query.vector, options_.top, threads));
    return found;
  }

  void take_texts(const NamedVectors& vectors) {
    for (std::size_t i = 0; i < vectors.names.size(); ++i) {
      const float* const row = vectors.view().row(i);
      queries_.push_back({{vectors.names[i]}, {row, row + vectors.width}});
      normalize_vector(queries_.back().vector);
    }
    if (is_answerable()) answer();
  }

  /// Throws Error unless the index was made with this model and this feature.
  void check_model(const Model& model, const std::string& features) {
    feature_.emplace(features, model);
    contents_.facts.model.check_same(index_model(options_.common, model, *feature_),
                                     options_.folder.string());
  }

  /// The mean of some of the queries, after an interrupt, is no answer.
  bool is_answerable() const { return options_.each || !interrupted(); }

  /// Prints what is found for the queries.
  void answer() {
    if (queries_.size() > 1 && !options_.each)
      queries_ = {index_ ? mean_of(queries_) : all_vectors_of(queries_)};
    std::string out = options_.format == PrintFormat::csv ? "query,rank,file,score\n" : "";
    HtmlPage page{.title = "vit search", .facts = {}, .sections = {}};
    const std::vector<std::vector<Hit>> found = find();
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      const Query& query = queries_[i];
      const std::vector<Hit>& hits = found[i];
      out += options_.format == PrintFormat::json  ? as_json(query, hits, contents_.files)
             : options_.format == PrintFormat::csv ? as_csv(query, hits, contents_.files)
                                                   : as_text(query, hits, contents_.files);
      if (!options_.html.empty())
        page.sections.push_back(page_section(query, !options_.queries.empty(), hits, contents_.files));
    }
    print_result(out);
    if (options_.html.empty()) return;
    page.facts.push_back(count_of(contents_.files.size(), "image") + " in " + options_.folder.string());
    write_run_page(options_.html, std::move(page), {}, options_.common);
  }

  SearchOptions options_;  // those that are not given are the index's
  const IndexContents contents_;
  std::optional<IndexSearch> index_;  // of images
  std::vector<Query> queries_;
};

int search(const SearchOptions& options) {
  if (options.queries.empty() && !options.texts.are_given())
    fail_usage("a query is required: an image, or --text \"WORDS\"");
  if (!options.queries.empty() && options.texts.are_given())
    fail_usage("QUERY and --text: give only one of them");
  return Search(options).run();
}

}  // namespace

Command search_command() {
  const auto options = std::make_shared<SearchOptions>();
  Command command{
      .name = "search",
      .summary = "Find the images of an index that are most similar to others, or to texts",
      .footer = kFooter,
      .options = {{.name = "FOLDER",
                   .type_name = "",
                   .help = "Index from vit index",
                   .target = text_target(options->folder),
                   .is_required = true},
                  {.name = "QUERY",
                   .type_name = "",
                   .help = "Images, folders, .npy files, or - for paths on standard input",
                   .target = list_target(options->queries, [](const std::string& query) { return query; }),
                   .occurs = Occurs::all_positionals},
                  {.name = "--top",
                   .type_name = "K",
                   .help = "Results for each query, best first",
                   .target = integer_target(options->top, std::size_t{1}, kMaxTop)},
                  {.name = "--format",
                   .type_name = "FORMAT",
                   .help = "text, json (one object per line) or csv",
                   .target = choice_target(options->format, kPrintFormats)},
                  {.name = "--each",
                   .type_name = "",
                   .help = "Search for each query separately instead of their mean",
                   .flag = &options->each},
                  {.name = "--parameters",
                   .type_name = "LIST",
                   .help = "Search parameters by their FAISS names: nprobe=32, efSearch=64",
                   .target = text_target(options->parameters)},
                  trust_option(options->trusts_index),
                  html_option(options->html)},
      .run = [options] { return search(*options); }};
  add_text_options(command.options, options->texts);
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
