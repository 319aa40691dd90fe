#include "vit/weights/checkpoint/loader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "vit/base/error.h"
#include "vit/weights/checkpoint/folder_files.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/timm_args.h"
#include "vit/weights/files/file_status.h"
#include "vit/weights/files/in_quotes.h"
#include "vit/weights/files/pickle.h"
#include "vit/weights/files/safetensors.h"
#include "vit/weights/files/shards.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "load_checkpoint";
namespace fs = std::filesystem;

struct FoundFiles {
  fs::path weights;
  std::optional<fs::path> config;
};

FoundFiles find_files(const fs::path& path, const LoadOptions& options) {
  const fs::file_status status = load_status(path, kWhere);
  VIT_CHECK(fs::exists(status), kWhere, "no such file or folder: ", path.string());
  FoundFiles found;
  found.weights = fs::is_directory(status) ? find_weights(path) : path;
  if (const auto open_clip = find_open_clip_config(found.weights)) {
    if (options.architecture.empty()) found.config = open_clip;
    return found;
  }
  const fs::path config = found.weights.parent_path() / "config.json";
  // a bare file beside its config is as good as the folder, unless the caller says what it is
  const bool counts = fs::is_directory(status) || options.architecture.empty();
  if (counts && fs::exists(load_status(config, kWhere))) found.config = config;
  return found;
}

TensorFile open_tensors(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".bin.index.json")) return open_shards(path, open_pickle);
  if (name.ends_with(".index.json")) return open_shards(path, open_safetensors);
  if (name.ends_with(".safetensors")) return open_safetensors(path);
  if (is_pickle(path)) return open_pickle(path);
  fail(kWhere, path.string(),
       ": unknown kind of weight file; .safetensors, .pth, .pt, .pth.tar, .ckpt, .bin or the .index.json of "
       "shards expected");
}

/// torch.compile wraps a module and puts its own name into those of the tensors, which say the same without.
constexpr std::string_view kCompiled = "_orig_mod.";

std::string without_compiler(std::string_view name) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = name.find(kCompiled); at != name.npos; at = name.find(kCompiled, at + 1)) {
    if (at != 0 && name[at - 1] != '.') continue;
    out += name.substr(done, at - done);
    done = at + kCompiled.size();
  }
  return out.append(name.substr(done));
}

TensorFile without_compiler(TensorFile file) {
  const bool is_compiled = std::ranges::any_of(file.entries(), [](const TensorEntry& entry) {
    return entry.name.find(kCompiled) != std::string::npos;
  });
  if (!is_compiled) return file;
  TensorFile::Contents contents = file.contents();
  for (TensorEntry& entry : contents.entries) entry.name = without_compiler(entry.name);
  return TensorFile(std::move(contents));
}

/// Which member of a PyTorch file was read, and beside what.
std::string container_note(const TensorFile& tensors) {
  std::vector<std::string> others;
  for (const std::string& name : tensors.ignored()) others.push_back(in_quotes(name));
  return "the weights are the member " + in_quotes(tensors.container()) + " of the file" +
         (others.empty() ? "" : ", which holds " + listed(others) + " too");
}

const Family& find_family(SourceFiles& files) {
  for (const Family* family : families()) {
    if (family->matches(files)) return *family;
  }
  for (const Family* family : families()) {
    if (files.config || !std::string_view(family->name).starts_with("hf_")) continue;
    for (const TensorEntry& entry : files.tensors.entries()) {
      if (!entry.name.ends_with(family->anchor)) continue;
      fail(kWhere, files.weights_name, ": ", in_quotes(entry.name),
           " belongs to a model of transformers, whose config.json must lie beside the file and does not");
    }
  }
  const auto type = files.config ? files.config->find_string("model_type") : std::nullopt;
  VIT_CHECK(!type, kWhere, files.weights_name,
            ": its config.json is one of transformers, with the model_type ", in_quotes(*type),
            ", and no family of Vision Transformers that is known here has that");
  std::string names, anchors;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, files.tensors.entries().size()); ++i) {
    names += (i ? ", " : "") + in_quotes(files.tensors.entries()[i].name);
  }
  for (const Family* family : families()) {
    if (anchors.find(family->anchor) == std::string::npos)
      anchors += (anchors.empty() ? "" : ", ") + std::string(family->anchor);
  }
  fail(kWhere, files.weights_name, ": no known family of Vision Transformers. Its tensors are called ", names,
       ", ...; a known one has one of ", anchors,
       files.config ? ", and its config.json names the model" : ". A config.json may be missing");
}

