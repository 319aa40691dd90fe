// The part of the machine that a container may use: quotas of control groups, such as Kubernetes' limits.cpu.
#pragma once

#include <filesystem>

namespace vit::internal {

/// Processors that the control groups of this process leave it: the smallest quota on the way from its own
/// group to the root, of version 2 (cpu.max) or 1 (cpu.cfs_quota_us); infinity without one. Reads files below
/// `root`, which a test may set.
double cpu_quota(const std::filesystem::path& root = "/");

/// Threads for that many processors: rounded up, at least 1, at most `threads`.
int threads_within(double quota, int threads) noexcept;

}  // namespace vit::internal
