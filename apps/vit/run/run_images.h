// The sequence of a run over images, shared by all commands: list, shard, check outputs, confine,
// load, check, run, report, exit code. A command defines what it needs and how it uses the results.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/run/image_run.h"

namespace vit::app {

/// What a command does with images, and which files it may access.
struct ImageJob {
  std::string name;  // of the command
  const CommonOptions& common;
  std::span<const std::string> inputs{};        // INPUT...
  std::function<InputList()> list{};            // if the inputs are listed in another way
  std::optional<Shard> shard{};                 // the part of the inputs that is run
  std::vector<std::filesystem::path> reads{};   // in addition to inputs and model
  std::vector<std::filesystem::path> writes{};  // which replace no file that is read
  Digests digests = Digests::none;
  bool takes_failures = false;  // consume() is called for failed inputs too, without outputs
};

/// Loads everything needed, after the process is confined, into the run: its model, unless the command needs
/// none, and changes of its list. False ends the run as after an interrupt.
using PrepareRun = std::function<bool(ImageRun& run)>;
/// Writes the results. Returns an additional exit code, 0 if there is none.
using FinishRun = std::function<int(ImageRun& run)>;

/// Runs `work` in place of running the images through the model. Returns the exit code.
int run_inputs(const ImageJob& job, const PrepareRun& prepare, const std::function<void(ImageRun&)>& work,
               const FinishRun& finish);

/// Like PrepareRun; returns the request for the images, or nothing to end the run.
using MakeRequest = std::function<std::optional<Request>(ImageRun& run)>;
/// Takes the results of an input, in their order. Returns why they are unusable, or "".
using ConsumeInput = std::function<std::string(ImageRun& run, const StreamedImage& image)>;

/// Runs all inputs of a job through the model. Returns the exit code.
int run_images(const ImageJob& job, const MakeRequest& make_request, const ConsumeInput& consume,
               const FinishRun& finish);

}  // namespace vit::app
