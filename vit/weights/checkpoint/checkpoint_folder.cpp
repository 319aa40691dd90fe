#include "vit/weights/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <system_error>
#include <type_traits>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/foreign_files.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/checkpoint/adapter.h"
#include "vit/weights/checkpoint/class_rules.h"
#include "vit/weights/checkpoint/find_family.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/checkpoint/fingerprint.h"
#include "vit/weights/checkpoint/foreign_layouts.h"
#include "vit/weights/checkpoint/layout_file.h"
#include "vit/weights/checkpoint/open_weights.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/checkpoint/quantization.h"
#include "vit/weights/checkpoint/resolve_folder.h"
#include "vit/weights/checkpoint/stored_tables.h"
#include "vit/weights/checkpoint/tensor_matcher.h"
#include "vit/weights/families/dino_head.h"
#include "vit/weights/families/openai_clip.h"
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

std::size_t read_max_patches(const ModelOptions& options) {
  const std::string key(kMaxPatchesOverride);
  try {
    return parse_json(options.overrides.at(key), override_name(key)).as_size(kPatchesRange);
  } catch (const Error& error) {
    throw Error(error.where(), error.message());
  }
}

/// Messages for when parsed() finds nothing.
template <typename Config>
constexpr const char* kNoTower = ": has no such tower";
template <>
constexpr const char* kNoTower<PromptConfig> =
    ": has no detector of prompts; those of SAM 3 (model_type sam3 or sam3_video) have one";
template <>
constexpr const char* kNoTower<TextConfig> =
    ": has no supported text tower; supported are those of CLIP, SigLIP, MetaCLIP 2, TIPSv2, Perception "
    "Encoder "
    "and "
    "dino.txt, in the files of transformers, OpenCLIP and the publishers";

/// Sets the fields of a tower that depend on the values of tensors.
void finish(Checkpoint<ModelConfig>& checkpoint, const SourceFiles& files) {
  for (const std::string& sentence :
       contradicting_rope_tables(files.tensors, checkpoint.config, checkpoint.report))
    checkpoint.report.notes.push_back(kContradiction + sentence);
  checkpoint.report.fingerprint = fingerprint(checkpoint.config, checkpoint.report, files.tensors);
}

void finish(Checkpoint<PromptConfig>& checkpoint, const SourceFiles& files) {
  checkpoint.report.fingerprint = fingerprint(checkpoint.report, files.tensors);
}

/// exp(logit_scale) and logit_bias.
void finish(Checkpoint<TextConfig>& checkpoint, const SourceFiles& files) {
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

/// What a missing path may have been meant as.
std::string missing_model_hint(const std::string& path) {
  std::string hint = missing_hint(path);
  if (!hint.empty() || path.find('/') != path.npos) return hint;
  const std::string name = path.substr(0, path.find('.'));
  if (find_known_architecture(name) == nullptr) return "";
  const std::string tag = name == path ? ".TAG" : path.substr(name.size());
  return "; it is the name of an architecture of timm, whose weights are downloaded by: hf download timm/" +
         name + tag + " --local-dir " + name;
}

}  // namespace

CheckpointFolder::CheckpointFolder(const fs::path& path, ModelOptions options)
    : path_(resolve_checkpoint(path)), options_(std::move(options)) {
  VIT_CHECK(fs::exists(load_status(path, kWhere)), kWhere, "no such file or folder: ", path.string(),
            missing_model_hint(path.string()));
  if (is_adapter(path_)) {
    VIT_CHECK(options_.adapter.empty(), kWhere.with(ErrorKind::argument), path_.string(),
              ": is an adapter itself; give the folder of its base to ModelOptions::adapter");
    options_.adapter = path_;
    path_ = resolve_checkpoint(find_adapter_base(path_));
  }
  is_folder_ = fs::is_directory(load_status(path_, kWhere));
  folder_ = is_folder_ ? path_ : path_.parent_path();
  if (!options_.layout.empty()) layout_ = load_layout(options_.layout);
  candidates_ = is_folder_ ? find_weights(path_) : std::vector<fs::path>{path_};
  if (const std::vector<fs::path> pair = dinotxt_pair(candidates_); !pair.empty()) {
    candidates_ = pair;
    is_pair_ = true;
  }
  is_sharded_ = is_folder_ && !candidates_.empty() && !is_pair_ && are_all_shards(candidates_);
}

