// Counts of the server in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vit::app {

/// Numbers counted by the bucket that they fall into; threads may share it.
class Histogram {
 public:
  /// `bounds`: upper ends of the buckets, rising.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  /// Lines `name_bucket{labels,le="..."}`, `name_sum`, `name_count`.
  void append_to(std::string& out, std::string_view name, std::string_view labels) const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

class Metrics {
 public:
  /// `route` is one of the server's own, never what a client wrote.
  void add_request(std::string_view route, unsigned status, double seconds);
  /// Work of a model that was answered. Names of models are those of the command line.
  struct ModelWork {
    std::size_t images = 0, texts = 0;
    double seconds = 0;
  };
  void add_model_work(std::string_view model, std::string_view route, const ModelWork& work);
  void add_rejected(std::string_view reason);
  void add_batch(std::size_t size);
  void add_images(std::size_t count) { num_images_ += count; }

  /// Asked when the text is written.
  struct Gauges {
    std::size_t queue_depth = 0, connections_in_work = 0, worker_restarts = 0, models_loaded = 0;
    std::size_t model_bytes = 0;
    std::size_t kept_images = 0, kept_bytes = 0, kept_hits = 0;
    std::size_t lines_dropped = 0;
  };
  std::string text(const Gauges& gauges, std::string_view version) const;

 private:
  struct ModelSums : ModelWork {
    std::uint64_t num_requests = 0;
  };
  void append_models(std::string& out) const;

  mutable std::mutex mutex_;  // guards the maps
  std::map<std::pair<std::string, unsigned>, std::uint64_t> requests_;
  std::map<std::string, std::uint64_t, std::less<>> rejected_;
  std::map<std::pair<std::string, std::string>, ModelSums> models_;  // by model and route
  std::atomic<std::uint64_t> num_images_{0};
  Histogram durations_{{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}};
  Histogram batches_{{1, 2, 4, 8, 16, 32, 64, 128}};
};

}  // namespace vit::app
