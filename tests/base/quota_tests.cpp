#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/files.h"
#include "vit/base/cpu_quota.h"

namespace vit::internal {

TEST_CASE("quota: the smallest of the control groups of a process") {
  const test::TemporaryFolder root;
  CHECK(std::isinf(cpu_quota(root.path())));  // no control groups
  root.write("proc/self/cgroup", "0::/kubepods/pod7\n");
  CHECK(std::isinf(cpu_quota(root.path())));
  root.write("sys/fs/cgroup/kubepods/pod7/cpu.max", "max 100000\n");
  CHECK(std::isinf(cpu_quota(root.path())));
  root.write("sys/fs/cgroup/kubepods/cpu.max", "350000 100000\n");
  CHECK(cpu_quota(root.path()) == 3.5);
  root.write("sys/fs/cgroup/kubepods/pod7/cpu.max", "50000 100000\n");
  CHECK(cpu_quota(root.path()) == 0.5);
  root.write("sys/fs/cgroup/cpu.max", "20000 100000\n");  // as a container sees its own group
  CHECK(cpu_quota(root.path()) == 0.2);
  for (const char* const damaged : {"", "many", "-5 100000", "5 0", "nan nan"}) {
    root.write("sys/fs/cgroup/cpu.max", damaged);
    CHECK(cpu_quota(root.path()) == 0.5);
  }

  const test::TemporaryFolder old;
  old.write("proc/self/cgroup", "9:name=systemd:/a\n4:cpu,cpuacct:/job\nbroken\n3:cpuset:/job\n");
  old.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  old.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(cpu_quota(old.path())));
  old.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  CHECK(cpu_quota(old.path()) == 1.5);
  old.write("proc/self/cgroup", "4:cpu,cpuacct:/../job\n");  // of another namespace
  CHECK(std::isinf(cpu_quota(old.path())));
}

TEST_CASE("quota: threads are rounded up") {
  CHECK(threads_within(0.2, 8) == 1);
  CHECK(threads_within(1.5, 8) == 2);
  CHECK(threads_within(8.0, 8) == 8);
  CHECK(threads_within(64.0, 8) == 8);
  CHECK(threads_within(INFINITY, 8) == 8);
}

}  // namespace vit::internal
