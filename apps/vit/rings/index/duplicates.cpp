// vit duplicates: groups of similar images. Deletes nothing.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/index/index_run.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/activations.h"
#include "vit/layers/linear.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

constexpr std::size_t kBlock = 1024;  // a block of cosines is 4 MB

// Cosines this close to the threshold are recomputed in double. A float32 sum of d products of vectors
// of length 1 has an error below sqrt(d) 2^-24, which is 1e-5 for d = 30,000.
constexpr double kBand = 1e-5;

/// Disjoint sets; the smallest member represents a set.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax({find(a), find(b)});  // by value
    parent_[high] = low;
  }

 private:
  std::vector<std::size_t> parent_;
};

std::vector<std::vector<std::size_t>> connected_components(TensorView<const float> vectors, double threshold,
                                                           int threads) {
  const std::size_t count = vectors.num_rows(), dim = vectors.num_columns();
  const internal::kernels::Arithmetic& arithmetic = *internal::kernels::default_kernels().float32;
  internal::Activations activations;
  activations.reserve(
      {.num_tokens = kBlock, .embed_dim = dim, .attention_dim = dim, .hidden_dim = dim, .threads = threads},
      arithmetic);
  const internal::Pass pass{.activations = activations, .threads = threads};
  Tensor<float> cosines(Shape{kBlock, kBlock});
  DisjointSets sets(count);
  for (std::size_t column = 0; column < count; column += kBlock) {
    const std::size_t columns = std::min(kBlock, count - column);
    const internal::Linear block(vectors.part(column, columns), {}, *arithmetic.linear);
    for (std::size_t row = 0; row <= column; row += kBlock) {
      const std::size_t rows = std::min(kBlock, count - row);
      const TensorView<float> out(cosines.data(), Shape{rows, columns});
      block.forward(vectors.part(row, rows), out, pass);
      for (std::size_t i = 0; i < rows; ++i) {
        const float* const found = out.row(i);
        for (std::size_t j = row == column ? i + 1 : 0; j < columns; ++j) {
          const auto cosine = static_cast<double>(found[j]);
          if (cosine < threshold - kBand) continue;
          const std::size_t a = row + i, b = column + j;
          if (cosine < threshold + kBand &&
              cosine_similarity({vectors.row(a), dim}, {vectors.row(b), dim}) < threshold &&
              !std::equal(vectors.row(a), vectors.row(a) + dim, vectors.row(b)))
            continue;
          sets.join(a, b);
        }
      }
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < count; ++i) members[sets.find(i)].push_back(i);
  std::vector<std::vector<std::size_t>> out;
  for (auto& [first, group] : members) {
    if (group.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

constexpr const char* kFooter =
    "A group is a connected component of the pairs whose cosine is at least --threshold. The file of the "
    "best resolution comes first; scores are the cosines with it, which chains of pairs may bring below the "
    "threshold.\n"
    "Nothing is deleted.\n"
    "Examples:\n"
    "  vit duplicates photos.index\n"
    "  vit duplicates photos/ --threshold 0.98 --format json";

struct DuplicatesOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::string features;
  double threshold = 0.95;
  PrintFormat format = PrintFormat::text;
  bool trusts_index = false;
  std::filesystem::path html;
};

/// Files and their vectors.
struct Collection {
  std::vector<IndexedFile> files;  // n
  Tensor<float> numbers;           // (n, C), perhaps with room after them

  TensorView<const float> vectors() const { return numbers.view().part(0, files.size()); }
};

struct Group {
  std::vector<const IndexedFile*> files;  // best resolution first
  std::vector<float> scores;              // cosines with the first
};

Group group_of(const Collection& collection, std::vector<std::size_t> members) {
  const auto pixels = [&](std::size_t i) { return collection.files[i].width * collection.files[i].height; };
  std::ranges::stable_sort(members, [&](std::size_t a, std::size_t b) { return pixels(a) > pixels(b); });
  const TensorView<const float> vectors = collection.vectors();
  Group group;
  for (const std::size_t i : members) {
    group.files.push_back(&collection.files[i]);
    group.scores.push_back(static_cast<float>(cosine_similarity(
        {vectors.row(members.front()), vectors.num_columns()}, {vectors.row(i), vectors.num_columns()})));
  }
  return group;
}

std::string as_text(const Group& group, std::size_t number) {
  std::string out = text("group ", number, ": ", group.files.size(), " files\n");
  for (std::size_t i = 0; i < group.files.size(); ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "  %7.4f  %5zu x %-5zu  ", static_cast<double>(group.scores[i]),
                  group.files[i]->width, group.files[i]->height);
    out += line + printable(group.files[i]->file) + "\n";
  }
  return out;
}

std::string as_json(const Group& group, std::size_t number) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("group", number).key("files").begin_array();
  for (const auto& file : group.files) json.value(file->file);
  json.end_array().array("scores", group.scores).end_object();
  return out + "\n";
}

PageSection page_section(const Group& group, std::size_t number) {
  PageSection section{.title = text("Group ", number),
                      .note = count_of(group.files.size(), "image"),
                      .leads = {},
                      .items = {}};
  for (std::size_t i = 0; i < group.files.size(); ++i) {
    PageItem& item = section.items.emplace_back(named_item(group.files[i]->file));
    item.score = group.scores[i];
    item.note = text(group.files[i]->width, " x ", group.files[i]->height, i == 0 ? ", best resolution" : "");
  }
  return section;
}

/// Vectors of an index; normalized again if the index rounds them.
Collection read_collection(IndexContents contents) {
  Collection out{.files = {}, .numbers = contents.vectors.read_all()};
  for (std::size_t i = 0; i < contents.files.size(); ++i)
    normalize_vector({out.numbers.view().row(i), out.numbers.dim(1)});
  out.files = std::move(contents.files);
  return out;
}

/// Prints the groups of a collection.
void print_groups(const DuplicatesOptions& options, const CommonOptions& common,
                  const Collection& collection) {
  if (collection.files.empty()) return;
  HtmlPage page{.title = "vit duplicates", .facts = {}, .sections = {}};
  std::string out;
  std::size_t number = 0;
  for (std::vector<std::size_t>& members :
       connected_components(collection.vectors(), options.threshold, common.session.threads)) {
    const Group group = group_of(collection, std::move(members));
    out += options.format == PrintFormat::json ? as_json(group, number) : as_text(group, number);
    if (!options.html.empty()) page.sections.push_back(page_section(group, number));
    ++number;
  }
  if (number == 0 && options.format == PrintFormat::text)
    out = text("no groups among ", count_of(collection.files.size(), "image"), "\n");
  print_result(out);
  if (options.html.empty()) return;
  page.facts.push_back(
      text(count_of(number, "group"), " among ", count_of(collection.files.size(), "image")));
  write_run_page(options.html, std::move(page), {}, common);
}

/// Embeds the images whose groups are printed.
class Duplicates : public IndexWork {
 public:
  explicit Duplicates(const DuplicatesOptions& options) : options_(options) {}

  std::optional<Request> load(ImageRun& run) override {
    const ModelConfig& config = run.load()->config();
    feature_.emplace(options_.features, run.model());
    // of all inputs; memory that no vector is written to is not taken
    collection_.numbers = Tensor<float>(Shape{run.inputs().size(), feature_->dim(config)});
    return feature_->output;
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    print_groups(options_, options_.common, collection_);
    return 0;
  }

 private:
  void take(std::size_t, const IndexedFile& file, std::vector<float> vector) override {
    std::ranges::copy(vector, collection_.numbers.view().row(collection_.files.size()));
    collection_.files.push_back(file);
  }

  const DuplicatesOptions& options_;
  Collection collection_;
};

int duplicates_in_index(const DuplicatesOptions& options) {
  if (!options.html.empty()) check_output_place(options.html);
  IndexContents contents = read_index_folder(options.inputs.front(), index_trust(options.trusts_index));
  require_images(contents, options.inputs.front(), "vit duplicates");
  const std::filesystem::path folder = options.inputs.front();
  const IndexFacts facts = contents.facts;
  VIT_CHECK(options.features.empty() || options.features == facts.model.features,
            (Where{"duplicates", ErrorKind::mismatch}), folder.string(), ": made with --features ",
            printable(facts.model.features), ", but this run has --features ", options.features);
  CommonOptions common = options.common;
  take_record(facts.model, (folder / "index.json").string(), common);  // the model is shown on the page
  const Collection collection = read_collection(std::move(contents));
  confine_run(common, {}, files_of_index(common, options.inputs.front(), collection.files, options.html),
              {options.html});
  if (common.said.contains("--model")) {
    const std::shared_ptr<const Model> model = load_model(common);
    facts.model.check_same(index_model(common, *model, VectorFeature(facts.model.features, *model)),
                           folder.string());
  }
  print_groups(options, common, collection);
  return 0;
}

int duplicates(const DuplicatesOptions& options) {
  if (options.inputs.size() == 1 && is_index_folder(options.inputs.front()))
    return duplicates_in_index(options);
  Duplicates work(options);
  return run_images({.name = "duplicates",
                     .common = options.common,
                     .list = [&] { return list_once(options.inputs, std::cin); },
                     .files = {options.html}},
                    work);
}

}  // namespace

Command duplicates_command() {
  const auto options = std::make_shared<DuplicatesOptions>();
  Command command{
      .name = "duplicates",
      .summary = "Find groups of similar images; deletes nothing",
      .footer = kFooter,
      .options =
          {{.name = "INPUT",
            .type_name = "",
            .help = "An index from vit index, or images, folders, .npy files, - for paths on standard "
                    "input",
            .target = list_target(options->inputs, [](const std::string& input) { return input; }),
            .occurs = Occurs::all_positionals,
            .is_required = true},
           {.name = "--threshold",
            .type_name = "C",
            .help = "Smallest cosine of a pair, from -1 to 1",
            .target = parsed_target(
                options->threshold, [](const std::string& value) { return parse_real(value, -1, 1); },
                "0.95")},
           {.name = "--features",
            .type_name = "NAME",
            .help = "pooled, projected, cls or logits; default: projected if the model has it, else pooled",
            .target = offering(text_target(options->features), vector_names())},
           {.name = "--format",
            .type_name = "FORMAT",
            .help = "text or json (one group per line)",
            .target = choice_target(options->format, kPrintFormatsWithoutCsv)},
           trust_option(options->trusts_index),
           html_option(options->html)},
      .run = [options] { return duplicates(*options); }};
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
