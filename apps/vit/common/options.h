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
#include "vit/pipeline.h"

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
/// The positional INPUT...
void add_inputs(CLI::App& command, std::vector<std::string>& inputs);

/// Checks what can be checked without the model. Throws UsageError.
void validate(const CommonOptions& options);

ModelOptions to_model_options(const CommonOptions& options);
SessionOptions to_session_options(const CommonOptions& options);
Dtype parse_dtype(std::string_view name);
InputSize parse_size(std::string_view size);
ProgressMode to_progress_mode(const CommonOptions& options);

/// An entry of bench's --sizes: height and width. Throws UsageError for native.
ImageSize bench_size(std::string_view size, const ModelConfig& config);

/// --model, or the model that ships with the program. Throws Error where it is missing.
std::filesystem::path model_path(const CommonOptions& options);
std::shared_ptr<const Model> load_model(const CommonOptions& options);

}  // namespace vit::app
