#include "apps/vit/rings/serve/work/served_model.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/io/json.h"
#include "vit/text/clean.h"
#include "vit/text/unicode.h"
#include "vit/zero_shot.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptClasses = 16;

/// Both towers where there are two and a tokenizer is found. Texts of a model of prompts are its own.
ServedTowers load_towers(const CommonOptions& common) {
  if (auto prompts = open_prompts(common)) {
    const std::shared_ptr<const Model> image = prompts->image();
    return {.image = image,
            .text = nullptr,
            .prompts = std::move(prompts),
            .pages = nullptr,
            .no_texts = "this model takes texts as the classes of /v1/segment and /v1/detect"};
  }
  if (auto pages = open_page_vectors(common)) {
    const std::shared_ptr<const Model> image = pages->image();
    return {.image = image,
            .text = nullptr,
            .prompts = nullptr,
            .pages = std::make_shared<SharedPages>(std::move(pages)),
            .no_texts = "this model takes texts as the query of /v1/rerank"};
  }
  const fs::path path = model_path(common);
  const TextOptions options = text_options(common);
  const std::optional<TextDescription> found =
      Checkpoint(path, {.architecture = options.architecture, .prefix = common.model_options.prefix})
          .describe_text(options);
  const std::string no_texts = !found ? "this model has no text tower" : found->tokenizer_missing;
  if (!no_texts.empty())
    return {.image = Model::load(path, common.model_options),
            .text = {},
            .prompts = {},
            .pages = {},
            .no_texts = no_texts};
  const ImageAndText both = ImageAndText::load(path, common.model_options, options);
  return {.image = both.image, .text = both.text, .prompts = {}, .pages = {}, .no_texts = {}};
}

/// Towers in memory, by their files and how they were loaded: the same ones are loaded once.
struct KeptTowers {
  std::weak_ptr<const Model> image;
  std::weak_ptr<const TextTower> text;
  std::weak_ptr<LoadedPrompts> prompts;
  std::weak_ptr<SharedPages> pages;
  std::string no_texts;
};
std::map<std::string, KeptTowers>& kept_towers() {
  static std::map<std::string, KeptTowers> kept;
  return kept;
}

/// What decides about the weights of a model in memory.
std::string towers_key(const CommonOptions& common) {
  std::error_code error;
  const fs::path path = model_path(common), canonical = fs::weakly_canonical(path, error);
  const ModelOptions& options = common.model_options;
  std::string out = (error ? path : canonical).string() + "\n" + to_string(options.precision) +
                    (options.channels == ChannelOrder::bgr ? "\nbgr" : "\nrgb");
  for (const auto& [name, values] : common.given) {
    out += "\n" + name;
    for (const std::string& value : values) out += "\n\t" + value;
  }
  if (options.square_pad_color) {
    for (const unsigned char part : *options.square_pad_color) out += vit::text("\n", int{part});
  }
  return out;
}

/// Those that are in memory already, or loaded ones.
ServedTowers share_towers(const CommonOptions& common) {
  KeptTowers& kept = kept_towers()[towers_key(common)];
  ServedTowers out{.image = kept.image.lock(),
                   .text = kept.text.lock(),
                   .prompts = kept.prompts.lock(),
                   .pages = kept.pages.lock(),
                   .no_texts = kept.no_texts};
  if (out.image && (out.text || !out.no_texts.empty())) return out;
  out = load_towers(common);
  kept = {.image = out.image,
          .text = out.text,
          .prompts = out.prompts,
          .pages = out.pages,
          .no_texts = out.no_texts};
  return out;
}

std::size_t bytes_per_weight(Precision precision) {
  return precision == Precision::float32 ? 4 : precision == Precision::bfloat16 ? 2 : 1;
}

std::size_t bytes_of_weights(const LoadReport& report, Precision precision) {
  return bytes_per_weight(precision) * report.num_parameters;
}

/// Lengths that a model was trained to be cut to, as its publisher's config.json lists them.
std::vector<std::size_t> listed_dimensions(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  std::error_code error;
  std::vector<std::size_t> out;
  if (!fs::is_regular_file(file, error)) return out;
  const internal::Json config = internal::load_json(file);
  if (!config.is_object()) return out;
  const std::optional<internal::Json> list = config.find("matryoshka_dimensions");
  for (std::size_t i = 0; list && list->is_array() && i < list->size(); ++i) {
    if ((*list)[i].is_number()) out.push_back((*list)[i].as_size({.min = 1, .max = 65536}));
  }
  return out;
}

}  // namespace

LoadedModel::LoadedModel(const CommonOptions& common)
    : common_(common),
      towers_(share_towers(common)),
      session_(towers_.image, common.session),
      worker_sessions_(static_cast<std::size_t>(internal::resolve_threads(common.session.threads))) {
  if (towers_.text) encoder_.emplace(towers_.text, TextEncoderOptions{.threads = common.session.threads});
}

