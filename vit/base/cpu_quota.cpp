#include "vit/base/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

namespace vit::internal {
namespace {

namespace fs = std::filesystem;
constexpr double kNoQuota = std::numeric_limits<double>::infinity();

/// "50000 100000" of cpu.max: half a processor; "max 100000": no quota.
double quota_of_version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

/// -1 is no quota.
double quota_of_version_1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

/// The smallest quota of a group and those around it, up to the mounted one.
template <typename Read>
double smallest(const fs::path& mount, const fs::path& group, const Read& read) {
  double least = read(mount);
  fs::path folder = mount;
  for (const fs::path& part : group.relative_path()) {
    if (part == "..") break;  // outside of the mounted hierarchy
    least = std::min(least, read(folder /= part));
  }
  return least;
}

bool lists_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

double cpu_quota(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  double least = kNoQuota;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // ID:CONTROLLERS:/GROUP
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, smallest(mount, group, quota_of_version_2));
    } else if (lists_cpu(controllers)) {
      for (const fs::path& of : {mount / "cpu", mount / controllers})
        least = std::min(least, smallest(of, group, quota_of_version_1));
    }
  }
  return least;
}

int threads_within(double quota, int threads) noexcept {
  return quota >= static_cast<double>(threads) ? threads : std::max(1, static_cast<int>(std::ceil(quota)));
}

}  // namespace vit::internal
