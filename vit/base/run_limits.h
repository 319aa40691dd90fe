// RunLimits: what ends the runs of a session or of a text encoder early.
#pragma once

#include <chrono>
#include <stop_token>
#include <string_view>

#include "vit/base/error.h"

namespace vit {

/// A run that was ended by its RunLimits. Its outputs are undefined; the session can be used again.
class VIT_API Cancelled : public Error {
 public:
  explicit Cancelled(std::string_view why) : Error("Session", why, ErrorKind::io) {}  // of the end
};

/// Asked before each image is preprocessed, before each pass and between the blocks of a pass, by all of its
/// threads.
struct RunLimits {
  std::stop_token stop{};  // of a std::stop_source; empty = none
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();  // max: none

  /// Throws Cancelled if a stop was requested or the deadline has passed.
  void check() const {
    if (stop.stop_requested()) throw Cancelled("the run was cancelled: a stop was requested");
    if (deadline != std::chrono::steady_clock::time_point::max() &&
        std::chrono::steady_clock::now() >= deadline)
      throw Cancelled("the run was cancelled: its deadline has passed");
  }
};

}  // namespace vit
