#include "apps/vit/ground/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/vit/ground/flag_names.h"
#include "apps/vit/ground/text_format.h"

namespace vit::app {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::chrono::milliseconds kDrawInterval{100};

bool shows(ProgressMode mode) {
  return mode == ProgressMode::always || (mode == ProgressMode::automatic && ::isatty(STDERR_FILENO) == 1);
}

std::string duration(double seconds) {
  const auto whole = static_cast<unsigned long>(seconds + 0.5);
  char out[32];
  if (whole < 60) {
    std::snprintf(out, sizeof out, "%lu s", whole);
  } else if (whole < 3600) {
    std::snprintf(out, sizeof out, "%lu:%02lu min", whole / 60, whole % 60);
  } else {
    std::snprintf(out, sizeof out, "%lu:%02lu h", whole / 3600, whole / 60 % 60);
  }
  return out;
}

}  // namespace

std::string_view without_repeated_name(std::string_view name, std::string_view cause) {
  const std::size_t bracket = cause.starts_with('[') ? cause.find("] ") : std::string_view::npos;
  if (bracket != std::string_view::npos) cause.remove_prefix(bracket + 2);
  if (cause.starts_with(name) && cause.substr(name.size()).starts_with(": "))
    cause.remove_prefix(name.size() + 2);
  return cause;
}

void print_failure(std::string_view name, std::string_view cause) {
  if (!name.empty()) cause = without_repeated_name(name, cause);
  const std::string line = "vit: " + (name.empty() ? "" : printable(name) + ": ") + printable(cause) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Progress::Progress(std::string what, std::size_t total, ProgressMode mode, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total), shown_(shows(mode)) {
  draw();
}

Progress::~Progress() {
  clear();
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::add_done(std::size_t count) {
  num_done_ += count;
  if (Clock::now() - last_draw_ >= kDrawInterval || num_done_ + num_failed_ >= total_) draw();
}

void Progress::show_partial(double ended) {
  partial_ = ended;
  if (Clock::now() - last_draw_ >= kDrawInterval) draw();
}

void Progress::add_failed(std::string_view name, std::string_view cause) {
  ++num_failed_;
  clear();
  const std::string shown = with_flag_names(std::string(cause));
  print_failure(name, shown);
  constexpr std::size_t kMostKept = 1000;
  if (failures_.size() < kMostKept) failures_.emplace_back(name, without_repeated_name(name, shown));
  draw();
}

void Progress::finish(std::string_view summary) {
  clear();
  if (shown_ && !summary.empty()) {
    const std::string line = printable(summary) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  shown_ = false;
}

void Progress::draw() {
  if (!shown_) return;
  last_draw_ = Clock::now();
  const std::size_t ended = std::min(num_done_ + num_failed_, total_);
  const double reached =
      std::min(std::max(static_cast<double>(ended), partial_), static_cast<double>(total_));
  const double share = total_ == 0 ? 1.0 : reached / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '=') + std::string(kBarWidth - filled, ' ');
  const double per_second = (reached - static_cast<double>(num_failed_)) / seconds();
  std::string rate;
  if (per_second > 0) {
    char text[32];
    std::snprintf(text, sizeof text, per_second < 1 ? "  %.2g " : "  %.1f ", per_second);
    rate = text + unit_ + "/s" +
           (ended < total_ ? ", " + duration((static_cast<double>(total_) - reached) / per_second) + " left"
                           : "");
  }
  std::fprintf(stderr, "\r\x1b[K%s [%s] %zu/%zu%s", what_.c_str(), bar.c_str(), ended, total_, rate.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (!std::exchange(drawn_, false)) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace vit::app
