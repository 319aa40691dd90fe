// vit show: visualizations of what a model sees, and their values.
#include <memory>
#include <optional>
#include <string>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/rings/show/show_run.h"
#include "apps/vit/run/run_images.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "Kinds:\n"
    "  pca         first three principal components of the patches of all inputs as red, green and blue; the "
    "largest loading of each is positive\n"
    "  attention   softmax weights of the query over the patches, of one head, all, or their mean\n"
    "  similarity  cosine of the patch at --query in the first input with all patches of all inputs\n"
    "  match       two inputs: lines between patches that are each other's nearest by cosine\n"
    "  depth       what vit depth gives, colored, next to the image; --style plain: the colors only\n"
    "  segments    what vit segment gives, over the image; --style plain: the colors only\n"
    "Patches are those after the final norm for the last block, and what leaves the block for another "
    "--layer.\n"
    "Class and register tokens are left out. X,Y is a pixel of the source image.\n"
    "--foreground splits at zero of component 1; the side with more patches on the borders is the "
    "background.\n"
    "Arrays of --data: pca mean (C), components (3, C), values.I (h, w, 3), with --foreground foreground.I "
    "(h, w);\n"
    "  attention attention.I (heads, h, w), with --rollout (1, h, w); similarity similarity.I (h, w);\n"
    "  match pairs (m, 4) as x0, y0, x1, y1 in source pixels, scores (m); depth depth.I (H, W); segments\n"
    "  segmentation.I (H, W) int32, -1 = none. files lists the inputs, I counts them.\n"
    "Examples:\n"
    "  vit show photos/ --what pca --foreground --output pca.png\n"
    "  vit show photo.jpg --what attention --head all --size 448 --output heads.png\n"
    "  vit show a.jpg b.jpg --what similarity --query 120,80 --output similar/ --data similar.npz\n"
    "  vit show a.jpg b.jpg --what match --output match.png";

class Showing : public ImageWork {
 public:
  explicit Showing(const ShowOptions& options) : options_(options) {}

  std::optional<Request> load(ImageRun& run) override {
    const InputList& list = run.list();
    if (*options_.what == What::match && list.inputs.size() + list.failures.size() != 2)
      fail_usage("--what match needs two images, found ", list.inputs.size());
    patches_.emplace(run.load(), options_.common.session);
    return Request();
  }

  void run_inputs(ImageRun& run, const Request&) override {
    Show show(options_, run.inputs(), *patches_, run.progress());
    show.draw();
    summary_ = show.summary();
  }

  int finish(ImageRun& run) override {
    run.progress().finish(summary_);
    return 0;
  }

 private:
  const ShowOptions& options_;
  std::optional<PatchRun> patches_;
  std::string summary_;
};

int show(const ShowOptions& options) {
  check_show_options(options);
  Showing work(options);
  return run_images({.name = "show",
                     .common = options.common,
                     .inputs = options.inputs,
                     .files = {options.html},
                     .writes = {options.output, options.data}},
                    work);
}

}  // namespace

Command show_command() {
  const auto options = std::make_shared<ShowOptions>();
  Command command{
      .name = "show",
      .summary = "Draw what a model sees: PCA of patches, attention, similarity, matches, depth, segments",
      .footer = kFooter,
      .options = show_option_list(*options),
      .run = [options] { return show(*options); }};
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