std::map<const void*, std::size_t> LoadedModel::parts() const {
  std::map<const void*, std::size_t> out;
  out[towers_.image.get()] = bytes_of_weights(towers_.image->report(), towers_.image->precision());
  if (towers_.text)
    out[towers_.text.get()] = bytes_of_weights(towers_.text->report(), towers_.text->precision());
  if (towers_.prompts)
    out[towers_.prompts.get()] =
        bytes_per_weight(towers_.image->precision()) * towers_.prompts->num_parameters();
  if (towers_.pages)
    out[towers_.pages.get()] =
        bytes_per_weight(towers_.image->precision()) * towers_.pages->vectors->num_parameters();
  std::size_t& working = out[this];
  working = session_.workspace_bytes();
  for (const std::optional<Session>& session : worker_sessions_)
    working += session ? session->workspace_bytes() : 0;
  return out;
}

Session& LoadedModel::session_of(std::size_t worker) {
  std::optional<Session>& session = worker_sessions_[worker];
  if (!session) {
    SessionOptions options = common_.session;
    options.threads = 1;
    session.emplace(towers_.image, options);
  }
  return *session;
}

ModelFacts LoadedModel::facts() const {
  const Model& model = *towers_.image;
  const ModelConfig& config = model.config();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const DenseConfig* const dense = model.dense_config();
  ModelFacts out{.config = std::make_shared<const ModelConfig>(config),
                 .dense = dense != nullptr ? std::optional(*dense) : std::nullopt,
                 .embedding_dim = config.projection_dim(),
                 .dimensions = listed_dimensions(model_path(common_)),
                 .labels = {},
                 .no_texts = towers_.no_texts,
                 .no_images = {},
                 .takes_phrases = prompts() != nullptr && prompts()->takes(PromptUse::phrases),
                 .takes_objects = prompts() != nullptr && prompts()->takes(PromptUse::objects),
                 .page_dim = pages() != nullptr ? pages()->vectors->dim() : 0,
                 .run = {},
                 .loaded_at = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
  if (config.projection_dim() == 0 && config.head.pooling != Pooling::none) {
    // as long as the vector is: two tokens side by side, a pooler
    out.embedding_dim = config.pooled_dim();
  }
  const std::string feature = config.projection_dim() > 0 ? "projected" : "pooled";
  out.run = run_model(common_, model, std::span(&feature, 1));
  if (config.has_classes()) {
    const Labels labels(config, {});
    for (std::size_t i = 0; i < config.head.num_classes; ++i) out.labels.push_back(labels.name(i));
  }
  if (towers_.text && towers_.text->config().score) out.score_kind = towers_.text->config().score->kind;
  if (!model.has_preprocess_config()) {
    try {
      model.require_preprocess_config();
    } catch (const Error& error) {
      out.no_images = error.message();
    }
  }
  return out;
}

TokenRow LoadedModel::tokens(const std::string& text, TextRules rules) {
  const TextTower& tower = *towers_.text;
  if (rules == TextRules::checkpoint) return tower.tokenize(text);
  // immich runs the tokenizers library over text that is cleaned in its own way
  const bool canonicalizes = tower.tokenizer().cleaning().find("canonicalize") != std::string::npos;
  const std::string cleaned = clean_as_immich(text, canonicalizes);
  if (tower.tokenizer().library() == TextLibrary::transformers) return tower.tokenize(cleaned);
  if (!immich_tokenizer_) {
    immich_tokenizer_ = Tokenizer::load_for_model(
        model_path(common_), common_.tokenizer,
        {.library = TextLibrary::transformers, .vocabulary_size = tower.config().vocabulary_size});
  }
  return immich_tokenizer_->encode(cleaned, tower.config().context_length);
}

std::shared_ptr<const EncodedClasses> LoadedModel::with_classifier(const EncodedClasses& encoded) const {
  const std::optional<TextScore>& score = towers_.text->config().score;
  VIT_CHECK(
      score, (Where{"classes", ErrorKind::unsupported}),
      "the model has only a text tower, without the scale for comparing its vectors with those of images");
  const auto copy = [&] {
    ClassVectors out{.names = encoded.vectors.names,
                     .vectors = Tensor<float>(encoded.vectors.vectors.shape())};
    std::ranges::copy(encoded.vectors.vectors.flat(), out.vectors.data());
    return out;
  };
  return std::make_shared<const EncodedClasses>(
      EncodedClasses{.vectors = copy(), .classifier = Classifier::of_texts(towers_.image, copy(), *score)});
}

std::shared_ptr<const EncodedClasses> LoadedModel::encode_classes(const ClassTexts& texts,
                                                                  ClassProgress& progress,
                                                                  std::size_t max_texts,
                                                                  bool needs_classifier) {
  const auto same = [&](const KeptClasses& kept) { return kept.first == texts; };
  const auto found = std::ranges::find_if(classes_, same);
  if (found != classes_.end()) {
    std::rotate(classes_.begin(), found, found + 1);
  } else {
    const std::size_t num_templates = texts.templates.size(), first = progress.num_labels;
    const std::size_t count =
        std::min(std::max<std::size_t>(max_texts / num_templates, 1), texts.names.size() - first);
    const auto begin = texts.names.begin() + static_cast<std::ptrdiff_t>(first);
    const ClassVectors part =
        vit::encode_classes(*encoder_, {begin, begin + static_cast<std::ptrdiff_t>(count)}, texts.templates);
    progress.num_labels += count;
    progress.num_texts += count * num_templates;
    const std::span<const float> numbers = part.vectors.flat();
    progress.vectors.insert(progress.vectors.end(), numbers.begin(), numbers.end());
    if (progress.num_labels < texts.names.size()) return nullptr;

    ClassVectors all{.names = texts.names,
                     .vectors = Tensor<float>(Shape{texts.names.size(), part.vectors.dim(1)})};
    std::ranges::copy(progress.vectors, all.vectors.data());
    classes_.emplace_front(texts, std::make_shared<const EncodedClasses>(
                                      EncodedClasses{.vectors = std::move(all), .classifier = std::nullopt}));
    if (classes_.size() > kKeptClasses) classes_.pop_back();
  }
  std::shared_ptr<const EncodedClasses>& encoded = classes_.front().second;
  if (needs_classifier && !encoded->classifier) encoded = with_classifier(*encoded);
  return encoded;
}

ServedModel::ServedModel(std::string name, CommonOptions common)
    : name_(std::move(name)), common_(std::move(common)) {
  const fs::path given = common_.model;
  if (given.empty()) return;
  if (AnomalyBank::is_bank(given)) {
    common_.model.clear();
    bank_ = std::make_shared<const AnomalyBank>(given, common_);
  } else if (ImageIndex::is_index(given)) {
    common_.model.clear();
    index_ = std::make_shared<const ImageIndex>(given);
    take_record(index_->model(), given.string(), common_);
  }
}

LoadedModel& ServedModel::load() {
  if (!loaded_) {
    auto loaded = std::make_unique<LoadedModel>(common_);
    if (facts_->all.empty()) {
      ModelFacts facts = loaded->facts();
      if (index_) index_->model().check_same(facts.run, "--model " + name_);
      facts_->add(std::move(facts));
    }
    const std::string& before = facts().run.fingerprint;
    const std::string now = loaded->session().model().report().fingerprint;
    VIT_CHECK(now == before, (Where{"serve", ErrorKind::io}), "the model '", name_,
              "' is another one than when the server started (fingerprint ", now, " instead of ", before,
              "): start the server again");
    loaded_ = std::move(loaded);
  }
  return *loaded_;
}

void forget_shared_towers() {
  kept_towers().clear();
}

void ServedModel::reload() {
  auto loaded = std::make_unique<LoadedModel>(common_);
  ModelFacts facts = loaded->facts();
  VIT_CHECK(facts.run.settings == this->facts().run.settings, (Where{"serve", ErrorKind::mismatch}),
            "its configuration or its preprocessing is another one than when the server started: start the "
            "server again");
  facts_->add(std::move(facts));
  loaded_ = std::move(loaded);
}

std::size_t ServedModel::images_per_task(std::size_t height, std::size_t width) const noexcept {
  try {
    return std::max<std::size_t>(loaded_->session().plan(1, height, width).images_per_task, 1);
  } catch (const std::exception&) {  // a size that the model does not take, which computing reports
    return 1;
  }
}

std::pair<std::string, std::string> parse_served_model(const std::string& value) {
  if (value.empty()) fail_usage("--model: is empty");
  std::error_code error;
  const std::size_t equals = value.find('=');
  if (equals != std::string::npos && !fs::exists(value, error)) {
    if (equals == 0 || equals + 1 == value.size())
      fail_usage("--model: expected [NAME=]PATH, found '", value, "'");
    return {value.substr(0, equals), value.substr(equals + 1)};
  }
  const fs::path path = fs::absolute(value, error).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();
  // models--OWNER--NAME/snapshots/COMMIT
  const fs::path snapshots = named.parent_path();
  const std::string repository = snapshots.parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (snapshots.filename() == "snapshots" && repository.starts_with(kPrefix)) {
    std::string name = repository.substr(kPrefix.size());
    if (const std::size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    return {name, value};
  }
  const bool is_file = fs::is_regular_file(named, error);
  return {(is_file ? named.stem() : named.filename()).string(), value};
}

std::string clean_as_immich(const std::string& text, bool canonicalize) {
  std::string cleaned = internal::join_words(text);
  if (!canonicalize) return cleaned;
  return internal::lower_text(internal::remove_punctuation(cleaned));
}

}  // namespace vit::app
