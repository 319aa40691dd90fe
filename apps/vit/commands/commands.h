// The commands of the core, each described as data. Those of the rings: apps/vit/rings/rings.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/commands/measure.h"
#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/options/options.h"
#include "apps/vit/outputs/result_writer.h"

namespace vit::app {

/// How a server is measured.
struct ServerBench {
  std::size_t clients = 8;  // at a time
  double seconds = 10.0;
  std::vector<std::filesystem::path> images{};  // that they send; none: those of the program
  bool as_json = false;
};
using BenchServer = int (*)(const CommonOptions& common, const ServerBench& options);

/// How a model of prompts is measured: one look at an image, and further phrases.
struct PromptBench {
  std::string phrase;
  std::vector<Precision> precisions{};
  int threads = 0;
  double seconds = 1.0;
  bool as_json = false;
  JsonValue machine{};
};
using BenchPrompts = int (*)(const CommonOptions& common, const PromptBench& options);

/// Vectors of pages or of questions to them, and the file that they are written to.
struct EmbedPages {
  const CommonOptions& common;
  std::span<const std::string> inputs;
  std::span<const std::string> texts;
  std::optional<Shard> shard;
  std::vector<std::filesystem::path> reads;  // of the texts
  std::filesystem::path output;
  ResultFormat format;
  bool resume;
};
using EmbedPagesOf = int (*)(const EmbedPages& job);

Command classify_command();
/// With what it can measure besides accuracy, in the order of their options.
Command evaluate_command(std::vector<std::shared_ptr<Measure>> measures);
/// `of_pages` embeds pages (--features page).
Command embed_command(EmbedPagesOf of_pages);
Command preprocess_command();
Command info_command();
/// `of_server` measures what a server of the model holds, `of_prompts` a model of prompts.
Command bench_command(BenchServer of_server, BenchPrompts of_prompts);
Command tokenize_command();
Command rope_command();

/// --scale-consistency of evaluate, which needs no labels.
std::shared_ptr<Measure> scale_measure();

}  // namespace vit::app
