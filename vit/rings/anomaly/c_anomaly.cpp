// Anomalies of the C interface: banks of good patches, and images against them.
#include "vit/anomaly.h"

#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/config.h"

struct vit_anomaly {
  vit::AnomalyModel bank;
};

using namespace vit;
using namespace vit::internal;

namespace {

AnomalyOptions options_of_caller(const vit_anomaly_options& given, const Session& session) {
  AnomalyOptions out;
  const auto depth = static_cast<std::int64_t>(session.model().config().encoder.depth);
  for (const std::int64_t layer : span_of(given.layers, given.num_layers, "layers")) {
    VIT_CHECK(layer >= -depth && layer < depth, kCall, "layer ", layer, ": the model has blocks 0 to ",
              depth - 1);
    out.layers.push_back(static_cast<std::size_t>(layer < 0 ? layer + depth : layer));
  }
  if (given.neighborhood != 0) out.neighborhood = given.neighborhood;
  if (given.coreset_fraction != 0) out.coreset.fraction = given.coreset_fraction;
  out.coreset.count = given.coreset_count;
  if (given.quantile != 0) out.quantile = given.quantile;
  out.score = enum_of(given.score, AnomalyScore::reweighted, "score");
  out.foreground = given.foreground != 0;
  out.threads = session.options().threads;
  return out;
}

/// What an image is called in a bank: its path, or its place in the call.
std::string name_of(const ImageSource& source, std::size_t index) {
  const auto* const path = std::get_if<std::filesystem::path>(&source);
  return path != nullptr ? path->string() : text("input ", index);
}

}  // namespace

vit_status vit_anomaly_fit(vit_session* session, const vit_input* good, size_t num_good,
                           const vit_anomaly_options* options, vit_anomaly** anomaly) {
  return guarded([&] {
    Session& known = object_at(session, "session").session;
    vit_anomaly*& out = object_at(anomaly, "anomaly");
    const InputList inputs(good, num_good);
    AnomalyBuilder builder(known, options_of_caller(options_of(options, "vit_anomaly_options"), known));
    vit_results unused;
    const vit_status status = run_inputs(known, inputs, builder.request(), unused,
                                         [&](std::size_t index, const ImageOutputs& outputs) {
                                           builder.add(outputs, name_of(inputs[index], index));
                                           return std::string();
                                         });
    for (std::size_t i = 0; i < unused.size(); ++i) {
      if (unused.input(i).status != VIT_OK) return remember(status, unused.input(i).failure.c_str());
    }
    out = new vit_anomaly{builder.build()};
    return vit_status{VIT_OK};
  });
}

vit_status vit_anomaly_load(const vit_model* model, const char* path, vit_anomaly** anomaly) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_anomaly*& out = object_at(anomaly, "anomaly");
    AnomalyModel bank = AnomalyModel::load(&object_at(path, "path"));
    bank.request(*from.model);  // throws for another model
    out = new vit_anomaly{std::move(bank)};
  });
}

vit_status vit_anomaly_save(const vit_anomaly* anomaly, const char* path) {
  return guarded([&] { object_at(anomaly, "anomaly").bank.save(&object_at(path, "path")); });
}

void vit_anomaly_free(vit_anomaly* anomaly) {
  delete anomaly;
}

vit_status vit_anomaly_threshold(const vit_anomaly* anomaly, float* threshold, double* confidence) {
  return guarded([&] {
    const AnomalyModel& bank = object_at(anomaly, "anomaly").bank;
    if (threshold != nullptr) *threshold = bank.threshold().value_or(std::nanf(""));
    if (confidence != nullptr) *confidence = bank.confidence();
  });
}

vit_status vit_anomaly_run(const vit_anomaly* anomaly, vit_session* session, const vit_input* inputs,
                           size_t num_inputs, vit_results* results) {
  return guarded([&] {
    const AnomalyModel& bank = object_at(anomaly, "anomaly").bank;
    Session& known = object_at(session, "session").session;
    vit_results& out = object_at(results, "results");
    return run_inputs(known, InputList(inputs, num_inputs), bank.request(known.model()), out,
                      [&](std::size_t index, const ImageOutputs& outputs) {
                        const AnomalyResult found = bank.score(outputs, known.options().threads);
                        out.column({VIT_ANOMALY_SCORE}, VIT_FLOAT32).put(index, &found.score, {1});
                        out.column({VIT_ANOMALY_DISTANCES}, VIT_FLOAT32)
                            .put(index, found.distances.data(), found.distances.shape());
                        return std::string();
                      });
  });
}
