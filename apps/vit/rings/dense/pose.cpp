// vit pose: keypoints in boxes of images. Each box is a crop of its own in the stream; an image is decoded
// once for all of its boxes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/boxes_file.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/draw_shapes.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/finite.h"
#include "vit/image/warp_box.h"
#include "vit/pose.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "FILE of --boxes has a line for each image, as vit detect --format json prints them: {\"file\": NAME, "
    "\"boxes\": [...]}, where a box is [x0, y0, x1, y1], an object with that as \"box\", or one with COCO's "
    "\"bbox\": [x, y, width, height].\n"
    "Without --boxes the whole image is the box. The output is one file of arrays, .safetensors or .npz: for "
    "input I keypoints.I (n, K, 3) as x, y, score and boxes.I (n, 4); with --raw heatmaps.I (n, K, h, w). Or "
    "FOLDER/, with files for each image:\n"
    "  color  NAME_color.png, the image with frames and dots, and with lines between COCO's keypoints whose "
    "scores are 0.3 or more\n"
    "A box that lies outside of the image is reported; its keypoints are an empty list in lines, NaN with a "
    "score of 0 in arrays.\n"
    "Examples:\n"
    "  vit detect --model yolos-tiny photos/ --format json > boxes.jsonl\n"
    "  vit pose --model vitpose-base-simple --boxes boxes.jsonl --label person photos/ --format json\n"
    "  vit pose --model vitpose-plus-base --expert 3 horse.jpg --output poses.npz";

constexpr const char* kPoseFormatHelp =
    "Files of FOLDER/: color; and json or text for the lines, which are json with arrays";
constexpr MapFormat kPoseFormats[]{{"color", "_color.png"}};

struct PoseOptions {
  DenseRunOptions run;
  std::filesystem::path boxes;
  std::vector<std::string> labels;  // of boxes
};

/// Images that several boxes share, decoded when the first needs them and dropped after the last.
class SharedImages {
 public:
  SharedImages(const std::vector<Input>& inputs, const DecodeOptions& options)
      : inputs_(inputs), options_(options) {}

  /// In any thread. Throws Error if the image cannot be read.
  std::shared_ptr<const Image> get(std::size_t index) {
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      entry = &entries_[index];
    }
    const std::lock_guard lock(entry->mutex);
    if (!entry->image) {
      entry->image = std::make_shared<const Image>(decode_input(inputs_[index], options_));
      entry->size = entry->image->size();
    }
    return entry->image;
  }
  /// After the last box of an input was handed out.
  ImageSize size(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return entries_[index].size;
  }
  void drop(std::size_t index) {
    const std::lock_guard lock(mutex_);
    entries_.erase(index);
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<const Image> image;
    ImageSize size;
  };
  const std::vector<Input>& inputs_;
  DecodeOptions options_;
  std::mutex mutex_;
  std::map<std::size_t, Entry> entries_;
};

/// A box of an input; none = the whole image, or preprocessed pixels.
struct Crop {
  std::size_t input = 0;
  std::optional<Box> box{};
};

/// What became of the boxes of one input.
struct ImagePoses {
  std::vector<Pose> poses;
  NamedArray heatmaps;             // of --raw, NaN for boxes outside of the image
  std::size_t outside_first = 0;   // such boxes before the first others
  ImageSize size;                  // of preprocessed pixels
  std::vector<std::string> notes;  // of boxes without keypoints
  std::string failure;
};

/// Detectors that pad an image to a square find boxes there, too.
std::string outside_note(const Box& box, ImageSize image) {
  return text("no keypoints in the box (", box.x0, ", ", box.y0, ", ", box.x1, ", ", box.y1,
              "), which lies outside of the image of ", image.width, " x ", image.height);
}

std::string line_of(const std::string& file, std::span<const Pose> poses, std::span<const std::string> labels,
                    bool is_json) {
  if (!is_json) {
    std::string out = printable(file) + "\n";
    for (const Pose& pose : poses) {
      char box[128];
      std::snprintf(box, sizeof box, "  box %.1f %.1f %.1f %.1f\n", pose.box.x0, pose.box.y0, pose.box.x1,
                    pose.box.y1);
      out += box;
      if (pose.keypoints.empty()) out += "  outside of the image: no keypoints\n";
      for (std::size_t k = 0; k < pose.keypoints.size(); ++k) {
        const Keypoint& point = pose.keypoints[k];
        char numbers[96];
        std::snprintf(numbers, sizeof numbers, "  %9.1f %9.1f  %6.3f  ", static_cast<double>(point.x),
                      static_cast<double>(point.y), static_cast<double>(point.score));
        out += numbers + (k < labels.size() ? printable(labels[k]) : std::to_string(k)) + "\n";
      }
    }
    return out;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file).key("poses").begin_array();
  for (const Pose& pose : poses) {
    write_pose(json, pose.box, pose.keypoints);
  }
  json.end_array().end_object();
  return out + "\n";
}