CheckpointFolder::CheckpointFolder(std::span<const std::byte> weights,
                                   const std::map<std::string, std::string>& files, ModelOptions options)
    : path_("(memory)/model.safetensors"),
      options_(std::move(options)),
      memory_(weights),
      is_folder_(true),
      folder_("(memory)"),
      candidates_{path_} {
  VIT_CHECK(!weights.empty(), kWhere.with(ErrorKind::argument), "no bytes of weights");
  VIT_CHECK(options_.dense.head.empty(), kWhere.with(ErrorKind::unsupported),
            "a dense head cannot be added to a model in memory");
  if (!options_.layout.empty()) layout_ = load_layout(options_.layout);
  for (const auto& [name, content] : files) {
    Json value = parse_json(content, (folder_ / name).string(), {.accepts_nonfinite = true});
    value.expect(Json::Kind::object);
    json_.emplace(name, std::move(value));
  }
}

std::vector<fs::path> CheckpointFolder::weight_files() const {
  if (!has_weights()) return {};
  if (candidates_.front().extension() != ".json") return candidates_;
  return list_weights(folder_.empty() ? fs::path(".") : folder_);
}

bool CheckpointFolder::has_weights() const {
  return candidates_.size() == 1 || is_pair_ || is_sharded_;
}

const std::optional<Json>& CheckpointFolder::json(const char* name) const {
  if (const auto known = json_.find(name); known != json_.end()) return known->second;
  std::optional<Json> value;
  if (has_file(name)) value = load_json(folder_ / name, {.accepts_nonfinite = true});
  if (value) value->expect(Json::Kind::object);
  return json_.emplace(name, std::move(value)).first->second;
}

bool CheckpointFolder::has_file(const char* name) const {
  if (!memory_.empty()) return json_.contains(name) && json_.at(name).has_value();
  return fs::exists(load_status(folder_ / name, kWhere));
}

/// open_clip_config.json describes the weights if their names are OpenCLIP's, or if
/// there is no config.json. Repositories often contain the same model for several libraries.
bool CheckpointFolder::uses_open_clip_config() const {
  if (!has_file("open_clip_config.json")) return false;
  if (!has_file("config.json")) return true;
  return candidates_.size() == 1 && is_open_clip_name(candidates_.front());
}

