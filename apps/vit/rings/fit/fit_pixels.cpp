// vit fit --truth: learns classes of pixels from labels of some of them.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/pixel_labels.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/result_names.h"
#include "apps/vit/rings/fit/fit_options.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/io/class_names.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPixelGroup = "Classes of pixels";
constexpr Named<PixelUpsampling> kUpsamplings[]{{"bilinear", PixelUpsampling::bilinear},
                                                {"shift", PixelUpsampling::shift},
                                                {"guided", PixelUpsampling::guided}};

/// --upsample WAY|FILE.
Target upsample_target(PixelFitOptions& options) {
  Target target = choice_target(options.upsampling, kUpsamplings);
  target.store = [&options](const std::vector<std::string>& values) {
    const std::string& value = not_empty(values.front());
    const auto way = std::ranges::find(kUpsamplings, value, &Named<PixelUpsampling>::first);
    std::error_code error;
    if (way == std::end(kUpsamplings) && !fs::is_regular_file(value, error))
      fail_value("bilinear, shift, guided, or the file of a learned upsampler (NAF, AnyUp, JAFAR)", value);
    options.upsampling = way == std::end(kUpsamplings) ? PixelUpsampling::learned : way->second;
    options.upsampler = way == std::end(kUpsamplings) ? fs::path(value) : fs::path();
  };
  return target;
}

/// The target, which also notes that the option is given.
Target noting(PixelFitOptions& options, const char* name, Target target) {
  target.store = [&options, name, store = std::move(target.store)](const std::vector<std::string>& values) {
    options.said.emplace_back(name);
    store(values);
  };
  return target;
}

int parse_block(const std::string& value) {
  const bool is_negative = value.starts_with('-');
  const auto number = static_cast<int>(parse_integer(is_negative ? value.substr(1) : value, 0, 1023));
  return is_negative ? -number : number;
}

/// The blocks of --layers, or of --features block.K,...; none for the patches after the final norm.
std::vector<std::size_t> layers_of(const FitCommandOptions& options, const Model& model) {
  const auto depth = static_cast<int>(model.config().encoder.depth);
  std::vector<std::size_t> out;
  const auto add = [&](int block) {
    if (block < -depth || block >= depth)
      fail_usage(
          text("--layers: the model has blocks 0 to ", depth - 1, " (or -1 to ", -depth, "), found ", block));
    out.push_back(static_cast<std::size_t>(block < 0 ? block + depth : block));
  };
  for (const int block : options.pixels.layers) add(block);
  if (!out.empty() && !options.features.empty()) fail_usage("--layers and --features: give only one of them");
  if (options.features.empty() || options.features == "patches") return out;
  for (const std::string& word : split_at_commas(options.features)) {
    constexpr std::string_view kBlock = "block.";
    if (!word.starts_with(kBlock))
      fail_usage(
          "--features with --truth: patches, or blocks such as block.3,block.11 (--layers 3,11); found '",
          word, "'");
    add(parse_block(word.substr(kBlock.size())));
  }
  return out;
}

}  // namespace

PixelOptions pixel_options(const FitCommandOptions& options, const Model& model) {
  PixelOptions out{.layers = layers_of(options, model),
                   .size = options.common.session.input_size,
                   .upsampling = options.pixels.upsampling,
                   .color = options.pixels.color};
  if (out.upsampling == PixelUpsampling::learned)
    out.upsampler = PixelUpsampler::load(options.pixels.upsampler);
  if (!options.pixels.scales.empty()) out.scales = options.pixels.scales;
  if (options.pixels.shifts) {
    if (out.upsampling != PixelUpsampling::shift) fail_usage("--shifts is for --upsample shift");
    out.shifts = *options.pixels.shifts;
  }
  return out;
}

