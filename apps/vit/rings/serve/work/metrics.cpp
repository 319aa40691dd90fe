#include "apps/vit/rings/serve/work/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "vit/base/check.h"

namespace vit::app {
namespace {

std::string number(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

void append_head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += vit::text("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void append_value(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                  std::uint64_t value) {
  append_head(out, name, type, help);
  out += vit::text(name, " ", value, "\n");
}

}  // namespace

void Histogram::add(double value) {
  const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
  const std::lock_guard lock(mutex_);
  ++counts_[bucket];
  sum_ += value;
}

void Histogram::append_to(std::string& out, std::string_view name, std::string_view labels) const {
  const std::lock_guard lock(mutex_);
  const std::string_view comma = labels.empty() ? "" : ",";
  const std::string braces = labels.empty() ? "" : vit::text("{", labels, "}");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    sum += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    out += vit::text(name, "_bucket{", labels, comma, "le=\"", bound, "\"} ", sum, "\n");
  }
  out += vit::text(name, "_sum", braces, " ", number(sum_), "\n", name, "_count", braces, " ", sum, "\n");
}

void Metrics::add_request(std::string_view route, unsigned status, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    ++requests_[{std::string(route), status}];
  }
  durations_.add(seconds);
}

void Metrics::add_rejected(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  const auto place = rejected_.find(reason);
  if (place == rejected_.end()) {
    rejected_.emplace(reason, 1);
  } else {
    ++place->second;
  }
}

void Metrics::add_model_work(std::string_view model, std::string_view route, const ModelWork& work) {
  const std::lock_guard lock(mutex_);
  ModelSums& sums = models_[{std::string(model), std::string(route)}];
  ++sums.num_requests;
  sums.images += work.images;
  sums.texts += work.texts;
  sums.seconds += work.seconds;
}

void Metrics::add_batch(std::size_t size) {
  batches_.add(static_cast<double>(size));
}

namespace {

/// What Prometheus' client libraries say of their process.
void append_process(std::string& out) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  append_head(out, "process_cpu_seconds_total", "counter",
              "Processor time of the server, decoders excluded.");
  out += vit::text("process_cpu_seconds_total ", seconds(usage.ru_utime) + seconds(usage.ru_stime), "\n");
  std::size_t pages = 0, num_files = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second is the resident set
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++num_files;
  append_value(out, "process_resident_memory_bytes", "gauge", "Memory of the server, decoders excluded.",
               pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  append_value(out, "process_open_fds", "gauge", "Open descriptors.", num_files);
}

}  // namespace

namespace {

/// A value of a label: what ends it is escaped.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

/// With the lock held.
void Metrics::append_models(std::string& out) const {
  const auto append = [&](std::string_view name, std::string_view type, std::string_view help,
                          const auto& values) {
    append_head(out, name, type, help);
    for (const auto& [key, sums] : models_)
      values(vit::text("model=\"", label_value(key.first), "\",route=\"", key.second, "\""), sums);
  };
  append("vit_model_inputs_total", "counter", "Inputs of answered requests, by model, route and kind.",
         [&](const std::string& labels, const ModelSums& sums) {
           out += vit::text("vit_model_inputs_total{", labels, ",kind=\"image\"} ", sums.images, "\n");
           out += vit::text("vit_model_inputs_total{", labels, ",kind=\"text\"} ", sums.texts, "\n");
         });
  append(
      "vit_model_request_duration_seconds", "summary",
      "Seconds from the last byte of a request to its answer, by model and route.",
      [&](const std::string& labels, const ModelSums& sums) {
        out += vit::text("vit_model_request_duration_seconds_sum{", labels, "} ", number(sums.seconds), "\n");
        out += vit::text("vit_model_request_duration_seconds_count{", labels, "} ", sums.num_requests, "\n");
      });
}

std::string Metrics::text(const Gauges& gauges, std::string_view version) const {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    append_head(out, "vit_requests_total", "counter", "Requests by route and status.");
    for (const auto& [key, count] : requests_)
      out += vit::text("vit_requests_total{route=\"", key.first, "\",status=\"", key.second, "\"} ", count,
                       "\n");
    append_head(out, "vit_rejected_total", "counter", "Requests that were not worked on, by reason.");
    for (const auto& [reason, count] : rejected_)
      out += vit::text("vit_rejected_total{reason=\"", reason, "\"} ", count, "\n");
    append_models(out);
  }
  append_head(out, "vit_request_duration_seconds", "histogram",
              "Seconds from the first byte of a request to the last of its answer.");
  durations_.append_to(out, "vit_request_duration_seconds", "");
  append_head(out, "vit_batch_size", "histogram", "Inputs that were computed together.");
  batches_.append_to(out, "vit_batch_size", "");
  append_value(out, "vit_images_total", "counter", "Images computed.", num_images_.load());
  append_value(out, "vit_queue_depth", "gauge", "Inputs that wait or are computed.", gauges.queue_depth);
  append_value(out, "vit_requests_in_work", "gauge", "Requests that are admitted and not answered.",
               gauges.connections_in_work);
  append_value(out, "vit_decoder_restarts_total", "counter", "Decoding processes that were started again.",
               gauges.worker_restarts);
  append_value(out, "vit_models_loaded", "gauge", "Models in memory.", gauges.models_loaded);
  append_value(out, "vit_models_bytes", "gauge", "Weights and working memory of the models in memory.",
               gauges.model_bytes);
  append_value(out, "vit_kept_images", "gauge", "Images whose features are kept for further prompts.",
               gauges.kept_images);
  append_value(out, "vit_kept_bytes", "gauge", "Memory of these features.", gauges.kept_bytes);
  append_value(out, "vit_kept_hits_total", "counter", "Inputs with prompts whose features were kept.",
               gauges.kept_hits);
  append_value(out, "vit_log_lines_dropped_total", "counter", "Lines of the log that nothing read in time.",
               gauges.lines_dropped);
  append_process(out);
  append_head(out, "vit_build_info", "gauge", "The release that serves.");
  out += vit::text("vit_build_info{version=\"", version, "\"} 1\n");
  return out;
}

}  // namespace vit::app