struct FoundPiece {
  Piece piece{};
  const TensorEntry* entry = nullptr;  // null for zeros
  const TensorEntry* mask = nullptr;

  /// The rows of the entry that the piece takes.
  TensorEntry taken() const {
    return piece.num_rows == 0 ? *entry : rows_of(*entry, piece.first_row, piece.num_rows);
  }
};

/// Writes the transpose of a matrix; returns the end.
float* write_transposed(const TensorEntry& entry, float* target) {
  const Tensor<float> whole = to_float(entry);
  const std::size_t rows = whole.dim(0);
  const std::size_t columns = rows == 0 ? 0 : whole.num_elements() / rows;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < rows; ++row) *target++ = whole.data()[row * columns + column];
  }
  return target;
}

void apply_mask(const TensorEntry& mask, std::span<float> numbers) {
  const Tensor<float> factors = to_float(mask);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float factor = factors.data()[i];
    VIT_CHECK(factor == 0.0f || factor == 1.0f, kWhere, mask.describe(),
              ": a mask holds zeros and ones, found ", factor, " at ", i);
    numbers[i] = factor == 0.0f ? 0.0f : numbers[i];
  }
}

/// Numbers of one canonical tensor: lent where one piece stores them as they are, else joined from the
/// pieces.
WeightNumbers load_pieces(const std::vector<FoundPiece>& parts, const Shape& shape) {
  const FoundPiece& front = parts.front();
  if (parts.size() == 1 && front.entry != nullptr && front.mask == nullptr && !front.piece.transposed) {
    const float* const lent = floats_in_place(front.taken());
    if (lent != nullptr) return WeightNumbers(TensorView<const float>(lent, shape), *front.entry);
  }
  Tensor<float> out(shape);
  float* target = out.data();
  for (const FoundPiece& part : parts) {
    if (part.entry == nullptr) {
      target += part.piece.zeros;  // already zero
      continue;
    }
    float* const begin = target;
    if (part.piece.transposed) {
      target = write_transposed(*part.entry, target);
    } else {
      const TensorEntry taken = part.taken();
      convert(taken, std::span(target, taken.num_elements()));
      target += taken.num_elements();
    }
    release_pages(*part.entry);
    if (part.mask != nullptr) apply_mask(*part.mask, {begin, target});
  }
  return out;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + ")";
}

/// Holds the plan against the file: finds every piece, collects what is wrong, and says so once.
class Matcher {
 public:
  Matcher(const SourceFiles& files, const Adapter& adapter, std::shared_ptr<const TensorFile> tensors)
      : files_(files), adapter_(adapter), tensors_(std::move(tensors)) {}