namespace {

/// The file of --names LIST|FILE, or nothing.
fs::path names_file(const std::string& value) {
  std::error_code error;
  return fs::is_regular_file(value, error) ? fs::path(value) : fs::path();
}

/// The names of --names LIST|FILE.
std::vector<std::string> names_of(const std::string& value) {
  if (names_file(value).empty()) return words_of(value, "names, such as leaf,stem, or a file of them");
  std::vector<std::string> names = internal::read_class_list(value).names;
  const auto nameless = std::ranges::find_if(names, is_blank);
  VIT_CHECK(nameless == names.end(), "fit", "--names: ", value, ": class ", nameless - names.begin(),
            " has no name");
  return names;
}

const char* described(LabelKind kind) {
  switch (kind) {
    case LabelKind::indices: return "indices";
    case LabelKind::colors: return "strokes, each color of which is a class";
    case LabelKind::coco: return "COCO's categories";
    case LabelKind::labelme: return "names of LabelMe";
    case LabelKind::cvat: return "names of CVAT";
  }
  return "";
}

class PixelFitting : public ImageWork {
 public:
  explicit PixelFitting(const FitCommandOptions& options)
      : options_(options), files_(options.pixels.truth, options.pixels.unlabeled) {}

  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    extractor_.emplace(model, pixel_options(options_, *model), options_.common.session.threads);
    names_ = result_names(run.inputs());
    read_classes(run.list());
    return Request(Output::patches);  // each image is run by the extractor
  }

  void run_inputs(ImageRun& run, const Request&) override {
    run.for_each_input([&](std::size_t index) {
      return failures_[index].empty() ? failure_of([&] { learn(run, index); }) : failures_[index];
    });
  }

  int finish(ImageRun& run) override {
    if (interrupted()) return 0;
    run.progress().finish("");
    if (run.inputs().size() == 1 && run.progress().num_failed() > 0) return 1;  // its line says it all
    VIT_CHECK(trainer_.num_pixels() > 0, "fit", options_.pixels.truth.string(),
              ": no labels of an image that could be read");
    release_interrupts();  // nothing is lost until the head is written
    PixelHead head = trainer_.fit(options_.method, options_.library_options());
    head.classifier.labels = labels_;
    head.sources = sources_;
    head.has_background = has_background();
    head.attach(run.model());
    head.classifier.record = RunFacts{
        .model = run_model(options_.common, run.model(), std::span(&head.classifier.features, 1)),
        .others = {}}.json();
    hold_interrupts();
    head.save(options_.output);
    note_folds(head);
    print_result(options_.format == PrintFormat::json ? as_json(head, run.progress().num_failed())
                                                      : as_text(head));
    return 0;
  }

 private:
  /// Reads all labels for their classes, before hours of computing; images without labels are left out.
  void read_classes(InputList& list) {
    std::vector<Input> kept;
    std::vector<fs::path> names;
    std::size_t num_without = 0;
    bool has_empty = false;  // labels that label no pixel
    std::string without;
    for (std::size_t i = 0; i < list.inputs.size(); ++i) {
      bool has_labels = false;
      const std::string failure = failure_of([&] {
        const std::optional<PixelLabels> labels = files_.read(list.inputs[i], names_[i], std::nullopt);
        has_labels = labels && (!labels->found.empty() || labels->values.num_elements() == 1);
        if (labels) classes_.add(*labels);
        has_empty = has_empty || (labels && !has_labels);
      });
      if (failure.empty() && !has_labels) {
        if (num_without++ == 0) without = list.inputs[i].name;
        continue;
      }
      kept.push_back(std::move(list.inputs[i]));
      names.push_back(names_[i]);
      failures_.push_back(failure);
    }
    const std::size_t num_images = list.inputs.size();
    list.inputs = std::move(kept);
    names_ = std::move(names);
    const std::string truth = printable(options_.pixels.truth.string());
    const bool has_failures = std::ranges::any_of(failures_, [](const std::string& f) { return !f.empty(); });
    VIT_CHECK(classes_.size() > 0 || has_failures, "fit", truth, ": no labels of any of ", num_images,
              num_images == 1 ? " image" : " images", " (", printable(without),
              has_empty ? "): there are files of labels, and no pixel in them has a label"
                        : "); labels are NAME.png or NAME.json (LabelMe) in a folder, or a file of COCO or "
                          "CVAT that names the images");
    if (num_without > 0)
      list.notes.push_back(
          {"", text(num_without, " of ", num_images, " images have no labels in ", truth,
                    " and are left out: ", printable(without), num_without > 1 ? ", ..." : "")});
    name_classes();
  }

