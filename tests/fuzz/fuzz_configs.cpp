// Writes the input into a checkpoint folder and loads that folder.
#include "tests/fuzz/fuzz_configs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"
#include "vit/text/tokenizer.h"
#include "vit/weights/checkpoint/checkpoint_files.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/config_json.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit::fuzz {
using namespace internal;
namespace {

std::filesystem::path golden_root() {
  return std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden";
}

std::filesystem::path golden(std::string_view model) {
  return golden_root() / "models" / model;
}

/// A folder that lasts as long as the process, with the weights of a golden model where one is named.
const test::TemporaryFolder& checkpoint_folder(std::string_view model) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  if (!model.empty() && !std::filesystem::exists(folder.path() / "model.safetensors")) {
    std::filesystem::copy_file(golden(model) / "model.safetensors", folder.path() / "model.safetensors");
  }
  return folder;
}

constexpr std::string_view kText =
    "A photo of\u00A0a caf\u00E9, it's 42 \u00BD\u0301 \u2165 \U0001F600 <s> \uFF26 "
    "<start_of_text><|endoftext|>\n";

/// Files that a folder may get although the golden one has none of them.
constexpr const char* kMoreFiles[] = {"config.json",
                                      "open_clip_config.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "tokenizer.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "bpe_simple_vocab_16e6.txt"};

/// Folders below data/golden in memory, of which one at a time has other files than in data/golden.
class ChangedFolders {
 public:
  struct Change {
    std::filesystem::path folder;
    std::vector<std::string> words;  // of the first line, but for names of files that are changed or missing
  };

  /// `root`: a folder of such folders, for example "models".
  explicit ChangedFolders(std::initializer_list<const char*> roots) {
    for (const char* root : roots) {
      for (const auto& folder : std::filesystem::directory_iterator(golden_root() / root)) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
          const std::string name = entry.path().filename().string();
          if (name.starts_with("expected") || name.starts_with("strings") || name == "case.json") continue;
          const std::string file = std::filesystem::relative(entry.path(), golden_root()).string();
          std::filesystem::create_directories((copy_ / file).parent_path());
          std::filesystem::copy_file(entry.path(), copy_ / file);
          folders_.insert(std::filesystem::path(file).parent_path().string());
          if (name.ends_with(".json") && entry.file_size() <= kMaxBytes)
            seeds_.emplace(file, test::read_text(entry.path()));
        }
      }
    }
  }

  /// What each of the small files is called, and what it holds.
  std::vector<std::string> seeds() const {
    std::vector<std::string> out;
    for (const auto& [name, text] : seeds_) out.push_back(name + "\n" + text);
    return out;
  }

  /// The first line of `input` is "FOLDER/FILE [-FILE...] [WORD...]": the file that the rest of the input
  /// becomes, and files of that folder that are missing. Throws Error for a file that no folder has.
  Change change(std::string_view input) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    std::istringstream line{std::string(input.substr(0, end))};
    std::string file;
    line >> file;
    const std::string folder = file.substr(0, std::min(file.rfind('/'), file.size()));
    const std::string_view name = std::string_view(file).substr(std::min(folder.size() + 1, file.size()));
    const bool is_more = std::ranges::find(kMoreFiles, name) != std::end(kMoreFiles);
    VIT_CHECK(folders_.contains(folder) && (is_more || seeds_.contains(file)), "fuzz", "no golden file");
    restore();
    Change change{copy_ / folder, {}};
    for (std::string word; line >> word;) {
      if (!word.starts_with('-')) {
        change.words.push_back(std::move(word));
      } else if (word.find('/') == word.npos) {
        const std::string missing = folder + "/" + word.substr(1);
        std::error_code ignored;
        if (std::filesystem::remove(copy_ / missing, ignored)) changed_.push_back(missing);
      }
    }
    copy_.write(file, input.substr(std::min(end + 1, input.size())));
    changed_.push_back(std::move(file));
    return change;
  }

 private:
  static constexpr std::size_t kMaxBytes = 4096;  // vocabularies have targets of their own

  void restore() {
    for (const std::string& file : changed_) {
      if (std::filesystem::exists(golden_root() / file)) {
        std::filesystem::copy_file(golden_root() / file, copy_ / file,
                                   std::filesystem::copy_options::overwrite_existing);
      } else {
        std::filesystem::remove(copy_ / file);
      }
    }
    changed_.clear();
  }

  test::TemporaryFolder copy_{test::TemporaryFolder::Place::memory};
  std::set<std::string> folders_;
  std::map<std::string, std::string> seeds_;
  std::vector<std::string> changed_;
};