  void match(const std::string& canonical, const Shape& shape, WeightTensor& tensor) {
    std::vector<FoundPiece> parts;
    std::size_t elements = 0;
    bool complete = true;
    for (Piece& piece : adapter_.pieces(canonical, shape)) {
      if (piece.source.empty()) {
        elements += piece.zeros;
        parts.push_back({.piece = std::move(piece)});
        continue;
      }
      const TensorEntry* const entry = take(piece.source, piece.absolute, piece.shape, canonical);
      complete = complete && entry != nullptr;
      if (entry == nullptr) continue;
      const TensorEntry* mask = nullptr;
      if (!piece.mask.empty()) {
        mask = take(piece.mask, piece.absolute, piece.shape, canonical + " (mask)");
        complete = complete && mask != nullptr;
      }
      const std::size_t rows = entry->shape.empty() ? 1 : entry->shape[0];
      elements += piece.num_rows == 0 || rows == 0 ? entry->num_elements()
                                                   : entry->num_elements() / rows * piece.num_rows;
      parts.push_back({.piece = std::move(piece), .entry = entry, .mask = mask});
    }
    if (!complete) return;
    VIT_CHECK(elements == shape.num_elements(), kWhere, files_.weights_name, ": the tensors of ", canonical,
              " hold ", elements, " numbers, but its shape is ", shape.to_string());
    // the handle keeps the mapped file alive
    tensor = WeightTensor(
        shape, [parts = std::move(parts), shape, keep = tensors_] { return load_pieces(parts, shape); });
  }

  /// Throws one Error for everything that is missing, misshaped or left over; fills the uses of the report.
  void finish(LoadReport& report) {
    for (const TensorEntry& entry : files_.tensors.entries()) {
      TensorUse use{.name = entry.name,
                    .shape = entry.shape,
                    .dtype = entry.dtype_name,
                    .feeds = {},
                    .ignored_because = {}};
      if (const auto found = uses_.find(&entry); found != uses_.end()) {
        use.feeds = found->second;
        report.num_parameters += entry.num_elements();
      } else {
        const bool has_prefix = entry.name.starts_with(files_.prefix);
        use.ignored_because = adapter_.ignore_reason(
            has_prefix ? entry.name.substr(files_.prefix.size()) : entry.name, has_prefix);
        if (use.ignored_because.empty())
          unexpected_.push_back(in_quotes(entry.name) + " " + shape_text(entry.shape));
      }
      report.tensors.push_back(std::move(use));
    }
    std::string message;
    append(message, "missing", missing_);
    append(message, "wrong", wrong_);
    append(message, "unexpected", unexpected_);
    VIT_CHECK(message.empty(), kWhere, files_.weights_name, ": ", message,
              files_.config ? text(" (do weights and ", fs::path(files_.config->where()).filename().string(),
                                   " belong together?)")
                            : " (does the file fit the architecture that was named?)");
  }

 private:
  const TensorEntry* take(const std::string& name, bool absolute, const std::vector<std::size_t>& shape,
                          const std::string& use) {
    const std::string full = absolute ? name : files_.prefix + name;
    const TensorEntry* const entry = files_.tensors.find(full);
    if (entry == nullptr) {
      if (std::find(missing_.begin(), missing_.end(), in_quotes(full) + " " + shape_text(shape)) ==
          missing_.end()) {
        missing_.push_back(in_quotes(full) + " " + shape_text(shape));
      }
      return nullptr;
    }
    std::string& uses = uses_[entry];
    uses += (uses.empty() ? "" : ", ") + use;
    if (entry->shape != shape) {
      wrong_.push_back(in_quotes(full) + " has shape " + shape_text(entry->shape) + ", expected " +
                       shape_text(shape));
      return nullptr;
    }
    if (!is_floating(entry->dtype)) {
      wrong_.push_back(in_quotes(full) + " holds " + entry->dtype_name + ", expected floating point");
      return nullptr;
    }
    return entry;
  }

  static void append(std::string& message, const char* what, const std::vector<std::string>& items) {
    if (items.empty()) return;
    message += (message.empty() ? "" : "; ") + std::string(what) + " " + listed(items, 4);
  }

  const SourceFiles& files_;
  const Adapter& adapter_;
  std::shared_ptr<const TensorFile> tensors_;
  std::map<const TensorEntry*, std::string> uses_;
  std::vector<std::string> missing_, wrong_, unexpected_;
};

std::string most_common_dtype(const TensorFile& tensors) {
  std::map<std::string, std::size_t> counts;
  for (const TensorEntry& entry : tensors.entries()) counts[to_string(entry.dtype)] += entry.num_elements();
  const auto largest = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == counts.end() ? "" : largest->first;
}

