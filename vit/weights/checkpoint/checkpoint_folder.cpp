#include "vit/weights/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/find_family.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/checkpoint/fingerprint.h"
#include "vit/weights/checkpoint/layout_file.h"
#include "vit/weights/checkpoint/loading_steps.h"
#include "vit/weights/checkpoint/open_weights.h"
#include "vit/weights/checkpoint/tensor_matcher.h"
#include "vit/weights/families/dino_head.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace {

/// validate() for values read from `file`: messages name it, and the Error has the kind format.
template <typename... Values>
void validate_read(const std::string& file, const Values&... values) {
  try {
    validate(values...);
  } catch (const Error& error) {
    fail(Where(error.where(), ErrorKind::format), file, ": ", error.message());
  }
}

constexpr Where kWhere{"load_checkpoint", ErrorKind::io};
namespace fs = std::filesystem;

/// Notes on where in the file the model was found, and what else is there.
std::vector<std::string> place_notes(const FoundModel& found) {
  const auto quoted = [](const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& name : names) out.push_back(in_quotes(name));
    return listed(out);
  };
  std::vector<std::string> notes;
  if (!found.container.empty()) {
    notes.push_back("the weights are the member " + in_quotes(found.container) + " of the file" +
                    (found.passed_by.empty() ? "" : ", which also has " + quoted(found.passed_by)));
  }
  if (!found.others.empty()) {
    notes.push_back("the model is " + in_quotes(found.chosen) + "; the file also has " +
                    quoted(found.others) + ", selected by ModelOptions::prefix");
  }
  if (!found.head.empty()) notes.push_back("the classifier is " + in_quotes(found.head) + " of the file");
  return notes;
}

std::string most_common_dtype(const TensorFile& tensors) {
  std::map<std::string, std::size_t> counts;
  for (const TensorEntry& entry : tensors.entries()) counts[to_string(entry.dtype)] += entry.num_elements();
  const auto largest = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return largest == counts.end() ? "" : largest->first;
}

/// Messages for when parsed() finds nothing.
template <typename Config>
constexpr const char* kNoTower = ": has no such tower";
template <>
constexpr const char* kNoTower<PromptConfig> =
    ": has no detector of prompts; those of SAM 3 (model_type sam3 or sam3_video) have one";
template <>
constexpr const char* kNoTower<PageConfig> =
    ": has no encoder of pages; that of ColModernVBERT is implemented. Of ColPali and ColQwen2, whose "
    "encoders are decoders of language, the image tower runs: vit embed --features merged";
template <>
constexpr const char* kNoTower<TextConfig> =
    ": has no supported text tower; supported are those of CLIP, CLIPSeg, SigLIP, MetaCLIP 2, Chinese CLIP, "
    "AltCLIP, OWL-ViT, TIPSv2, Perception Encoder and dino.txt, in the files of transformers, OpenCLIP and "
    "the publishers; texts of ColModernVBERT are questions to pages (vit embed --features page; in C++ "
    "PageEncoder)";

/// Throws Error for an option of a dense head that has no effect on this one, whose files say it.
void check_dense_options(const DenseOptions& given, const DenseConfig& head,
                         const std::filesystem::path& path) {
  const auto refuse = [&](const char* option, const char* what) {
    fail(kWhere.with(ErrorKind::argument), path.string(), ": ModelOptions::dense.", option,
         " has no effect: this model ", what);
  };
  const auto has_taps = [&](const DenseBranch& branch) { return branch.taps == given.taps; };
  if (!given.taps.empty() && !std::ranges::all_of(head.branches, has_taps))
    refuse("taps", "says which blocks its head reads");
  const MapOutput* const depth = head.find(Output::depth);
  if (given.max_depth &&
      (depth == nullptr || depth->finish != MapFinish::sigmoid || depth->scale != *given.max_depth))
    refuse("max_depth", "says its largest depth, or has none");
  if (given.depth_range && (depth == nullptr || depth->lowest != given.depth_range->front() ||
                            depth->highest != given.depth_range->back()))
    refuse("depth_range", "has no bins of depths whose range is open");
  if (given.expert != 0 && head.find(Output::heatmaps) == nullptr) refuse("expert", "has no experts");
}