std::vector<NamedArray> arrays_of(const ImagePoses& found, std::size_t num_keypoints) {
  NamedArray boxes = NamedArray::of_rows("boxes", {found.poses.size(), 4});
  NamedArray points = NamedArray::of_rows("keypoints", {found.poses.size(), num_keypoints, 3});
  for (const Pose& pose : found.poses) {
    for (const double edge : {pose.box.x0, pose.box.y0, pose.box.x1, pose.box.y1})
      boxes.push(static_cast<float>(edge));
    for (std::size_t k = 0; k < num_keypoints; ++k) {
      constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
      const Keypoint point = pose.keypoints.empty() ? Keypoint{kNone, kNone, 0.0f} : pose.keypoints[k];
      for (const float number : {point.x, point.y, point.score}) points.push(number);
    }
  }
  return {std::move(points), std::move(boxes)};
}

class PoseWork : public ImageWork {
 public:
  explicit PoseWork(const PoseOptions& options)
      : options_(options), outputs_("pose", options.run, kPoseFormats, {"color"}) {
    if (!options.labels.empty() && options.boxes.empty()) fail_usage("--label requires --boxes");
  }

  int run() { return outputs_.run(*this, {options_.boxes}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const PoseEstimator estimator(outputs_.load(run, Output::heatmaps));
    labels_ = estimator.labels();
    num_keypoints_ = estimator.model()->dense_config()->find(Output::heatmaps)->channels;
    if (!options_.boxes.empty()) boxes_.emplace(BoxesFile::read(options_.boxes, options_.labels));
    outputs_.note("labels", options_.labels);
    outputs_.open(run);
    return estimator.request();
  }

  void run_inputs(ImageRun& run, const Request& request) override {
    list_crops(run);
    DecodeOptions decoding;
    if (run.model().has_preprocess_config()) decoding = run.preprocessor().decode_options();
    shared_ = std::make_unique<SharedImages>(run.inputs(), decoding);
    Session session(run.load(), options_.run.common.session);
    for_each_image(
        session, crops_.size(), [&](std::size_t i) { return source(run, i); }, request,
        [&](const StreamedImage& crop) { add_crop(run, crop); }, {.is_cancelled = interrupted});
    if (!interrupted()) report_until(run, run.inputs().size());
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  void list_crops(const ImageRun& run) {
    counts_.assign(run.inputs().size(), 0);
    for (std::size_t i = 0; i < run.inputs().size(); ++i) {
      const Input& input = run.inputs()[i];
      if (!boxes_) {
        crops_.push_back({i});
      } else if (input.pixels != nullptr) {
        failures_[i] = "preprocessed pixels are crops already; --boxes requires images";
      } else if (const std::vector<Box>* const known = boxes_->find(input.name)) {
        for (const Box& box : *known) crops_.push_back({i, box});
      } else {
        failures_[i] = "no line of " + options_.boxes.string() + " has this file";
      }
    }
    for (const Crop& crop : crops_) ++counts_[crop.input];
  }

  ImageSource source(const ImageRun& run, std::size_t index) {
    const Crop crop = crops_[index];
    const Input& input = run.inputs()[crop.input];
    if (input.pixels) return LoadPixels([&input] { return input.pixels->load(input.pixels_index); });
    return LoadPixels([this, &run, crop] {
      const std::shared_ptr<const Image> image = shared_->get(crop.input);
      const Box box = crop.box.value_or(Box::whole(image->size()));
      return run.preprocessor().run_box(*image, box);
    });
  }

  /// The results of a crop; those of its image are complete with the last.
  void add_crop(ImageRun& run, const StreamedImage& result) {
    const Crop& crop = crops_[result.index];
    report_until(run, crop.input);
    const bool prepared = run.inputs()[crop.input].pixels != nullptr;
    const ImageSize size = crop.box ? shared_->size(crop.input) : ImageSize{};
    if (size.width != 0 && internal::is_outside(*crop.box, size)) {
      current_.poses.push_back({*crop.box, {}});
      current_.notes.push_back(outside_note(*crop.box, size));
      add_heatmaps({});
    } else if (!result.outputs) {
      if (current_.failure.empty()) current_.failure = result.failure;
    } else {
      const TensorView<const float> maps = (*result.outputs)[Output::heatmaps];
      if (std::string defect = defect_of(maps.flat(), "the heat maps are"); !defect.empty()) {
        current_.failure = std::move(defect);
      } else if (prepared) {
        current_.poses.push_back({Box::whole(result.size), keypoints_of(*result.outputs)});
        current_.size = result.size;
      } else {
        const Box box = crop.box.value_or(Box::whole(shared_->size(crop.input)));
        current_.poses.push_back({box, keypoints_of(*result.outputs, box)});
      }
      add_heatmaps(maps);
    }
    if (++handed_out_ == counts_[crop.input]) report_until(run, crop.input + 1);
  }

  void add_heatmaps(TensorView<const float> maps) {
    if (!options_.run.raw) return;
    NamedArray& all = current_.heatmaps;
    if (maps.empty() && all.shape.empty()) {
      ++current_.outside_first;
      return;
    }
    if (all.shape.empty()) {
      all = NamedArray::of_rows("heatmaps", {0, maps.dim(0), maps.dim(1), maps.dim(2)});
      for (; current_.outside_first != 0; --current_.outside_first) add_heatmaps({});
    }
    ++all.shape.front();
    const std::size_t count = all.shape[1] * all.shape[2] * all.shape[3];
    for (std::size_t i = 0; i < count; ++i)
      all.push(maps.empty() ? std::numeric_limits<float>::quiet_NaN() : maps.data()[i]);
  }

  /// Writes the inputs below `end` that are not written yet; of all but the first no crop was computed.
  void report_until(ImageRun& run, std::size_t end) {
    for (; next_ < end; ++next_) {
      if (const auto known = failures_.find(next_); known != failures_.end())
        current_.failure = known->second;
      if (current_.failure.empty()) current_.failure = failure_of([&] { write(run); });
      if (current_.failure.empty()) {
        run.progress().add_done(1);
      } else {
        run.progress().add_failed(run.inputs()[next_].name, current_.failure);
      }
      shared_->drop(next_);
      current_ = {};
      handed_out_ = 0;
    }
  }

  void write(ImageRun& run) {
    const Input& input = run.inputs()[next_];
    if (outputs_.writes_arrays()) {
      std::vector<NamedArray> arrays = arrays_of(current_, num_keypoints_);
      if (options_.run.raw) {
        arrays.clear();
        if (!current_.heatmaps.shape.empty()) arrays.push_back(std::move(current_.heatmaps));
      }
      outputs_.add_arrays(run, next_, arrays);
    }
    if (outputs_.writes("color") || outputs_.has_page()) draw(run, input);
    const bool json = options_.run.has_word("json") || outputs_.writes_arrays();
    run.progress().clear();
    for (const std::string& note : current_.notes) print_failure(input.name, note);
    MapOutputs::print(run, line_of(input.name, current_.poses, labels_, json));
  }

  /// A copy of the image; black for preprocessed pixels.
  Image picture_of(const Input& input) {
    if (input.pixels != nullptr) return Image(current_.size.height, current_.size.width);
    const std::shared_ptr<const Image> image = shared_->get(next_);
    Image copy(image->height(), image->width());
    std::copy_n(image->data(), 3 * image->height() * image->width(), copy.data());
    return copy;
  }

  /// The image with its frames, lines and dots.
  void draw(const ImageRun& run, const Input& input) {
    Image picture = picture_of(input);
    for (std::size_t i = 0; i < current_.poses.size(); ++i) {
      if (boxes_) draw_frame(picture, current_.poses[i].box, voc_color(i + 1));
      draw_keypoints(picture, current_.poses[i], labels_, voc_color(i + 1));
    }
    if (outputs_.writes("color")) write_png(outputs_.path_of(next_, "color"), picture);
    if (!outputs_.has_page()) return;
    PageItem item = named_item(input.name);
    item.note = text(picture.width(), " x ", picture.height(), "; ", count_of(current_.poses.size(), "pose"));
    outputs_.add_to_page(run, input, std::move(item), picture);
  }

  const PoseOptions& options_;
  MapOutputs outputs_;
  std::span<const std::string> labels_;  // of the model
  std::size_t num_keypoints_ = 0;
  std::optional<BoxesFile> boxes_;
  std::vector<Crop> crops_;
  std::vector<std::size_t> counts_;              // of crops, of each input
  std::map<std::size_t, std::string> failures_;  // of inputs without crops
  std::unique_ptr<SharedImages> shared_;
  ImagePoses current_;          // of input next_
  std::size_t handed_out_ = 0;  // crops of it
  std::size_t next_ = 0;
};

}  // namespace

Command pose_command() {
  const auto options = std::make_shared<PoseOptions>();
  Command command{.name = "pose",
                  .summary = "Keypoints in boxes of images",
                  .footer = kFooter,
                  .options = {{.name = "--boxes",
                               .type_name = "FILE",
                               .help = "JSON lines with the boxes of each image; default: the whole image",
                               .target = text_target(options->boxes)},
                              {.name = "--label",
                               .type_name = "NAME",
                               .help = "Boxes of this label only, repeatable",
                               .target = list_target(options->labels, not_empty),
                               .occurs = Occurs::repeated}},
                  .run = [options] { return PoseWork(*options).run(); }};
  add_dense_run_options(command.options, options->run, kPoseFormats, kPoseFormatHelp);
  return command;
}

}  // namespace vit::app
