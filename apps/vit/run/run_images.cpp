#include "apps/vit/run/run_images.h"

#include <algorithm>
#include <iostream>
#include <system_error>
#include <utility>

#include "apps/vit/inputs/clips.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/run/interrupt.h"

namespace vit::app {
namespace {

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;  // no such file
  return std::filesystem::is_regular_file(a, error) && std::filesystem::equivalent(a, b, error);
}

InputList list_of(const ImageJob& job) {
  const bool are_clips = job.common.model_options.clip_frames > 0;
  InputList list = job.list    ? job.list()
                   : are_clips ? list_clips(job.inputs)
                               : list_inputs(job.inputs, std::cin);
  for (const std::filesystem::path& path : job.writes) {
    if (path.empty()) continue;
    check_no_input(path, list.inputs);
    check_no_weights(path, job.common);
    for (const std::filesystem::path& other : job.reads) {
      if (!other.empty() && is_same_file(path, other))
        fail_usage("--output: ", path.string(), " is read by this run; name another file");
    }
  }
  if (job.shard) take_shard(list, *job.shard);
  return list;
}

}  // namespace

int run_inputs(const ImageJob& job, const PrepareRun& prepare, const std::function<void(ImageRun&)>& work,
               const FinishRun& finish) {
  InputList list = list_of(job);
  confine(job.common, list.inputs, job.reads, job.writes);
  ImageRun run(job.name, job.common, std::move(list));
  if (!prepare(run)) return interrupted_exit_code();
  run.start(job.digests);
  work(run);
  const int code = finish(run);
  return std::max(code, run.finish());
}

int run_images(const ImageJob& job, const MakeRequest& make_request, const ConsumeInput& consume,
               const FinishRun& finish) {
  Request request;
  const auto prepare = [&](ImageRun& run) {
    check_has_weights(job.common);
    std::optional<Request> found = make_request(run);
    if (found) request = std::move(*found);
    return found.has_value();
  };
  const auto work = [&](ImageRun& run) {
    run.for_each_input(request, [&](const StreamedImage& image) {
      return image.outputs || job.takes_failures ? consume(run, image) : image.failure;
    });
  };
  return run_inputs(job, prepare, work, finish);
}

}  // namespace vit::app