/// Sets the fields of a tower that depend on the values of tensors.
void finish(LoadedTower<ModelConfig>& checkpoint, const SourceFiles& files) {
  for (const std::string& sentence :
       contradicting_rope_tables(files.tensors, checkpoint.config, checkpoint.report))
    checkpoint.report.notes.push_back(kContradiction + sentence);
  checkpoint.report.fingerprint = fingerprint(checkpoint.config, checkpoint.report, files.tensors);
}

template <typename Config>
void finish(LoadedTower<Config>& checkpoint, const SourceFiles& files) {
  checkpoint.report.fingerprint = fingerprint(checkpoint.report, files.tensors);
}

/// exp(logit_scale) and logit_bias.
void finish(LoadedTower<TextConfig>& checkpoint, const SourceFiles& files) {
  checkpoint.report.fingerprint = fingerprint(checkpoint.report, files.tensors);
  if (!checkpoint.config.score) return;
  const double scale = std::exp(double{checkpoint.weights.logit_scale.load().data()[0]});
  const double bias = double{checkpoint.weights.logit_bias.load().data()[0]};
  VIT_CHECK(std::isfinite(scale) && scale > 0.0 && scale < 1e30 && std::isfinite(bias),
            kWhere.with(ErrorKind::format), files.weights_name,
            ": logit_scale and logit_bias must be finite, found exp ", scale, " and ", bias);
  checkpoint.config.score->scale = static_cast<float>(scale);
  checkpoint.config.score->bias = static_cast<float>(bias);
}

}  // namespace

CheckpointFolder::CheckpointFolder(const fs::path& path, ModelOptions options)
    : options_(std::move(options)), files_(find_checkpoint(path, options_.adapter)) {
  options_.adapter = files_.adapter;
  if (!options_.layout.empty()) layout_ = load_layout(options_.layout);
}

CheckpointFolder::CheckpointFolder(std::span<const std::byte> weights,
                                   const std::map<std::string, std::string>& files, ModelOptions options)
    : options_(std::move(options)),
      files_{.path = "(memory)/model.safetensors",
             .folder = "(memory)",
             .adapter = {},
             .set = WeightSet::one,
             .weights = {"(memory)/model.safetensors"}},
      memory_(weights) {
  VIT_CHECK(!weights.empty(), kWhere.with(ErrorKind::argument), "no bytes of weights");
  VIT_CHECK(options_.dense.head.empty(), kWhere.with(ErrorKind::unsupported),
            "a dense head cannot be added to a model in memory");
  if (!options_.layout.empty()) layout_ = load_layout(options_.layout);
  for (const auto& [name, content] : files) {
    Json value = parse_json(content, (files_.folder / name).string(), {.accepts_nonfinite = true});
    value.expect(Json::Kind::object);
    json_.emplace(name, std::move(value));
  }
}

// -------------------------------------------------------------------------------------- configuration files

const std::optional<Json>& CheckpointFolder::json(const char* name) const {
  if (const auto known = json_.find(name); known != json_.end()) return known->second;
  std::optional<Json> value;
  if (has_file(name)) value = load_json(files_.folder / name, {.accepts_nonfinite = true});
  if (value) value->expect(Json::Kind::object);
  return json_.emplace(name, std::move(value)).first->second;
}

bool CheckpointFolder::has_file(const char* name) const {
  if (!memory_.empty()) return json_.contains(name) && json_.at(name).has_value();
  return fs::exists(load_status(files_.folder / name, kWhere));
}

/// open_clip_config.json describes the weights if their names are OpenCLIP's, or if
/// there is no config.json. Repositories often contain the same model for several libraries.
bool CheckpointFolder::uses_open_clip_config() const {
  if (!has_file("open_clip_config.json")) return false;
  if (!has_file("config.json")) return true;
  return files_.has_open_clip_name();
}

std::optional<Json> CheckpointFolder::config_of(const ModelConfig*) const {
  if (layout_) return layout_;
  if (uses_open_clip_config())
    return options_.architecture.empty() ? json("open_clip_config.json") : std::nullopt;
  // a bare file next to its config is as good as the folder, unless the caller gives the architecture
  if (memory_.empty() && !files_.is_folder() && !options_.architecture.empty()) return std::nullopt;
  return encoder_config();
}

