// The processes of a DecodePool, on their side.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "apps/vit/ground/sandbox.h"
#include "apps/vit/rings/serve/work/decode_link.h"
#include "vit/image/preprocess.h"

namespace vit::app {

/// A place for one decoding process: where it reads tasks, and the memory that it shares with the server.
struct DecodePlace {
  int socket = -1;         // of the process
  int server_socket = -1;  // the other end
  std::byte* memory = nullptr;
  std::size_t file_bytes = 0;   // room for the file, at the start
  std::size_t pixel_bytes = 0;  // room for pixels after it
};

/// Whether a decoder may leave parts of a damaged image as it found the memory: such a file gets a process
/// that has held no other image.
bool needs_fresh_memory(std::span<const std::byte> file);

/// Starts a process for each place, and another one where one ends, until the server closes `control`. A byte
/// from there is the number of a place whose process is to be killed. `confinement`: null = not confined.
[[noreturn]] void supervise(std::span<const DecodePlace> places, int control, const Confinement* confinement,
                            std::span<const std::optional<Preprocessor>> preprocessors);

/// Of ImageRules::thumbnail, decoded as the model's own rules say.
FilePixels decode_thumbnail(const Preprocessor& preprocessor, std::span<const std::byte> file);

/// The pixels of a file by immich's rules for a model whose own are `config`; `rules` is one of immich's.
FilePixels run_by_immich_rules(const PreprocessConfig& config, ImageRules rules,
                               std::span<const std::byte> file, PreprocessMemory& memory);

}  // namespace vit::app
