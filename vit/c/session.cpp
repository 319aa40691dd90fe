// Sessions of the C interface: inputs to the features that a request names.
#include "vit/c.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/towers/forward_request.h"

namespace vit::internal {
namespace {

constexpr std::uint32_t kWholeFeatures =
    VIT_POOLED | VIT_PROJECTED | VIT_CLS | VIT_PATCHES | VIT_TOKENS | VIT_EMBEDDED | VIT_LOGITS;

/// A request of the caller as the model takes it, and where its parts lie in the outputs.
class Features {
 public:
  Features(const vit_request& request, const ModelConfig& config)
      : features_(request.features),
        normalize_(request.normalize != 0),
        blocks_(span_of(request.blocks, request.num_blocks, "blocks")),
        attention_(span_of(request.attention, request.num_attention, "attention")) {
    VIT_CHECK((features_ & ~kWholeFeatures) == 0, kCall, "features are ", features_,
              ", with bits that stand for no feature of a model");
    if (features_ == 0 && blocks_.empty() && attention_.empty())
      features_ = config.projection_dim > 0 ? VIT_PROJECTED : VIT_POOLED;
    VIT_CHECK(!has(VIT_CLS) || config.class_token, kCall, "a class token asked of a model that has none");
    request_.logits = has(VIT_LOGITS);
    request_.pooled = has(VIT_POOLED);
    request_.projected = has(VIT_PROJECTED);
    request_.tokens = has(VIT_CLS) || has(VIT_PATCHES) || has(VIT_TOKENS);
    request_.embedded = has(VIT_EMBEDDED);
    for (const std::int64_t block : blocks_) request_.blocks.push_back(resolved(block, config.depth));
    for (const std::int64_t block : attention_) request_.attention.push_back(resolved(block, config.depth));
    check_request(request_, config);
  }

  const Request& request() const noexcept { return request_; }

  /// Appends the features of one input to the results. Returns why nobody can use them; "" if one can.
  std::string store(std::size_t index, const ImageOutputs& outputs, vit_results& results) {
    parts_.clear();
    if (has(VIT_POOLED)) add_vector(VIT_POOLED, outputs.pooled());
    if (has(VIT_PROJECTED)) add_vector(VIT_PROJECTED, outputs.projected());
    if (has(VIT_CLS)) add_vector(VIT_CLS, outputs.class_token());
    if (has(VIT_PATCHES)) add({VIT_PATCHES}, outputs.patches());
    if (has(VIT_TOKENS)) add({VIT_TOKENS}, outputs.tokens());
    if (has(VIT_EMBEDDED)) add({VIT_EMBEDDED}, outputs.embedded());
    if (has(VIT_LOGITS)) add_vector(VIT_LOGITS, outputs.logits());
    for (std::size_t i = 0; i < blocks_.size(); ++i) add({VIT_BLOCK, blocks_[i]}, outputs.block(i));
    for (std::size_t i = 0; i < attention_.size(); ++i)
      add({VIT_ATTENTION, attention_[i]}, outputs.attention(i));
    for (const Part& part : parts_) {
      std::string defect = defect_of(part.values.flat());
      if (!defect.empty()) return defect;
    }
    for (const Part& part : parts_) put(index, part, results);
    return "";
  }

 private:
  struct Part {
    ArrayName name;
    TensorView<const float> values;
  };

  static std::size_t resolved(std::int64_t block, std::size_t depth) {
    const auto blocks = static_cast<std::int64_t>(depth);
    VIT_CHECK(block >= -blocks && block < blocks, kCall, "block ", block, " asked of a model with ", depth,
              " blocks (0 to ", depth - 1, ", or -1 to -", depth, ")");
    return static_cast<std::size_t>(block < 0 ? block + blocks : block);
  }
  bool has(std::uint32_t feature) const { return (features_ & feature) != 0; }
  void add(ArrayName name, TensorView<const float> values) { parts_.push_back({name, values}); }
  void add_vector(std::uint32_t name, std::span<const float> values) {
    add({name}, {values.data(), Shape{values.size()}});
  }
  void put(std::size_t index, const Part& part, vit_results& results) {
    const std::span<const float> values = part.values.flat();
    const float* data = values.data();
    if (normalize_ && part.values.rank() == 1) {
      scratch_.assign(values.begin(), values.end());
      normalize(scratch_);
      data = scratch_.data();
    }
    results.column(part.name, VIT_FLOAT32).put(index, data, part.values.shape());
  }

  std::uint32_t features_;
  bool normalize_;
  std::span<const std::int64_t> blocks_, attention_;
  Request request_;
  std::vector<Part> parts_;  // of one input
  std::vector<float> scratch_;
};

}  // namespace

std::string defect_of(std::span<const float> numbers) {
  const bool are_finite = std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
  return are_finite ? "" : "[Session] the features are not finite; damaged pixels or weights?";
}

vit_status run_inputs(Session& session, const InputList& inputs, const Request& request, vit_results& results,
                      const std::function<std::string(std::size_t, const ImageOutputs&)>& store) {
  return results.fill(inputs.size(), [&] {
    const auto source = [&inputs](std::size_t index) { return inputs[index]; };
    for_each_image(session, inputs.size(), source, request, [&](const StreamedImage& image) {
      if (!image.outputs) return results.fail(image.index, image.kind, image.failure);
      std::string defect = store(image.index, *image.outputs);
      if (!defect.empty()) return results.fail(image.index, ErrorKind::format, std::move(defect));
      results.set_size(image.index, image.size);
    });
  });
}

}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

vit_status vit_session_create(const vit_model* model, const vit_session_options* options,
                              vit_session** session) {
  return guarded([&] {
    vit_session*& out = object_at(session, "session");
    const vit_session_options known = options_of(options, "vit_session_options");
    VIT_CHECK(known.threads >= 0, kCall, "threads is ", known.threads);
    out = new vit_session{Session(object_at(model, "model").model,
                                  {.threads = known.threads,
                                   .batch = known.batch,
                                   .input_size = input_size(known.size_kind, known.height, known.width)})};
  });
}

void vit_session_free(vit_session* session) {
  delete session;
}

vit_status vit_session_run(vit_session* session, const vit_input* inputs, size_t num_inputs,
                           const vit_request* request, vit_results* results) {
  return guarded([&] {
    Session& known = object_at(session, "session").session;
    vit_results& out = object_at(results, "results");
    out.clear();
    Features features(options_of(request, "vit_request"), known.model().config());
    return run_inputs(
        known, InputList(inputs, num_inputs), features.request(), out,
        [&](std::size_t index, const ImageOutputs& outputs) { return features.store(index, outputs, out); });
  });
}