/// Of models that transformers composes of any two, the configuration of the image encoder.
std::optional<Json> CheckpointFolder::encoder_config() const {
  const std::optional<Json>& whole = own_config();
  const std::string type = whole ? whole->find_string("model_type").value_or("") : "";
  const char* const key = type == "vision-encoder-decoder"     ? "encoder"
                          : type == "vision-text-dual-encoder" ? "vision_config"
                                                               : nullptr;
  if (key == nullptr) return whole;
  const auto nested = whole->find(key);
  return nested && nested->is_object() ? nested : whole;
}

const std::optional<Json>& CheckpointFolder::own_config() const {
  const bool is_mistral = files_.weights.size() == 1 &&
                          files_.weights.front().filename().string().starts_with("consolidated") &&
                          json("params.json");
  return is_mistral || !json("config.json") ? json("params.json") : json("config.json");
}

std::optional<Json> CheckpointFolder::config_of(const TextConfig*) const {
  return json(uses_open_clip_config() ? "open_clip_config.json" : "config.json");
}

// --------------------------------------------------------------------------------------------------- towers

std::optional<ParsedModel> CheckpointFolder::parse(SourceFiles& files, const ModelConfig*) const {
  const std::string quantization = describe_quantization(files.tensors, files.config);
  VIT_CHECK(quantization.empty(), kWhere.with(ErrorKind::unsupported), files.weights_name, ": ",
            quantization);
  ParsedModel parsed = layout_ ? read_by_layout(files, *layout_) : parse_by_family(files);
  if (!options_.dense.head.empty()) {
    VIT_CHECK(!parsed.dense, kWhere.with(ErrorKind::mismatch), path().string(),
              ": already has a dense head; none can be added: ", options_.dense.head.string());
    join_dino_head(files, parsed);
  }
  if (parsed.dense) check_dense_options(options_.dense, parsed.dense->config, path());
  VIT_CHECK(options_.clip_frames == 0 || parsed.config.has_clips(), kWhere.with(ErrorKind::argument),
            path().string(),
            ": this model takes images and no clips; Qwen-VL, GLM-4V and V-JEPA 2 take some");
  if (parsed.config.head.num_classes != 0) read_class_rules(files, files_.folder, parsed);
  if (options_.rope_scaling) parsed.config.position.rope_scaling = options_.rope_scaling;
  return parsed;
}

std::optional<ParsedText> CheckpointFolder::parse(SourceFiles& files, const TextConfig*) const {
  if (layout_ || !files.has_weights) return std::nullopt;
  for (const TextFamily* family : text_families()) {
    if (std::optional<ParsedText> parsed = family->read(files)) return parsed;
  }
  return std::nullopt;
}

std::optional<Json> CheckpointFolder::config_of(const PromptConfig*) const {
  return layout_ ? std::nullopt : json("config.json");
}

std::optional<ParsedPrompts> CheckpointFolder::parse(SourceFiles& files, const PromptConfig*) const {
  return files.has_weights ? read_prompt_detector(files) : std::nullopt;
}

std::optional<Json> CheckpointFolder::config_of(const PageConfig*) const {
  return layout_ ? std::nullopt : json("config.json");
}

std::optional<ParsedPage> CheckpointFolder::parse(SourceFiles& files, const PageConfig*) const {
  return files.has_weights ? read_page_encoder(files) : std::nullopt;
}

SourceFiles CheckpointFolder::source_files(std::optional<Json> config) const {
  const TensorFile& model = *tensors();  // finds the root
  return {.tensors = model,
          .options = options_,
          .config = std::move(config),
          .weights_name = files_.weights_name(),
          .has_weights = files_.has_weights(),
          .root = root_,
          .in_training_file = in_training_file_};
}

template <typename Config>
const std::optional<ParsedCheckpoint<Config>>& CheckpointFolder::parsed() const {
  auto& tower = std::get<Tower<Config>>(towers_);
  if (tower.files != nullptr) return tower.parsed;
  constexpr const Config* kind = nullptr;
  SourceFiles files = source_files(config_of(kind));
  tower.parsed = naming_layout(*tensors_, [&] { return parse(files, kind); });
  if (tower.parsed) validate_read(files.config_name(), tower.parsed->config);
  tower.files = std::make_shared<const SourceFiles>(std::move(files));
  return tower.parsed;
}

