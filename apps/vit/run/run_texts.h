// Runs over texts, as run_images.h has them over images: the text tower of --model encodes them, with
// progress. inputs/texts.h reads them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/ground/progress.h"
#include "apps/vit/options/options.h"
#include "apps/vit/outputs/result_writer.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit::app {

/// Warns that texts of more than `places` tokens are truncated, and names the first one.
void warn_truncated(std::size_t places, const Tokenizer& tokenizer, std::string_view text);

/// What a run reads and writes.
struct TextJob {
  std::string name;  // of the progress
  const CommonOptions& common;
  std::span<const std::string> texts;
  std::span<const std::string> templates{};     // they are inserted into; none: used as they are
  std::vector<std::filesystem::path> reads{};   // in addition to the model
  std::vector<std::filesystem::path> writes{};  // files
};

/// Takes the vectors of the texts, each inserted into the template if there is one, not normalized; for
/// several, the mean of their normalized vectors, normalized again. Texts that are not UTF-8 are reported and
/// left out. After an interrupt, only the completed ones.
using TakeVectors = std::function<void(NamedVectors)>;

/// Encodes texts with a tower that is loaded already. Returns the exit code.
int encode_texts(const TextJob& job, std::shared_ptr<const TextTower> tower, const TakeVectors& take);

/// A whole run: checks the files that are written, confines the process, loads the tower and encodes.
/// Returns the exit code.
int run_texts(const TextJob& job, const std::function<std::shared_ptr<const TextTower>()>& load,
              const TakeVectors& take);

/// encode_classes() of the library with a progress bar; nothing after an interrupt.
std::optional<ClassVectors> encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                                           std::span<const std::string> templates,
                                           const CommonOptions& common);

}  // namespace vit::app