/// What `read` returns; an Error that does not say which file it is about gets the name of the configuration.
template <typename Read>
auto with_file_named(const FoundFiles& found, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string_view message = error.message();
    const std::string weights = found.weights.string(),
                      config = found.config.value_or(found.weights).string();
    const bool is_named =
        message.find(weights) != std::string::npos || message.find(config) != std::string::npos;
    if (is_named || message.find("--set") != std::string::npos) throw;
    fail(error.where(), config, ": ", error.message());
  }
}

}  // namespace

Checkpoint load_checkpoint(const fs::path& path, const LoadOptions& options) {
  const FoundFiles found = find_files(path, options);
  const auto tensors = std::make_shared<const TensorFile>(without_compiler(open_tensors(found.weights)));
  SourceFiles files{.tensors = *tensors,
                    .options = options,
                    .config = {},
                    .weights_name = found.weights.string(),
                    .prefix = ""};
  if (found.config) files.config = load_json(*found.config);
  const Family& family = find_family(files);
  const auto [adapter, config] = with_file_named(found, [&] {
    std::unique_ptr<Adapter> made = family.adapt(files);
    ModelConfig values = made->config();
    return std::pair(std::move(made), std::move(values));
  });

  Checkpoint checkpoint;
  checkpoint.config = config;
  Matcher matcher(files, *adapter, tensors);
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [&](const std::string& name, const Shape& shape, WeightTensor& tensor) {
                    matcher.match(name, shape, tensor);
                  });
  LoadReport& report = checkpoint.report;
  matcher.finish(report);
  report.path = path;
  for (const TensorEntry& entry : tensors->entries()) {
    const fs::path& file = entry.file->path();
    if (std::find(report.files.begin(), report.files.end(), file) == report.files.end())
      report.files.push_back(file);
  }
  report.stored_dtype = most_common_dtype(*tensors);
  report.notes = adapter->notes();
  if (!tensors->container().empty()) report.notes.push_back(container_note(*tensors));
  return checkpoint;
}

std::optional<PreprocessConfig> checkpoint_preprocess(const fs::path& path, const ModelConfig& config,
                                                      const LoadOptions& options,
                                                      const PreprocessLoadOptions& preprocess_options) {
  if (options.architecture.empty() || find_open_clip_config(path)) {
    return find_preprocess_config(path, preprocess_options);
  }
  return architecture_preprocess(config, preprocess_options);
}

Checkpoint random_checkpoint(const std::string& architecture, const LoadOptions& options, unsigned seed) {
  const Architecture& found = find_architecture(architecture);
  TimmArgs args = found.args;
  for (const auto& [key, value] : options.overrides) apply_timm_override(args, key, value);
  Checkpoint checkpoint;
  checkpoint.config = to_config(args, found);
  checkpoint.report.path = architecture;
  checkpoint.report.stored_dtype = "none (random weights)";
  unsigned next = seed;
  for_each_tensor(
      checkpoint.config, checkpoint.weights,
      [&](const std::string& name, const Shape& shape, WeightTensor& tensor) {
        checkpoint.report.num_parameters += shape.num_elements();
        const bool one = name.ends_with("gamma") || name.ends_with("scale1") || name.ends_with("scale2");
        // variance 1 / fan-in keeps activations of order one through any depth
        const double spread = shape.rank() < 2 ? 0.02 : 1.0 / std::sqrt(static_cast<double>(shape.last()));
        tensor = WeightTensor(shape, [shape, one, spread, tensor_seed = next++]() -> WeightNumbers {
          Tensor<float> values(shape);
          std::mt19937 random(tensor_seed);
          std::normal_distribution<double> normal(one ? 1.0 : 0.0, one ? 0.02 : spread);
          for (float& value : values.flat()) value = static_cast<float>(normal(random));
          return values;
        });
      });
  return checkpoint;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : architectures()) names.emplace_back(architecture.name);
  return names;
}

}  // namespace vit::internal
