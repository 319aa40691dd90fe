// Sessions of the C interface: from inputs to the requested features.
#include "vit/c.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/config.h"
#include "vit/config/output_table.h"

namespace vit::internal {
namespace {

template <Output output, std::uint32_t bit>
constexpr bool kIsBit = static_cast<std::uint32_t>(output) == bit;
static_assert(kIsBit<Output::pooled, VIT_POOLED> && kIsBit<Output::projected, VIT_PROJECTED> &&
              kIsBit<Output::class_token, VIT_CLS> && kIsBit<Output::patches, VIT_PATCHES> &&
              kIsBit<Output::tokens, VIT_TOKENS> && kIsBit<Output::embedded, VIT_EMBEDDED> &&
              kIsBit<Output::logits, VIT_LOGITS> && kIsBit<Output::block, VIT_BLOCK> &&
              kIsBit<Output::attention, VIT_ATTENTION> && kIsBit<Output::rollout, VIT_ROLLOUT> &&
              kIsBit<Output::merged, VIT_MERGED>);

/// A request of the caller in the form of the model, and the names of its results.
class Features {
 public:
  Features(const vit_request& request, const Model& model) : normalize_(request.normalize != 0) {
    const ModelConfig& config = model.config();
    std::uint32_t unknown = request.features;
    for (const OutputRow& row : output_table()) {
      const auto bit = static_cast<std::uint32_t>(row.output);
      if (row.index != OutputIndex::none || row.of_head || (request.features & bit) == 0) continue;
      unknown &= ~bit;
      add({bit}, row.output);
    }
    if ((unknown & VIT_ROLLOUT) != 0) {
      unknown &= ~static_cast<std::uint32_t>(VIT_ROLLOUT);
      add({VIT_ROLLOUT}, {Output::rollout, config.encoder.depth - 1, 0});
    }
    VIT_CHECK(unknown == 0, kCall, "features are ", request.features, ", with undefined bits");
    for (const std::int64_t block : span_of(request.blocks, request.num_blocks, "blocks"))
      add({VIT_BLOCK, block}, {Output::block, resolve_block(Output::block, block, config)});
    for (const std::int64_t block : span_of(request.attention, request.num_attention, "attention"))
      add({VIT_ATTENTION, block}, {Output::attention, resolve_block(Output::attention, block, config)});
    if (wanted_.empty()) {
      const Output output = standard_output(config);
      add({static_cast<std::uint32_t>(output)}, output);
    }
    check_request(request_, config, model.dense_config());
  }

  const Request& request() const noexcept { return request_; }

  /// Appends the features of one input to the results. Returns why they are unusable, or "".
  std::string store(std::size_t index, const ImageOutputs& outputs, vit_results& results) {
    for (const Wanted& wanted : wanted_) {
      std::string defect = defect_of(outputs[wanted.key].flat(), "[Session] the features are");
      if (!defect.empty()) return defect;
    }
    for (const Wanted& wanted : wanted_) put(index, wanted, outputs[wanted.key], results);
    return "";
  }

 private:
  struct Wanted {
    ArrayName name;
    OutputKey key;
  };

  void add(ArrayName name, const OutputKey& key) {
    const auto is_same = [&](const Wanted& wanted) { return wanted.name == name; };
    if (std::ranges::any_of(wanted_, is_same)) return;
    request_.add(key);
    wanted_.push_back({name, key});
  }
  void put(std::size_t index, const Wanted& wanted, TensorView<const float> values, vit_results& results) {
    const float* data = values.data();
    if (normalize_ && row_of(wanted.key.output).is_vector) {
      scratch_.assign(data, data + values.num_elements());
      normalize_vector(scratch_);
      data = scratch_.data();
    }
    results.column(wanted.name, VIT_FLOAT32).put(index, data, values.shape());
  }

  bool normalize_;
  std::vector<Wanted> wanted_;
  Request request_;
  std::vector<float> scratch_;
};

}  // namespace

vit_status run_inputs(Session& session, const InputList& inputs, const Request& request, vit_results& results,
                      const std::function<std::string(std::size_t, const ImageOutputs&)>& store) {
  return run_sized_inputs(session, inputs, request, results,
                          [&](const StreamedImage& image) { return store(image.index, *image.outputs); });
}

vit_status run_sized_inputs(Session& session, const InputList& inputs, const Request& request,
                            vit_results& results,
                            const std::function<std::string(const StreamedImage&)>& store) {
  return results.fill(inputs.size(), [&] {
    const auto source = [&inputs](std::size_t index) { return inputs[index]; };
    for_each_image(session, inputs.size(), source, request, [&](const StreamedImage& image) {
      if (!image.outputs) return results.fail(image.index, image.kind, image.failure);
      std::string defect = store(image);
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
    Features features(options_of(request, "vit_request"), known.model());
    const Preprocessor* const of_clips =
        known.model().has_preprocess_config() ? &known.preprocessor() : nullptr;
    return run_inputs(
        known, InputList(inputs, num_inputs, known.model().config().image.num_channels, of_clips),
        features.request(), out,
        [&](std::size_t index, const ImageOutputs& outputs) { return features.store(index, outputs, out); });
  });
}