TensorFile CheckpointFolder::open_files() const {
  if (!memory_.empty()) return open_weights(memory_, path());
  if (!files_.has_weights()) return TensorFile({.path = path()});
  if (files_.set != WeightSet::one) return open_together(files_.weights, path());
  const fs::path& file = files_.weights.front();
  if (!options_.dense.head.empty()) return open_with_head(file, options_.dense.head);
  const bool only_tower = is_whole_model_of_language() && !is_page_model(*own_config());
  return open_weights(file, only_tower ? is_tower_name : nullptr);
}

bool CheckpointFolder::is_whole_model_of_language() const {
  if (!options_.architecture.empty()) return false;  // the architecture was given
  const auto& config = own_config();
  return config && !layout_ && is_whole_model(*config);
}

const std::shared_ptr<const TensorFile>& CheckpointFolder::tensors() const {
  if (tensors_) return tensors_;
  // The names of a whole model are its family's: tensors next to the tower belong to it.
  const bool has_own_type = !layout_ && options_.architecture.empty();
  FoundModel found =
      is_whole_model_of_language()
          ? FoundModel{.tensors = open_files(), .place = {}}
          : find_model(open_files(), options_.prefix, layout_ ? layout_names(*layout_) : OwnNames(),
                       has_own_type ? unknown_model_type(encoder_config()) : std::string());
  if (found.place) root_ = found.place->root;
  in_training_file_ = found.has_neighbors;
  found_ = place_notes(found);
  if (!files_.adapter.empty()) found.tensors = join_adapter(found.tensors, root_, files_.adapter, found_);
  tensors_ = std::make_shared<const TensorFile>(std::move(found.tensors));
  return tensors_;
}

void CheckpointFolder::fill_report(const std::vector<std::string>& notes, LoadReport& report) const {
  report.path = path();
  for (const TensorEntry& entry : tensors_->entries()) {
    if (entry.file == nullptr) continue;  // in memory
    const fs::path& file = entry.file->path();
    if (std::ranges::find(report.files, file) == report.files.end()) report.files.push_back(file);
  }
  report.stored_dtype = most_common_dtype(*tensors_);
  report.notes = notes;
  report.notes.insert(report.notes.end(), found_.begin(), found_.end());
}

template <typename Config>
LoadedTower<Config> CheckpointFolder::load() const {
  files_.require_weights();
  const auto& tower = std::get<Tower<Config>>(towers_);
  const std::optional<ParsedCheckpoint<Config>>& found = parsed<Config>();
  VIT_CHECK(found, kWhere.with(ErrorKind::unsupported), path().string(), kNoTower<Config>);
  LoadedTower<Config> checkpoint{.config = found->config, .weights = {}, .report = {}};
  naming_layout(*tensors_, [&] {
    TensorMatcher matcher(*tower.files, *found, tensors_);
    checkpoint.weights = matcher.match(found->config);
    if constexpr (std::is_same_v<Config, ModelConfig>) {
      if (found->dense) {
        validate_read(tower.files->config_name(), found->dense->config, found->config.encoder.depth);
        checkpoint.dense = DenseCheckpoint{.config = found->dense->config,
                                           .weights = matcher.match(*found->dense, found->config.embed_dim)};
      }
    }
    matcher.finish(checkpoint.report);
  });
  fill_report(found->notes, checkpoint.report);
  finish(checkpoint, *tower.files);
  return checkpoint;
}

template const std::optional<ParsedModel>& CheckpointFolder::parsed() const;
template const std::optional<ParsedText>& CheckpointFolder::parsed() const;
template const std::optional<ParsedPrompts>& CheckpointFolder::parsed() const;
template const std::optional<ParsedPage>& CheckpointFolder::parsed() const;
template LoadedTower<ModelConfig> CheckpointFolder::load() const;
template LoadedTower<TextConfig> CheckpointFolder::load() const;
template LoadedTower<PromptConfig> CheckpointFolder::load() const;
template LoadedTower<PageConfig> CheckpointFolder::load() const;

}  // namespace vit::internal
