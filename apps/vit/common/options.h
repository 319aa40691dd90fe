// The options that all commands share, and what they mean to the library.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/common/progress.h"
#include "vit/session.h"

namespace vit::app {

inline constexpr int kMaxThreads = 1024;
inline constexpr std::size_t kMaxBatch = 4096;

/// As written on the command line.
struct CommonOptions {
  std::string model;  // "" = the model that ships with the program
  std::string architecture;
  std::vector<std::string> set;
  std::string size = "model";
  std::string resampler = "auto";
  std::string pillow = "13";
  std::string exif = "auto";
  int threads = 0;
  std::size_t batch = 0;
  std::string dtype = "float32";
  std::string kernels;
  std::string progress = "auto";
  bool quiet = false;
};

/// Which of the shared options a command lists in another form of its own.
enum class BatchOptions { single, lists };

void add_common_options(CLI::App& command, CommonOptions& options,
                        BatchOptions batch_options = BatchOptions::single);
/// The positional INPUT...; for arguments that went through protected_from_cli11.
void add_inputs(CLI::App& command, std::vector<std::string>& inputs);

/// CLI11 takes an argument of the form [a,b] for a list; here it is the name of a file. "./" before such
/// names hides them, and add_inputs takes it off again. It gives an option with = and nothing behind it the
/// next argument for its value; that is a CLI::ParseError here.
std::vector<std::string> protected_from_cli11(std::vector<std::string> arguments);

/// Decimal digits alone: CLI11 reads 010 as eight and 0x1 as one.
CLI::Validator whole_number();
/// An empty value is most often a variable that was not set.
CLI::Validator not_empty();

/// Checks what can be checked without the model. Throws UsageError.
void validate(const CommonOptions& options);
/// The same for commands that need weights, which --architecture alone does not give.
void validate_with_weights(const CommonOptions& options);
/// Throws UsageError where `output` leads to a weight file of the model, which the results would replace.
void check_no_weights(const std::filesystem::path& output, const CommonOptions& options);

ModelOptions to_model_options(const CommonOptions& options);
SessionOptions to_session_options(const CommonOptions& options);
Dtype parse_dtype(std::string_view name);
/// A value of --size, or of another option that is named in messages. Throws UsageError.
InputSize parse_size(std::string_view size, std::string_view option = "--size");
ProgressMode to_progress_mode(const CommonOptions& options);

/// An entry of bench's --sizes, or its --size: height and width. Throws UsageError for native.
ImageSize bench_size(std::string_view size, const ModelConfig& config, std::string_view option);

/// --model, or the model that ships with the program. Throws Error where it is missing.
std::filesystem::path model_path(const CommonOptions& options);
std::shared_ptr<const Model> load_model(const CommonOptions& options);

}  // namespace vit::app
