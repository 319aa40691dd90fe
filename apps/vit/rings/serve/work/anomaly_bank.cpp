#include "apps/vit/rings/serve/work/anomaly_bank.h"

#include <system_error>

#include "apps/vit/outputs/drawing.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/anomaly/anomaly.h"
#include "apps/vit/rings/anomaly/anomaly_results.h"
#include "apps/vit/rings/serve/work/work.h"
#include "vit/anomaly.h"
#include "vit/config.h"
#include "vit/io/safetensors.h"

namespace vit::app {
namespace {

class AnomalyTask : public OutputTask {
 public:
  AnomalyTask(const AnomalyModel& bank, const Preprocessor& preprocessor, const AnomalyAsked& asked)
      : bank_(bank), preprocessor_(preprocessor), asked_(asked) {}

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    patch_size_ = model->config().patch.size;
    return bank_.request(*model);
  }

  void write(internal::JsonWriter& json, const ImageOutputs& outputs, const WorkItem& item,
             std::size_t index) const override {
    AnomalyResult result = bank_.score(outputs, 1);
    if (asked_.threshold) result.threshold = static_cast<float>(*asked_.threshold);
    json.begin_object().member("index", index);
    write_anomaly(json, result);
    json.member("width", item.image_size.width).member("height", item.image_size.height);
    if (asked_.form != MapForm::none) {
      check_map_size(item.image_size);
      write_map(json, anomaly_pixels(result, item.image_size, &preprocessor_, patch_size_, asked_.sigma));
    }
    json.end_object();
  }

 private:
  void write_map(internal::JsonWriter& json, const AnomalyPixels& pixels) const {
    if (asked_.form == MapForm::npy) return write_npy(json, "map", "<f4", pixels.map);
    if (asked_.form == MapForm::color)
      return write_base64(json, "map", encode_png(draw_colors(pixels.map, 0, pixels.highest, nullptr)));
    json.member("map_max", pixels.highest);
    Tensor<float> seen(pixels.map.shape());
    for (std::size_t i = 0; i < seen.num_elements(); ++i) {
      const float value = pixels.map.data()[i];
      seen.data()[i] = value > 0 ? value : 0.0f;  // what the crop hides is NaN
    }
    write_base64(json, "map",
                 encode_gray_png(to_full_range(seen, 0, static_cast<float>(pixels.highest), 65535.0), 16));
  }

  const AnomalyModel& bank_;
  const Preprocessor& preprocessor_;
  AnomalyAsked asked_;
  std::size_t patch_size_ = 0;
};

}  // namespace

struct AnomalyBank::Parts {
  AnomalyModel bank;
};

AnomalyBank::AnomalyBank(const std::filesystem::path& file, CommonOptions& common)
    : parts_(std::make_unique<const Parts>(Parts{load_bank(file, common)})) {}
AnomalyBank::~AnomalyBank() = default;

bool AnomalyBank::is_bank(const std::filesystem::path& file) {
  std::error_code error;
  if (file.extension() != ".safetensors" || !std::filesystem::is_regular_file(file, error)) return false;
  return internal::open_safetensors(file).metadata().contains("vit_anomaly");
}

std::shared_ptr<OutputTask> AnomalyBank::task(const Preprocessor& preprocessor,
                                              const AnomalyAsked& asked) const {
  return std::make_shared<AnomalyTask>(parts_->bank, preprocessor, asked);
}

}  // namespace vit::app
