// vit anomaly: what its actions share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/options/options.h"
#include "vit/anomaly.h"

namespace vit::app {

struct AnomalyCommandOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  PrintFormat format = PrintFormat::text;
  // fit
  std::filesystem::path output;
  std::vector<int> layers;
  CoresetSize coreset{};
  std::size_t neighborhood = 1;
  AnomalyScore score = AnomalyScore::top_percent;
  bool rotations = false;
  bool foreground = false;
  double quantile = AnomalyOptions().quantile;
  std::vector<std::string> said;  // options of fit on the command line
  // score
  std::filesystem::path bank;
  std::filesystem::path maps;
  std::vector<std::string> map_formats;
  std::filesystem::path html;
  std::optional<Shard> shard;
  // both
  std::optional<double> threshold;
  double sigma = 4.0;
};

/// A kind of files of `score --maps`: the word of --map-formats, and what follows the name of the input.
struct AnomalyMapFormat {
  std::string_view word;
  std::string_view ending;
};
inline constexpr AnomalyMapFormat kAnomalyMapFormats[]{
    {"npy", ".npy"}, {"color", ".png"}, {"overlay", "-overlay.png"}};

int fit_anomalies(AnomalyCommandOptions& options);
int score_anomalies(AnomalyCommandOptions& options);

/// Loads a bank, and gives `common` the model and the input size that it was built with.
AnomalyModel load_bank(const std::filesystem::path& path, CommonOptions& common);

}  // namespace vit::app
