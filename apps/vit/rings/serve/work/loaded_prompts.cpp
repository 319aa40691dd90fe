#include "apps/vit/rings/serve/work/loaded_prompts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "apps/vit/options/load_model.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/prompt_results.h"
#include "apps/vit/rings/serve/work/output_task.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"

namespace vit::app {
namespace {

using internal::JsonWriter;

constexpr Where kPromptAnswer{"answer", ErrorKind::unsupported};
constexpr std::size_t kMostMaskBytes = std::size_t{512} << 20;  // of one image, a byte a pixel
constexpr std::size_t kMasksOfObject = 3;

std::string_view type_of(internal::Dtype dtype) {
  return dtype == internal::Dtype::u8 ? "|u1" : dtype == internal::Dtype::i32 ? "<i4" : "<f4";
}

void write_arrays(JsonWriter& json, std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays)
    write_npy(json, array.name, type_of(array.dtype), array.shape, array.bytes);
}

/// 255 where a mask is set.
std::vector<std::byte> mask_png(TensorView<const std::uint8_t> mask) {
  Tensor<std::uint16_t> gray(mask.shape());
  std::ranges::transform(mask.flat(), gray.data(),
                         [](std::uint8_t pixel) { return static_cast<std::uint16_t>(pixel != 0 ? 255 : 0); });
  return encode_gray_png(gray, 8);
}

class PromptsOfModel : public LoadedPrompts {
 public:
  PromptsOfModel(std::shared_ptr<const PromptModel> model, int threads)
      : segmenter_(std::move(model), {.threads = threads}) {}

  const std::shared_ptr<const Model>& image() const override { return segmenter_.model().image(); }
  Request request() const override { return segmenter_.model().request(); }
  bool takes(PromptUse use) const override { return segmenter_.model().takes(use); }
  std::size_t num_parameters() const override {
    return segmenter_.model().num_parameters() - image()->report().num_parameters;
  }

  std::shared_ptr<const KeptImage> encode(const ImageOutputs& computed, const Preprocessor& preprocessor,
                                          ImageSize image) override {
    const ImageOutputs outputs = computed.of(frame_of(preprocessor, image));
    const Request asked = request();
    for (const OutputKey& key : asked.indexed())
      check_finite(outputs[key].flat(), kPromptAnswer.with(ErrorKind::format), "the features are");
    const bool takes_both = takes(PromptUse::phrases) && takes(PromptUse::objects);
    auto features = segmenter_.encode(outputs, takes_both                  ? PromptUse::both
                                               : takes(PromptUse::phrases) ? PromptUse::phrases
                                                                           : PromptUse::objects);
    const std::size_t bytes = features->bytes();
    return std::make_shared<const KeptImage>(
        KeptImage{.features = std::move(features), .size = image, .num_bytes = bytes, .by = this});
  }

  void answer(JsonWriter& json, const PromptQuestion& question, const KeptImage& image, std::size_t index,
              const std::function<void()>& before_each) override {
    check_map_size(image.size);
    const PromptFeatures& features = *image.features;
    json.begin_object().member("index", index);
    if (!question.objects.empty()) {
      write_objects(json, question, features, before_each);
    } else {
      ClassPrompts asked{.labels = question.labels,
                         .prompts = question.prompts,
                         .options = question.options,
                         .before_each = before_each};
      asked.options.max_mask_bytes = kMostMaskBytes;
      write_classes(json, question, features, asked);
    }
    json.end_object();
  }

 private:
  void write_objects(JsonWriter& json, const PromptQuestion& question, const PromptFeatures& features,
                     const std::function<void()>& before_each) {
    const ImageSize size = features.image();
    const std::size_t most = kMostMaskBytes / (kMasksOfObject * size.height * size.width);
    VIT_CHECK(question.objects.size() <= most, kPromptAnswer, question.objects.size(),
              " objects of an image of ", size.width, " x ", size.height, " pixels; an answer has at most ",
              most);
    std::vector<ObjectMasks> all;
    for (const AskedObject& object : question.objects) {
      before_each();
      all.push_back(segmenter_.segment_object(
          features, {.points = object.points, .box = object.box, .mask = object.mask.view()},
          {.multimask = object.multimask, .rule = question.options.rule}));
    }
    const FoundMasks found = masks_of_objects(all, question.all_masks, size);
    if (!question.raw) return write_masks_as(json, question.form, found);
    write_found(json, found, "instance");
    write_size(json, size);
    write_arrays(json, raw_of_objects(all));
  }

  void write_classes(JsonWriter& json, const PromptQuestion& question, const PromptFeatures& features,
                     const ClassPrompts& asked) {
    if (question.only_boxes) {
      write_boxes(json, find_boxes(segmenter_, features, asked));
    } else if (question.raw) {
      const FoundInstances all = find_instances(segmenter_, features, asked);
      write_found(json, all.found, "instance");
      write_size(json, features.image());
      write_arrays(json, find_raw(segmenter_, features, asked));
    } else if (question.is_semantic) {
      write_pixels(json, question.form, find_pixels(segmenter_, features, asked), asked.prompts.size());
    } else {
      write_masks_as(json, question.form, find_instances(segmenter_, features, asked).found);
    }
  }

  static void write_size(JsonWriter& json, ImageSize size) {
    json.member("width", size.width).member("height", size.height);
  }

  static void write_pixels(JsonWriter& json, MaskForm form, const SegmentMap& map, std::size_t num_classes) {
    write_segments(json, map, SegmentTask::semantic);
    write_size(json, {map.map.dim(0), map.map.dim(1)});
    if (form == MaskForm::png) write_base64(json, "segmentation", ids_png(map.map, num_classes));
    if (form == MaskForm::color)
      write_base64(json, "segmentation", encode_png(colored_ids(map.map, segment_colors(num_classes))));
    const NamedArray array = NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map));
    if (form == MaskForm::npy) write_arrays(json, std::span(&array, 1));
  }

  static void write_masks_as(JsonWriter& json, MaskForm form, const FoundMasks& found) {
    write_found(json, found, "instance", [&](JsonWriter& segment, std::size_t i) {
      if (form == MaskForm::png) write_base64(segment, "mask", mask_png(found.masks[i]));
      if (form == MaskForm::runs) write_runs(segment, found.masks[i]);
    });
    write_size(json, found.image);
    if (form == MaskForm::npy) return write_arrays(json, arrays_of_masks(found));
    if (form == MaskForm::none || form == MaskForm::runs) return;
    const std::size_t count = found.segments.size();
    const Tensor<std::int32_t> best = found.best_of_pixels();
    if (form == MaskForm::png) return write_base64(json, "segmentation", ids_png(best, count));
    write_base64(json, "segmentation", encode_png(colored_ids(best, segment_colors(count))));
  }

  PromptSegmenter segmenter_;
};

}  // namespace

std::shared_ptr<LoadedPrompts> open_prompts(const CommonOptions& common) {
  const std::filesystem::path path = model_path(common);
  if (!PromptModel::is_at(path, common.model_options)) return nullptr;
  return std::make_shared<PromptsOfModel>(PromptModel::load(path, common.model_options, text_options(common)),
                                          common.session.threads);
}

}  // namespace vit::app
