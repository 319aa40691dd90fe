// vit evaluate --anomaly: how well a bank separates good images from damaged ones, in a tree like MVTec's.
#pragma once

#include <filesystem>
#include <optional>

#include "apps/vit/options/options.h"

namespace vit::app {

struct AnomalyEvaluation {
  std::filesystem::path bank;
  std::filesystem::path folder;   // with good/ and a folder for each kind of defect, or with such a test/
  std::optional<double> limit{};  // of the share of good pixels, for PRO; nothing = 0.3
  bool as_json = false;
};

/// Prints image and pixel AUROC and PRO. Returns the exit code.
int evaluate_anomaly(const AnomalyEvaluation& evaluation, CommonOptions common);

}  // namespace vit::app