ChangedFolders& model_folders() {
  static ChangedFolders folders({"models", "text", "towers"});
  return folders;
}

ChangedFolders& layout_folders() {
  static ChangedFolders folders({"layouts"});
  return folders;
}

ChangedFolders& tokenizer_folders() {
  static ChangedFolders folders({"tokenizers"});
  return folders;
}

/// Reads every number of a tower.
template <typename Config>
void read_numbers(LoadedTower<Config> checkpoint) {
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [](const TensorId&, const Shape& shape, WeightTensor& tensor) {
                    if (tensor.load().shape() != shape) throw std::logic_error("a tensor of another shape");
                  });
}

/// What is said of a configuration is JSON.
void describe(const LoadedTower<ModelConfig>& checkpoint) {
  parse_json(config_json(checkpoint.config), "config_json");
}

/// Those of the seeds that `run` does not refuse.
std::vector<std::string> accepted(std::vector<std::string> seeds, void (*run)(std::string_view)) {
  std::erase_if(seeds, [run](const std::string& seed) {
    try {
      run(seed);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return seeds;
}

/// Calls each of them; the first Error is thrown when all are done.
template <typename... Steps>
void try_all(Steps... steps) {
  std::exception_ptr first;
  const auto attempt = [&](auto& step) {
    try {
      step();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  };
  (attempt(steps), ...);
  if (first) std::rethrow_exception(first);
}

}  // namespace

void run_timm_config(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("rope-axial");
  folder.write("config.json", input);
  load_checkpoint(folder.path());
}

std::vector<std::string> timm_config_seeds() {
  return {test::read_text(golden("rope-axial") / "config.json")};
}

void run_hf_config(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("hf-vit");
  folder.write("config.json", input);
  load_checkpoint(folder.path());
}

std::vector<std::string> hf_config_seeds() {
  return {test::read_text(golden("hf-vit") / "config.json")};
}

namespace {

constexpr const char* kBoxModels[] = {"yolos",   "owlv2",   "owlvit",      "rf_detr",
                                      "lw_detr", "vitpose", "vitpose-plus"};

/// The folder of a model type.
std::filesystem::path folder_of_boxes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return golden_root() / "boxes" / name;
}

}  // namespace

void run_box_config(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  const char* model = kBoxModels[0];
  for (const char* const known : kBoxModels) {
    if (input.find("\"num_experts\": 3") == input.npos && std::string_view(known).ends_with("plus")) continue;
    const std::string_view type = std::string_view(known).substr(0, std::string_view(known).find('-'));
    if (input.find("\"" + std::string(type) + "\"") != input.npos) model = known;
  }
  const std::filesystem::path place = folder.path() / model;
  if (!std::filesystem::exists(place)) {
    std::filesystem::create_directory(place);
    std::filesystem::copy_file(folder_of_boxes(model) / "model.safetensors", place / "model.safetensors");
  }
  folder.write(std::string(model) + "/config.json", input);
  load_checkpoint(place);
}

std::vector<std::string> box_config_seeds() {
  std::vector<std::string> seeds;
  for (const char* const model : kBoxModels)
    seeds.push_back(test::read_text(folder_of_boxes(model) / "config.json"));
  return seeds;
}

void run_open_clip_config(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  const std::filesystem::path weights = folder.path() / "open_clip_model.safetensors";
  if (!std::filesystem::exists(weights))
    std::filesystem::copy_file(golden("open-clip") / weights.filename(), weights);
  folder.write("open_clip_config.json", input);
  load_preprocess_config(folder.path());
  load_checkpoint(folder.path());
}

std::vector<std::string> open_clip_config_seeds() {
  return {test::read_text(golden("open-clip") / "open_clip_config.json")};
}

void run_layout(std::string_view input) {
  const std::filesystem::path folder = layout_folders().change(input).folder;
  const std::filesystem::path pickle = folder / "model.pth";
  const CheckpointFolder checkpoint(std::filesystem::exists(pickle) ? pickle : folder / "model.safetensors",
                                    {.layout = folder / "layout.json"});
  try_all([&] { checkpoint.preprocess_config(); }, [&] { checkpoint.load<ModelConfig>(); });
}

std::vector<std::string> layout_seeds() {
  return layout_folders().seeds();
}

void run_timm_preprocess(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("");
  folder.write("config.json", input);
  load_preprocess_config(folder.path());
}

void run_hf_preprocess(std::string_view input) {
  const test::TemporaryFolder& folder = checkpoint_folder("");
  folder.write("preprocessor_config.json", input);
  load_preprocess_config(folder.path());
}

std::vector<std::string> hf_preprocess_seeds() {
  return {
      test::read_text(golden("hf-vit") / "preprocessor_config.json"),
      R"({"image_processor_type":"CLIPImageProcessor","do_resize":true,"size":{"shortest_edge":224},"resample":3,)"
      R"("do_center_crop":true,"crop_size":{"height":224,"width":224},"do_rescale":true,)"
      R"("rescale_factor":0.00392156862745098,"do_normalize":true,"image_mean":[0.5,0.5,0.5],)"
      R"("image_std":[0.5,0.25,0.5],"do_convert_rgb":true,"data_format":null})",
      test::read_text(golden_root() / "boxes" / "yolos" / "preprocessor_config.json"),
      test::read_text(golden_root() / "boxes" / "vitpose" / "preprocessor_config.json"),
      R"({"image_processor_type":"Qwen2VLImageProcessor","patch_size":14,"merge_size":2,"temporal_patch_size":2,)"
      R"("size":{"shortest_edge":3136,"longest_edge":1003520},"min_pixels":3136,"max_pixels":1003520})",
      R"({"image_processor_type":"PixtralImageProcessor","patch_size":{"height":16,"width":16},)"
      R"("size":{"longest_edge":1024}})",
      R"({"image_processor_type":"Kimi_K25ImageProcessor","patch_size":14,"merge_size":2,"max_patches":16384})",
      R"({"image_processor_type":"Gemma4ImageProcessor","patch_size":16,"max_soft_tokens":280,)"
      R"("pooling_kernel_size":3})",
      R"({"image_processor_type":"Llama4ImageProcessor","size":{"height":336,"width":336},"max_patches":16})",
      R"({"image_processor_type":"Glm4vImageProcessor","size":{"shortest_edge":12544,"longest_edge":9633792}})",
      R"({"image_processor_type":"Owlv2ImageProcessor","do_pad":true,"size":{"height":960,"width":960},)"
      R"("resample":2,"rescale_factor":0.00392156862745098})"};
}

void run_model_folder(std::string_view input) {
  const std::filesystem::path path = model_folders().change(input).folder;
  const CheckpointFolder folder(path);
  try_all(
      [&] {
        LoadedTower checkpoint = folder.load<ModelConfig>();
        describe(checkpoint);
        read_numbers(std::move(checkpoint));
      },
      [&] {
        if (const auto config = folder.preprocess_config()) parse_json(config_json(*config), "config_json");
      },
      [&] {
        if (folder.parsed<TextConfig>()) read_numbers(folder.load<TextConfig>());
      },
      [&] {
        if (std::filesystem::exists(path / "tokenizer_config.json"))
          Tokenizer::load_for_model(path).encode(kText, 16);
      });
}

std::vector<std::string> model_folder_seeds() {
  return accepted(model_folders().seeds(), run_model_folder);  // text towers are no models of images
}

void run_tensor_names(std::string_view input) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  const auto cut_line = [&input] {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    return line;
  };
  std::istringstream said{std::string(cut_line())};
  ModelOptions options;
  said >> options.architecture;
  for (std::string word; said >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    options.overrides[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
  }
  if (options.architecture == "-") options.architecture.clear();
  const std::string_view header = cut_line();
  std::size_t num_bytes = 0;
  const Json tensors = parse_json(header, "input");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (const auto offsets = tensors[i].find("data_offsets"); offsets && offsets->size() == 2)
      num_bytes = std::max(num_bytes, (*offsets)[1].as_size({.max = kMaxBytes}));
  }
  const std::filesystem::path weights =
      folder.write("model.safetensors", test::safetensors(header, std::string(num_bytes, '\0')));
  const std::filesystem::path config = folder / "open_clip_config.json";
  std::filesystem::remove(config);
  if (!input.empty()) folder.write(config.filename().string(), input);
  static const std::filesystem::path merges =
      folder.write("bpe_simple_vocab_16e6.txt", "version\na b\nab c</w>\n");
  const CheckpointFolder checkpoint(weights, options);
  try_all([&] { read_numbers(checkpoint.load<ModelConfig>()); }, [&] { checkpoint.preprocess_config(); },
          [&] {
            if (!checkpoint.parsed<TextConfig>()) return;
            read_numbers(checkpoint.load<TextConfig>());
            Tokenizer::load_for_model(weights, merges).encode(kText);
          });
}

namespace {

/// The tensors of a weight file as the header of a .safetensors file.
std::string header_of(const std::filesystem::path& weights) {
  std::string header;
  std::size_t offset = 0;
  const TensorFile file = open_weights(weights);
  for (const TensorEntry& entry : file.entries()) {
    const std::size_t end = offset + entry.num_elements() * sizeof(float);
    std::string shape;
    for (const std::size_t edge : entry.shape) shape += (shape.empty() ? "" : ",") + std::to_string(edge);
    header += (header.empty() ? "{" : ",") + json_string(entry.name) + R"(:{"dtype":"F32","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  return header + "}";
}

/// What the configuration of a golden model says, as a caller would.
std::string said_of(const std::filesystem::path& config) {
  if (!std::filesystem::exists(config)) return "";
  const Json json = load_json(config);
  const auto arguments = json.find("model_args");
  if (!arguments) return "";
  std::string said = json.find_string("architecture").value_or("");
  for (std::size_t i = 0; i < arguments->size(); ++i) {
    const Json value = (*arguments)[i];
    if (value.is_number()) said += text(" ", value.key(), "=", value.as_double());
    if (value.is_string()) said += text(" ", value.key(), "=", value.as_string());
    if (value.is_array() && value.size() == 2)
      said += text(" ", value.key(), "=", value[0].as_size(), "x", value[1].as_size());
  }
  return said;
}

}  // namespace

std::vector<std::string> tensor_names_seeds() {
  std::vector<std::string> seeds;
  for (const char* root : {"models", "text"}) {
    for (const auto& folder : std::filesystem::directory_iterator(golden_root() / root)) {
      for (const std::filesystem::path& weights : list_weights(folder)) {
        if (weights.filename() == "expected.safetensors") continue;
        const std::string said = folder.path().filename() == "meta-dinov3"
                                     ? "vit_small_plus_patch16_dinov3_qkvb num_heads=2"
                                     : said_of(folder.path() / "config.json");
        seeds.push_back(said + "\n" + header_of(weights));
      }
    }
  }
  std::ranges::sort(seeds);
  return accepted(std::move(seeds), run_tensor_names);  // others are recognized only by a configuration
}

void run_tokenizer_folder(std::string_view input) {
  const ChangedFolders::Change change = tokenizer_folders().change(input);
  TokenizerOptions options;
  std::filesystem::path path = change.folder;
  for (const std::string& word : change.words) {
    VIT_CHECK(word.find('/') == word.npos, "fuzz", "leads out of the folder");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(change.folder / word, ignored)) {
      path = change.folder / word;  // without a folder
    } else {
      options.library = text_library(word);
    }
  }
  const Tokenizer tokenizer = Tokenizer::load(path, options);
  for (const std::int32_t id : tokenizer.encode(kText)) {
    if (id < 0 || static_cast<std::size_t>(id) >= tokenizer.vocabulary_size())
      throw std::logic_error("an id that no token has");
    tokenizer.find(tokenizer.token(id));
  }
  if (tokenizer.encode(kText, 16).ids.size() != 16) throw std::logic_error("a row of another length");
}

std::vector<std::string> tokenizer_folder_seeds() {
  return tokenizer_folders().seeds();
}

void run_shards(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  static const bool has_shards = [] {
    folder.write("1.safetensors",
                 test::safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"F16","shape":[1],"data_offsets":[4,6]}})",
                                   "abcdef"));
    folder.write("2.safetensors",
                 test::safetensors(R"({"c":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x"));
    return true;
  }();
  if (has_shards) open_shards(folder.write("model.safetensors.index.json", input), open_safetensors);
}

std::vector<std::string> shards_seeds() {
  return {
      R"({"metadata":{"total_size":7},"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}})"};
}

}  // namespace vit::fuzz
