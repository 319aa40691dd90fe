// The options shared by all commands, parsed into the option structs of the library.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/inputs/inputs.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit::app {

inline constexpr int kMaxThreads = 1024;
inline constexpr std::size_t kMaxBatch = 4096;

struct CommonOptions {
  std::filesystem::path model;  // empty = the model shipped with the program
  ModelOptions model_options{};
  std::filesystem::path tokenizer{};             // of the text tower; empty = the model's own
  TextLibrary library = TextLibrary::automatic;  // whose cleaning rules apply
  SessionOptions session{};                      // threads, images per batch, input size
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool sandbox = false;
  /// Options of the command line for loading the model and preprocessing its images, except for
  /// --model and those that RunModel keeps, with their values: for later runs with the same model.
  std::map<std::string, std::vector<std::string>> given{};
  /// Names of all shared options of the command line.
  std::set<std::string> said{};

  /// Whether only --architecture is given: random weights, or no weights at all.
  bool is_architecture_alone() const { return model.empty() && !model_options.architecture.empty(); }
  ProgressMode progress_mode() const { return quiet ? ProgressMode::never : progress; }
};

/// Whether a command replaces some of the shared options by lists.
enum class BatchOptions { single, lists };

/// Adds the options that describe a model: every command that takes --model takes all of them.
void add_model_options(std::vector<Option>& list, CommonOptions& options);
/// Adds the shared options, grouped, to those of a command; those of the model are among them.
void add_common_options(std::vector<Option>& list, CommonOptions& options,
                        BatchOptions batch_options = BatchOptions::single);
/// --frames, of commands that take clips.
Option frames_option(CommonOptions& options);
/// Adds the shared options and --sandbox, for commands that call confine() once their images are known.
void add_image_run_options(std::vector<Option>& list, CommonOptions& options);
/// Records the model options from `first` on in `given` as well, with absolute paths.
void remember_options(std::vector<Option>& list, std::size_t first, CommonOptions& options);
/// Stores `saved`, the `given` of an earlier run, in options of `list` that the command line does not set.
/// Throws Error that names `source` for an option that is not in the list, or an invalid value.
void repeat_options(std::span<const Option> list,
                    const std::map<std::string, std::vector<std::string>>& saved,
                    const CommonOptions& options, const std::string& source);
/// The positional INPUT...
Option inputs_option(std::vector<std::string>& inputs);
/// --shard I/N; without it there is no value and the run covers all inputs.
Option shard_option(std::optional<Shard>& shard);
/// --labels FILE
Option labels_option(std::filesystem::path& labels);

/// float32, bfloat16 or int8. Throws UsageError.
Precision parse_precision(const std::string& name);
/// model, native, S or HxW. Throws UsageError.
InputSize parse_size(const std::string& size);

}  // namespace vit::app
