#include "apps/vit/commands/dense/map_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "apps/vit/inputs/read_rest.h"
#include "apps/vit/options/usage_error.h"
#include "vit/base/check.h"

namespace vit::app {
namespace fs = std::filesystem;
namespace {

constexpr Where kWhere{"write", ErrorKind::io};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  VIT_CHECK(!error && fs::is_directory(folder, error), kWhere, folder.string(),
            ": the folder cannot be made: ", error ? error.message() : "a file has that name");
}

}  // namespace

MapFolder::MapFolder(fs::path folder, std::vector<std::string> endings, const RunFacts& facts, bool resume)
    : folder_(std::move(folder)), endings_(std::move(endings)) {
  make_folder(folder_);
  const fs::path path = folder_ / "run.json";
  run_ = open_locked(path, O_CREAT);
  std::ifstream file(path, std::ios::binary);
  const std::string found = read_rest(file, path);
  if (!found.empty()) {
    if (!resume)
      fail_usage("--output: ", folder_.string(),
                 " holds results of an earlier run; --resume goes on with it, or name another folder");
    parse_run_facts(found, path.string()).check_same(facts, folder_.string());
    return;
  }
  const std::string json = facts.json();
  const int descriptor = ::fileno(run_.get());
  VIT_CHECK(::pwrite(descriptor, json.data(), json.size(), 0) == std::ssize(json) && ::fsync(descriptor) == 0,
            kWhere, path.string(), ": writing failed: ", std::strerror(errno));
}

bool MapFolder::has(const fs::path& name) const {
  return std::ranges::all_of(endings_, [&](const std::string& ending) {
    std::error_code ignored;
    return fs::is_regular_file(folder_ / (name.string() + ending), ignored);
  });
}

fs::path MapFolder::path_of(const fs::path& name, const std::string& ending) const {
  const fs::path path = folder_ / (name.string() + ending);
  make_folder(path.parent_path());
  return path;
}

}  // namespace vit::app
