// What vit embed is asked for, and its vectors of texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/options.h"
#include "apps/vit/outputs/parts_folder.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/run/run_texts.h"
#include "vit/text_encoder.h"

namespace vit::app {

struct EmbedOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  std::string features;
  std::optional<ResultFormat> format;  // of parts
  std::optional<std::size_t> part_size;
  std::optional<Shard> shard;
  bool resume = false;
  bool normalize = false;
  TextInputs texts;
  TemplateOptions templates;

  /// "" = none.
  std::vector<std::filesystem::path> text_files() const { return {texts.file, templates.file}; }
  /// Whether the output is a folder of parts. A name without extension is one if options of parts are
  /// given.
  bool has_parts() const {
    return means_folder(output) || ((format || part_size) && !output.has_extension());
  }
};

/// Texts before they are encoded.
struct TextsToEncode {
  std::vector<std::string> names;      // as given
  std::vector<std::string> templates;  // they are inserted into; none: used as they are
};

/// Empty if no option gives texts.
TextsToEncode read_texts_to_encode(const EmbedOptions& options);

TextJob text_job(const EmbedOptions& options, const TextsToEncode& texts);

/// Normalized if requested.
void add_texts(const EmbedOptions& options, NamedVectors vectors, ResultWriter& writer);

/// The record of vectors of texts.
RunFacts text_facts(const EmbedOptions& options, const TextTower& tower, const TextsToEncode& texts);

/// Texts without images. Returns the exit code.
int embed_texts(const EmbedOptions& options, ResultFormat format, const TextsToEncode& texts);

}  // namespace vit::app
