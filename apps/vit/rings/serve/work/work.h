// The work between a request and its answer: inputs, what is wanted of them, and what became of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/work/decode_link.h"
#include "apps/vit/rings/serve/work/output_task.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "vit/image/preprocess.h"
#include "vit/outputs.h"

namespace vit::app {

struct PromptQuestion;

/// What a request wants of its inputs.
enum class Wanted {
  embedding,  // the vector of `vit embed`
  ranking,    // the same, or all vectors of a page or of a question to pages, one after the other
  classes,    // a value for each class: the model's logits, or scaled cosines with ClassTexts
  look,       // patch features, and the attention of the class token in the last block
  task,       // what an OutputTask makes of the outputs
  prompts,    // the answer of a model of prompts to the question of each input
};

/// One input, and what became of it.
struct WorkItem {
  bool is_text = false;
  std::string data{};                              // image file, or text
  std::shared_ptr<const std::string> shared_file;  // in place of `data`: of several items
  std::optional<Box> box{};                        // part of the image that is computed
  std::shared_ptr<const PromptQuestion> question;  // of prompts
  std::string digest{};                            // of the file, where its features are kept

  std::vector<float> values;              // of embedding or classes
  std::vector<float> patches, attention;  // of look: (h, w, C) and (h, w)
  std::string result;                     // of task and prompts: a JSON object
  GridSize grid;                          // of look
  ImageSize image_size;
  std::size_t num_tokens = 0;
  bool is_cut = false;      // a text that is longer than the model takes
  bool is_kept = false;     // of prompts: its features were computed for an earlier request
  bool is_outside = false;  // `box` has no pixel of the image: nothing was computed
  Tensor<float> pixels;     // of an image that is preprocessed already: nothing is decoded
  std::string failure;      // "" where there is none
  ErrorKind kind = ErrorKind::io;

  const std::string& file() const { return shared_file ? *shared_file : data; }
  /// The file is no longer needed.
  void drop_file() {
    std::string().swap(data);
    shared_file.reset();
  }
};

/// Bytes that are held until this ends, among those of others.
class ByteHold {
 public:
  ~ByteHold() {
    if (all_) *all_ -= held_.load();
  }
  /// Holds more, and returns how many this holds now.
  std::size_t add(const std::shared_ptr<std::atomic<std::size_t>>& all, std::size_t bytes) {
    std::call_once(once_, [&] { all_ = all; });
    *all_ += bytes;
    return held_ += bytes;
  }

 private:
  std::once_flag once_;
  std::shared_ptr<std::atomic<std::size_t>> all_;
  std::atomic<std::size_t> held_{0};
};

/// The inputs of one request for one model.
struct Work {
  std::size_t model = 0;  // index
  std::vector<WorkItem> items;
  Wanted wanted = Wanted::embedding;
  std::shared_ptr<OutputTask> task{};  // of Wanted::task
  ImageRules image_rules = ImageRules::checkpoint;
  AreaLimits area{};  // of images; 0 = the model's own
  TextRules text_rules = TextRules::checkpoint;
  std::optional<ClassTexts> classes;
  std::string client;    // whose turn it is
  bool is_bulk = false;  // after all that is not
  GoneFlag gone;
  std::chrono::steady_clock::time_point deadline;
  /// Called once all items are done or failed, in a thread of the engine, which it must not hold up.
  std::function<void(Work&)> done;

  // For the engine.
  std::size_t num_left = 0;
  ClassProgress class_progress{};
  std::shared_ptr<const EncodedClasses> encoded{};  // of `classes`
  std::once_flag is_prepared{};
  Request request{};  // of `task`, once it is prepared
  ByteHold results{};
};

}  // namespace vit::app