std::optional<Json> CheckpointFolder::config_of(const ModelConfig*) const {
  if (layout_) return layout_;
  if (uses_open_clip_config())
    return options_.architecture.empty() ? json("open_clip_config.json") : std::nullopt;
  // a bare file next to its config is as good as the folder, unless the caller gives the architecture
  if (!is_folder_ && !options_.architecture.empty()) return std::nullopt;
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

/// Mistral's own files are consolidated.safetensors and params.json, whatever lies next to them.
const std::optional<Json>& CheckpointFolder::own_config() const {
  const bool is_mistral = candidates_.size() == 1 &&
                          candidates_.front().filename().string().starts_with("consolidated") &&
                          json("params.json");
  return is_mistral || !json("config.json") ? json("params.json") : json("config.json");
}

std::optional<Json> CheckpointFolder::config_of(const TextConfig*) const {
  return json(uses_open_clip_config() ? "open_clip_config.json" : "config.json");
}

std::optional<ParsedModel> CheckpointFolder::parse(SourceFiles& files, const ModelConfig*) const {
  const std::string quantization = describe_quantization(files.tensors, files.config);
  VIT_CHECK(quantization.empty(), kWhere.with(ErrorKind::unsupported), files.weights_name, ": ",
            quantization);
  ParsedModel parsed = layout_ ? read_by_layout(files, *layout_) : parse_by_family(files);
  if (!options_.dense.head.empty()) {
    VIT_CHECK(!parsed.dense, kWhere.with(ErrorKind::mismatch), path_.string(),
              ": already has a dense head; none can be added: ", options_.dense.head.string());
    join_dino_head(files, parsed);
  }
  VIT_CHECK(options_.clip_frames == 0 || parsed.config.has_clips(), kWhere.with(ErrorKind::argument),
            path_.string(), ": this model takes images and no clips; Qwen-VL, GLM-4V and V-JEPA 2 take some");
  if (parsed.config.head.num_classes != 0) read_class_rules(files, folder_, parsed);
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

template <typename Config>
const std::optional<ParsedCheckpoint<Config>>& CheckpointFolder::parsed() const {
  auto& tower = std::get<Tower<Config>>(towers_);
  if (tower.files != nullptr) return tower.parsed;
  constexpr const Config* kind = nullptr;
  const TensorFile& model = *tensors();  // finds the root
  SourceFiles files{.tensors = model,
                    .options = options_,
                    .config = config_of(kind),
                    .weights_name = (candidates_.size() == 1 ? candidates_.front() : path_).string(),
                    .has_weights = has_weights(),
                    .root = root_,
                    .in_training_file = in_training_file_};
  tower.parsed = naming_layout(model, [&] { return parse(files, kind); });
  if (tower.parsed) validate_read(files.config_name(), tower.parsed->config);
  tower.files = std::make_shared<const SourceFiles>(std::move(files));
  return tower.parsed;
}

TensorFile CheckpointFolder::open_files() const {
  if (!memory_.empty()) return open_weights(memory_, path_);
  if (is_pair_) return open_together(candidates_, path_);
  if (is_sharded_) return open_together(candidates_, path_);
  if (!has_weights()) return TensorFile({.path = path_});
  if (!options_.dense.head.empty())
    return open_together({candidates_.front(), options_.dense.head}, candidates_.front());
  return open_weights(candidates_.front(), is_whole_model_of_language() ? is_tower_name : nullptr);
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
  in_training_file_ = !found.container.empty();
  found_ = place_notes(found);
  if (!options_.adapter.empty()) found.tensors = join_adapter(found.tensors, root_, options_.adapter, found_);
  tensors_ = std::make_shared<const TensorFile>(std::move(found.tensors));
  return tensors_;
}

void CheckpointFolder::check_weights() const {
  const std::string foreign = candidates_.empty() ? foreign_weights(path_) : "";
  VIT_CHECK(foreign.empty(), kWhere.with(ErrorKind::unsupported), path_.string(), ": ", foreign);
  VIT_CHECK(!candidates_.empty(), kWhere, path_.string(),
            " contains no weights: model.safetensors, model.safetensors.index.json, pytorch_model.bin or "
            "model.pth expected");
  VIT_CHECK(has_weights(), kWhere.with(ErrorKind::argument), path_.string(), " holds ", candidates_.size(),
            " weight files, none named model.safetensors; give one of them");
}

void CheckpointFolder::fill_report(const std::vector<std::string>& notes, LoadReport& report) const {
  report.path = path_;
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
Checkpoint<Config> CheckpointFolder::load() const {
  check_weights();
  const auto& tower = std::get<Tower<Config>>(towers_);
  const std::optional<ParsedCheckpoint<Config>>& found = parsed<Config>();
  VIT_CHECK(found, kWhere.with(ErrorKind::unsupported), path_.string(), kNoTower<Config>);
  Checkpoint<Config> checkpoint{.config = found->config, .weights = {}, .report = {}};
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
template Checkpoint<ModelConfig> CheckpointFolder::load() const;
template Checkpoint<TextConfig> CheckpointFolder::load() const;
template Checkpoint<PromptConfig> CheckpointFolder::load() const;

std::optional<PreprocessConfig> CheckpointFolder::preprocess_config() const {
  std::optional<PreprocessConfig> config = stored_preprocess_config();
  if (!config) return config;
  apply_choices(*config, options_);
  if (options_.overrides.contains(std::string(kMaxPatchesOverride)))
    set_max_patches(*config, read_max_patches(options_), model_config().patch.size);
  return config;
}

std::optional<PreprocessConfig> CheckpointFolder::stored_preprocess_config() const {
  if (layout_ && layout_->find("preprocess"))
    return read_layout_preprocess(*layout_, model_config(), options_);
  const bool is_chosen = !options_.architecture.empty() || !options_.dense.head.empty() ||
                         options_.dense.resize_rule != ResizeRuleChoice::automatic;
  if (!layout_ && !is_chosen && (json("preprocessor_config.json") || json("processor_config.json")))
    return own_preprocess_config();  // without reading the weights
  if (!layout_ && is_dense()) return dense_preprocess_config();
  if (options_.architecture.empty() || uses_open_clip_config()) return own_preprocess_config();
  return architecture_preprocess(model_config(), options_);
}

bool CheckpointFolder::is_dense() const {
  if (!options_.dense.head.empty()) return true;
  const TensorFile& model = *tensors();  // finds the root
  const SourceFiles files{.tensors = model,
                          .options = options_,
                          .config = config_of(static_cast<const ModelConfig*>(nullptr)),
                          .weights_name = (candidates_.size() == 1 ? candidates_.front() : path_).string(),
                          .has_weights = has_weights(),
                          .root = root_,
                          .in_training_file = in_training_file_};
  return std::ranges::any_of(families(),
                             [&](const Family* family) { return family->is_dense && family->match(files); });
}

std::optional<PreprocessConfig> CheckpointFolder::dense_preprocess_config() const {
  // that of the backbone is for features
  const bool has_file =
      options_.dense.head.empty() && (json("preprocessor_config.json") || json("processor_config.json"));
  std::optional<PreprocessConfig> own;
  if (has_file) own = own_preprocess_config();
  if (own && options_.dense.resize_rule == ResizeRuleChoice::automatic) return own;
  const std::optional<DenseReading>& dense = parsed<ModelConfig>()->dense;
  if (!dense || !dense->preprocess) return own;
  PreprocessConfig config = *dense->preprocess;
  if (own && own->resize != ResizeRule::none) {
    config.resize_height = own->resize_height;
    config.resize_width = own->resize_width;
  }
  if (options_.exif != ExifChoice::automatic) config.apply_orientation = options_.exif == ExifChoice::apply;
  return config;
}

std::optional<PreprocessConfig> CheckpointFolder::own_preprocess_config() const {
  if (uses_open_clip_config()) return read_open_clip_preprocess(*json("open_clip_config.json"), options_);
  std::string model_type;
  if (const auto& config = json("config.json")) {
    if (is_timm_config(*config)) return read_timm_preprocess(*config, options_);
    model_type = config->find_string("model_type").value_or("");
  }
  // of a whole processor; takes precedence over the older file, as in transformers
  const bool of_clips = options_.clip_frames > 0;
  if (const auto& processor = json("processor_config.json")) {
    if (const auto nested = processor->find(of_clips ? "video_processor" : "image_processor"))
      return read_hf_preprocess(*nested, model_type, options_);
  }
  const auto& videos = json("video_preprocessor_config.json");
  const auto& images = json("preprocessor_config.json");
  const auto& preprocessor = (of_clips && videos) || !images ? videos : images;
  if (!preprocessor) {
    if (const auto& config = own_config(); config && config->find("vision_encoder"))
      return read_mistral_preprocess(*config, options_);
    // OpenAI's own files are recognized by their tensors
    if (candidates_.size() != 1 || !is_openai_state(*tensors())) return std::nullopt;
    return architecture_preprocess(model_config(), options_);
  }
  return read_hf_preprocess(*preprocessor, model_type, options_);
}

PreprocessConfig load_preprocess_config(const fs::path& path, const ModelOptions& options) {
  std::optional<PreprocessConfig> config = CheckpointFolder(path, options).preprocess_config();
  if (!config) fail_without_preprocess_config(path);
  return *std::move(config);
}

void fail_without_preprocess_config(const fs::path& path) {
  fail(Where("load_preprocess_config", ErrorKind::io), path.string(),
       ": no file defines the preprocessing (config.json of timm, preprocessor_config.json or "
       "processor_config.json of Hugging Face, open_clip_config.json of OpenCLIP)");
}

}  // namespace vit::internal
