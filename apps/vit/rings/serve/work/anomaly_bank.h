// A bank of `vit anomaly fit` as a model of the server.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "apps/vit/options/options.h"
#include "apps/vit/rings/serve/work/map_form.h"
#include "apps/vit/rings/serve/work/output_task.h"
#include "vit/image/preprocess.h"

namespace vit::app {

struct AnomalyAsked {
  MapForm form = MapForm::png;
  std::optional<double> threshold{};  // in place of the bank's
  double sigma = 4.0;                 // pixels of the Gaussian that smooths maps
};

/// Threads may share it.
class AnomalyBank {
 public:
  /// Whether a file is a bank.
  static bool is_bank(const std::filesystem::path& file);
  /// Loads it, and gives `common` the model and the input size that it was made with. Throws Error.
  AnomalyBank(const std::filesystem::path& file, CommonOptions& common);
  ~AnomalyBank();

  /// {"index", "score", "threshold", "anomalous", "width", "height", "map"}; of a PNG that is no picture also
  /// "map_max", the value of 65535. `preprocessor`: that of the model's images, which outlives the task,
  /// as the bank does.
  std::shared_ptr<OutputTask> task(const Preprocessor& preprocessor, const AnomalyAsked& asked) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit::app
