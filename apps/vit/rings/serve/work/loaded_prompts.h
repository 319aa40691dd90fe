// What a request asks of a model of prompts, and the model in memory that answers it. The interface is that
// of every build; without prompts or without dense heads there is no such model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"
#include "apps/vit/rings/serve/work/kept_images.h"
#include "vit/io/json_writer.h"
#include "vit/prompts.h"

namespace vit::app {

/// How the masks of an answer are written.
enum class MaskForm {
  none,   // not at all
  png,    // PNG in base64: ids, and the mask of each segment
  color,  // PNG in base64: colors of the ids
  npy,    // .npy in base64: the numbers
  runs,   // run lengths of each segment, as COCO's tools read them
};

/// One object.
struct AskedObject {
  std::vector<ObjectPoint> points{};
  std::optional<Box> box{};
  Tensor<float> mask{};  // logits (h, w); empty = none
  bool multimask = true;
};

/// What is asked of one image: the instances of classes, or objects.
struct PromptQuestion {
  std::vector<std::string> labels{};  // of the classes
  std::vector<Prompt> prompts{};      // one for each class
  std::vector<AskedObject> objects{};
  PromptOptions options{};
  bool is_semantic = false;  // the pixels of classes, not instances
  bool only_boxes = false;   // no work on masks
  bool all_masks = false;    // of an object, not the best one
  bool raw = false;          // npy: what the model gives
  MaskForm form = MaskForm::png;

  std::size_t count() const { return prompts.size() + objects.size(); }
};

/// A model of prompts; for one thread.
class LoadedPrompts {
 public:
  virtual ~LoadedPrompts() = default;

  virtual const std::shared_ptr<const Model>& image() const = 0;  // the image tower
  /// What a session computes for encode().
  virtual Request request() const = 0;
  virtual bool takes(PromptUse use) const = 0;
  /// Parameters besides those of the image tower.
  virtual std::size_t num_parameters() const = 0;
  /// The features of an image of that size for all that the model takes. Throws Error for outputs that are
  /// not finite.
  virtual std::shared_ptr<const KeptImage> encode(const ImageOutputs& outputs,
                                                  const Preprocessor& preprocessor, ImageSize image) = 0;
  /// The answer as a JSON object, of the input at `index`. `before_each` is called before each prompt and may
  /// throw. Throws Error as PromptSegmenter does, and for more masks than the server makes.
  virtual void answer(internal::JsonWriter& json, const PromptQuestion& question, const KeptImage& image,
                      std::size_t index, const std::function<void()>& before_each) = 0;
};

/// Loads the model of prompts of a checkpoint; null if it is none.
std::shared_ptr<LoadedPrompts> open_prompts(const CommonOptions& common);

}  // namespace vit::app