  void name_classes() {
    if (!options_.pixels.unlabeled.empty() && classes_.size() > 0 && classes_.kind() != LabelKind::indices)
      fail_usage("--unlabeled is for indices of gray and palette PNG files, and the labels in ",
                 printable(options_.pixels.truth.string()), " are ", described(classes_.kind()));
    classes_.sort(files_);
    if (has_background()) sources_.push_back(options_.pixels.background);
    for (const std::int64_t value : classes_.values())
      sources_.push_back(files_.name_of(classes_.kind(), value));
    labels_ = sources_;
    VIT_CHECK(labels_.size() != 1 ||
                  std::ranges::any_of(failures_, [](const std::string& f) { return !f.empty(); }),
              "fit", printable(options_.pixels.truth.string()), ": all labels are of one class, ",
              printable(labels_.front()),
              "; label some of what it is not, too, or call all that is not labeled with --background NAME");
    if (options_.pixels.names.empty()) return;
    labels_ = names_of(options_.pixels.names);
    VIT_CHECK(labels_.size() == sources_.size(), "fit", "--names has ", labels_.size(),
              " names, and the labels have ", sources_.size(), sources_.size() == 1 ? " class" : " classes",
              ": ", joined(sources_));
    std::set<std::string> seen;
    for (const std::string& name : labels_)
      VIT_CHECK(seen.insert(name).second, "fit", "--names has ", printable(name),
                " twice; results could not distinguish the two classes");
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string out;
    constexpr std::size_t kMost = 10;
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
      out += (i == 0 ? "" : ", ") + printable(names[i]);
    return names.size() > kMost ? out + ", ..." : out;
  }

  bool has_background() const { return !options_.pixels.background.empty(); }

  void learn(ImageRun& run, std::size_t i) {
    const Input& input = run.inputs()[i];
    VIT_CHECK(input.pixels == nullptr, "fit", "preprocessed pixels have no image whose pixels are labeled");
    const Image image = decode_input(input, run.preprocessor().decode_options());
    const std::optional<PixelLabels> labels = files_.read(input, names_[i], image.size());
    const std::size_t height = labels->values.dim(0), width = labels->values.dim(1);
    VIT_CHECK(height == image.height() && width == image.width(), (Where{"fit", ErrorKind::mismatch}),
              labels->file, ": labels of ", width, " x ", height, " pixels for an image of ", image.width(),
              " x ", image.height());
    Tensor<std::int32_t> classes = classes_.classes_of(*labels);
    if (has_background()) {  // which is the first class
      for (std::int32_t& label : classes.flat()) ++label;
    }
    trainer_.add(extractor_->extract(image), classes, options_.common.session.threads);
  }

  void note_folds(const PixelHead& head) const {
    if (head.held_out != HeldOut::nothing || options_.common.quiet) return;
    print_failure("", text("no class has two strokes, and one image has labels: no cross-validation",
                           head.classifier.strength ? text(", strength ", *head.classifier.strength) : ""));
  }

  std::string as_json(const PixelHead& head, std::size_t num_failed) const {
    JsonValue out{{"images", head.num_images},
                  {"classes", head.classifier.labels.size()},
                  {"labeled_pixels", head.num_pixels},
                  {"method", to_string(head.classifier.method)},
                  {"features", head.classifier.features},
                  {"layers", JsonValue::array()},
                  {"upsample", to_string(head.options.upsampling)},
                  {"labels", JsonValue::array()},
                  {"held_out", to_string(head.held_out)},
                  {"cross_validated_iou", nullptr},
                  {"strength", nullptr},
                  {"failed", num_failed}};
    if (head.options.upsampler != nullptr) out["upsampler"] = head.options.upsampler->name();
    for (const std::size_t layer : head.options.layers) out["layers"].push_back(layer);
    for (const std::string& label : head.classifier.labels) out["labels"].push_back(label);
    if (head.cross_validated_iou) out["cross_validated_iou"] = *head.cross_validated_iou;
    if (head.classifier.strength) out["strength"] = *head.classifier.strength;
    return out.dump() + "\n";
  }

  std::string as_text(const PixelHead& head) const {
    std::string out = text(head.classifier.labels.size(), " classes of pixels (",
                           joined(head.classifier.labels), ") from ", head.num_pixels, " labeled ones of ",
                           head.num_images, head.num_images == 1 ? " image, " : " images, ",
                           to_string(head.classifier.method), " on ", head.classifier.features);
    char number[96];
    if (head.cross_validated_iou) {
      std::snprintf(number, sizeof number, ", mean IoU %.2f %% of %zu-fold cross-validation by %s",
                    100 * *head.cross_validated_iou, head.classifier.num_folds,
                    head.held_out == HeldOut::images ? "image" : "stroke");
      out += number;
    }
    if (head.classifier.strength) {
      std::snprintf(number, sizeof number, ", strength %.4g", *head.classifier.strength);
      out += number;
    }
    return out + ": " + printable(options_.output.string()) + "\n";
  }

  const FitCommandOptions& options_;
  LabelFiles files_;
  LabelClasses classes_;
  std::optional<PixelExtractor> extractor_;
  PixelTrainer trainer_;
  std::vector<fs::path> names_;
  std::vector<std::string> failures_;          // of the labels of each input
  std::vector<std::string> sources_, labels_;  // of each class
};

}  // namespace

void add_pixel_fit_options(std::vector<Option>& list, PixelFitOptions& options) {
  const std::size_t first = list.size();
  list.push_back(
      {.name = "--truth",
       .type_name = "PATH",
       .help = "Labels of pixels of the images: a folder with NAME.png (8 bits gray or with a palette, "
               "255 = not labeled; or strokes on a transparent one, each color a class) or NAME.json "
               "(LabelMe), or a file of COCO (.json) or CVAT for images (.xml)",
       .target = text_target(options.truth)});
  list.push_back(
      {.name = "--paint",
       .type_name = "PAGE.html",
       .help = "Write a page to paint strokes on the images, which shows the classes of all pixels at once "
               "and gives strokes, masks and a head to download; it works without a server",
       .target = text_target(options.paint)});
  list.push_back(
      {.name = "--names",
       .type_name = "LIST|FILE",
       .help = "Names of the classes in their order: by index, by id of COCO, by name of LabelMe and CVAT, "
               "by first appearance of a color",
       .target = text_target(options.names)});
  list.push_back({.name = "--background",
                  .type_name = "NAME",
                  .help = "All pixels without a label are a class of this name, the first",
                  .target = text_target(options.background)});
  list.push_back(
      {.name = "--unlabeled",
       .type_name = "N",
       .help = "An index that is no label, besides 255",
       .target = list_target(options.unlabeled,
                             [](const std::string& value) { return parse_integer(value, 0, 255); }),
       .occurs = Occurs::list});
  list.push_back(
      {.name = "--layers",
       .type_name = "LIST",
       .help = "Blocks whose features are joined, from 0, or -1, -2 from the end; default: the patches "
               "after the final norm",
       .target = list_target(options.layers, parse_block),
       .occurs = Occurs::list});
  list.push_back({.name = "--scales",
                  .type_name = "LIST",
                  .help = "Features at these multiples of --size are joined",
                  .target = list_target(options.scales,
                                        [](const std::string& value) { return parse_real(value, 0.01, 16); }),
                  .occurs = Occurs::list});
  list.push_back(
      {.name = "--upsample",
       .type_name = "WAY|FILE",
       .help = "From patches to pixels: bilinear; shift, the image is moved by parts of a patch in "
               "several passes; guided, along the edges of the image; or the published file of a network "
               "(NAF, AnyUp, JAFAR)",
       .target = upsample_target(options)});
  list.push_back(
      {.name = "--shifts",
       .type_name = "N",
       .help = "Passes along each axis of --upsample shift",
       .target = parsed_target(
           options.shifts, [](const std::string& value) { return parse_integer(value, 1, 16); }, "2")});
  list.push_back({.name = "--channels-of-color",
                  .type_name = "",
                  .help = "Red, green and blue of a pixel are features, too",
                  .flag = &options.color});
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].group = kPixelGroup;
    if (list[i].flag == nullptr && list[i].name != "--truth" && list[i].name != "--paint") {
      static constexpr const char* kNames[]{"--truth",      "--paint",     "--names",
                                            "--background", "--unlabeled", "--layers",
                                            "--scales",     "--upsample",  "--shifts"};
      list[i].target = noting(options, kNames[i - first], std::move(list[i].target));
    }
  }
}

void check_pixel_fit_options(const PixelFitOptions& options) {
  if (options.are_given()) return;
  if (!options.said.empty()) fail_usage(options.said.front(), " is for classes of pixels, with --truth");
  if (options.color) fail_usage("--channels-of-color is for classes of pixels, with --truth");
}

int fit_pixels(const FitCommandOptions& options) {
  PixelFitting work(options);
  return run_images(
      {.name = "fit",
       .common = options.common,
       .inputs = options.inputs,
       .reads = {options.pixels.truth, options.pixels.upsampler, names_file(options.pixels.names)},
       .files = {options.output}},
      work);
}

}  // namespace vit::app
